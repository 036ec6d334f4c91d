/* tar_load.c: loads caisson-archive.so when the first archive is read or written.
 *
 * Part of the library. Thread-safe. After a failed load the next call tries again. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "archive/tar.h"
#include "base/error.h"
#include "base/limits.h"
#include "os/module.h"

#define MODULE "caisson-archive.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const csn_tar_api *loaded;
static char *test_path;

/* Call it with the lock held. */
static csn_status load(const csn_tar_api **ret, csn_error **err)
{
    const csn_tar_api *(*entry)(void) = NULL;
    const char *file = test_path ? test_path : MODULE;
    char why[CSN_PATH_MAX];

    if (csn_module_load(file, "csn_tar_module", (void **)&entry, why, sizeof(why)) < 0)
        return csn_fail(err, CSN_UNSUPPORTED, "archives need %s", why);
    const csn_tar_api *api = entry();
    if (!api || api->version != CSN_TAR_API_VERSION)
        return csn_fail(err, CSN_UNSUPPORTED, "archives need %s of this version of caisson",
                        file);
    *ret = api;
    return CSN_OK;
}

csn_status csn_tar_load(const csn_tar_api **ret, csn_error **err)
{
    csn_status st = CSN_OK;

    pthread_mutex_lock(&lock);
    if (!loaded)
        st = load(&loaded, err);
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
