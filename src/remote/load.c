/* load.c: loads caisson-remote.so when the first remote sandbox is opened.
 *
 * Part of the library. libcurl and its thirty dependencies are loaded with the module, so
 * commands in a jail do not pay for them. After a failed load the next caller tries again. */
#include "remote/load.h"

#include <pthread.h>

#include "base/error.h"
#include "base/limits.h"
#include "os/module.h"

#define MODULE "caisson-remote.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const csn_remote_api *loaded;

/* With the lock held. */
static csn_status load(const char *name, csn_error **err)
{
    const csn_remote_api *(*entry)(void) = NULL;
    char why[CSN_PATH_MAX];

    if (csn_module_load(MODULE, "csn_remote_module", (void **)&entry, why, sizeof(why)) < 0)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' needs %s", name, why);
    const csn_remote_api *api = entry();
    if (!api || api->version != CSN_REMOTE_API_VERSION ||
        api->ops_size != sizeof(csn_backend_ops))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend '%s' needs %s of this version of caisson", name, MODULE);
    loaded = api;
    return CSN_OK;
}

csn_status csn_remote_find(const char *name, const csn_backend_ops **ret, csn_error **err)
{
    pthread_mutex_lock(&lock);
    csn_status st = loaded ? CSN_OK : load(name, err);
    const csn_backend_ops *ops = st == CSN_OK ? loaded->find(name) : NULL;
    pthread_mutex_unlock(&lock);
    if (st < 0)
        return st;
    if (!ops)
        return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' is not in this build", name);
    *ret = ops;
    return CSN_OK;
}
