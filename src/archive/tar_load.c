/* tar_load.c: finds and loads caisson-archive.so when the first archive is made or read.
 *
 * Part of the library, called by the core from any thread. A module is code: where it comes
 * from is decided by us alone. It is looked for beside the object that this code is part of
 * (the library, or a program that links it statically) and then in the directory it is
 * installed to; never in the working directory and never by a name that the loader would search
 * for. It stays loaded. A load that failed is tried again by the next caller: it may be
 * installed by then. */
#include "archive/tar.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"

#define MODULE "caisson-archive.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const csn_tar_api *loaded;
static char *test_path;

/* The directory of the object this function is in, or NULL. malloc'd. */
static char *own_dir(void)
{
    char exe[CSN_PATH_MAX];
    Dl_info info;

    if (dladdr((void *)csn_tar_load, &info) == 0 || !info.dli_fname)
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

static csn_status load(const char *path, const csn_tar_api **ret, csn_error **err)
{
    const csn_tar_api *(*entry)(void) = NULL;
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!module) {
        const char *why = dlerror();
        return csn_fail(err, CSN_UNSUPPORTED, "archives need %s: %s", path,
                        why ? why : "cannot be loaded");
    }
    *(void **)&entry = dlsym(module, "csn_tar_module");
    const csn_tar_api *api = entry ? entry() : NULL;
    if (!api || api->version != CSN_TAR_API_VERSION) {
        dlclose(module);
        return csn_fail(err, CSN_UNSUPPORTED, "archives need %s: it is of another version",
                        path);
    }
    *ret = api;
    return CSN_OK;
}

/* With the lock held. */
static csn_status find(const csn_tar_api **ret, csn_error **err)
{
    csn_autofree char *dir = test_path ? NULL : own_dir();
    csn_autofree char *beside = NULL;

    if (test_path)
        return load(test_path, ret, err);
    if (dir && asprintf(&beside, "%s/%s", dir, MODULE) < 0) {
        beside = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    if (beside && access(beside, F_OK) == 0)
        return load(beside, ret, err);
    return load(CSN_MODULE_DIR "/" MODULE, ret, err);
}

csn_status csn_tar_load(const csn_tar_api **ret, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&lock);
    if (!loaded)
        st = find(&loaded, err);
    if (st == CSN_OK)
        *ret = loaded;
    pthread_mutex_unlock(&lock);
    return st;
}

void csn_tar_module_path_set(const char *path)
{
    pthread_mutex_lock(&lock);
    free(test_path);
    test_path = path ? strdup(path) : NULL;
    loaded = NULL;
    pthread_mutex_unlock(&lock);
}
