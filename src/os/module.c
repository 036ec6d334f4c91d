/* module.c: finds and loads our modules.
 *
 * Called by archive/tar_load.c, httpd/load.c and remote/load.c, from any thread, each with its
 * own lock where it needs one. A module is code: where it comes from is decided here alone, and
 * no variable changes it. What is loaded stays loaded. */
#include "os/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/path.h"

/* The directory of the object this function is in, or NULL. malloc'd. */
static char *own_dir(void)
{
    char exe[CSN_PATH_MAX];
    Dl_info info;

    if (dladdr((void *)csn_module_load, &info) == 0 || !info.dli_fname)
        return NULL;
    if (info.dli_fname[0] == '/')
        return csn_path_dir(info.dli_fname);
    /* A program is known by the name it was called with; the kernel knows where it is. */
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n <= 0)
        return NULL;
    exe[n] = '\0';
    return exe[0] == '/' ? csn_path_dir(exe) : NULL;
}

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
    csn_autofree char *dir = own_dir();
    csn_autofree char *beside = NULL, *installed = NULL;
    if (dir && asprintf(&beside, "%s/%s", dir, file) < 0)
        beside = NULL;
    if (asprintf(&installed, "%s/%s", CSN_MODULE_DIR, file) < 0)
        installed = NULL;
    if (!installed) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    bool here = beside && access(beside, F_OK) == 0;
    return load(here ? beside : installed, symbol, ret, why, size);
}
