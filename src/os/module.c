/* module.c: finds and loads caisson's own modules.
 *
 * A module is code, so its location is fixed in this file; no environment variable changes it.
 * Modules stay loaded. Thread-safe. */
#include "os/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/own_dir.h"

static int load(const char *path, const char *symbol, void **ret, char *why, size_t size)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!module) {
        const char *text = dlerror();
        snprintf(why, size, "%s: %s", path, text ? text : "cannot be loaded");
        return -ENOENT;
    }
    *ret = dlsym(module, symbol);
    if (*ret)
        return 0;
    dlclose(module);
    snprintf(why, size, "%s: it is of another version", path);
    return -ENOEXEC;
}

int csn_module_load(const char *file, const char *symbol, void **ret, char *why, size_t size)
{
    if (strchr(file, '/'))
        return load(file, symbol, ret, why, size);
    const char *dir = csn_own_dir();
    csn_autofree char *local = NULL, *installed = NULL;
    if (dir && asprintf(&local, "%s/%s", dir, file) < 0)
        local = NULL;
    if (asprintf(&installed, "%s/%s", CSN_MODULE_DIR, file) < 0)
        installed = NULL;
    if (!installed) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    bool is_local = local && access(local, F_OK) == 0;
    return load(is_local ? local : installed, symbol, ret, why, size);
}
