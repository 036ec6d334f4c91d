/* host.c: file operations below any host directory, for export and import.
 *
 * The directory is the caller's own word, not the agent's: no policy, no home, no keeper. The
 * same code as for a sandbox's files, so that what comes out of one is written with the same
 * care. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "runtime/runtime.h"

static int make_dirs(const char *dir)
{
    csn_autofree char *path = strdup(dir);

    if (!path)
        return ENOMEM;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return errno;
        *p = '/';
    }
    return mkdir(path, 0777) < 0 && errno != EEXIST ? errno : 0;
}

csn_status csn_runtime_host_open(const char *dir, bool make, void **ret_state, csn_error **err)
{
    static const csn_config plain = {.size = sizeof(plain)};
    csn_config config = {.size = sizeof(config), .workspace = dir, .home = dir};
    int e = make ? make_dirs(dir) : 0;

    if (e != 0)
        return csn_fail_errno(err, e, "make host directory '%s'", dir);
    csn_runtime *rt = csn_runtime_new("host", &config, "host");
    if (!rt)
        return csn_fail(err, CSN_NOMEM, "host directory '%s'", dir);
    csn_status st = csn_runtime_grants_open(rt, err);
    rt->config = &plain; /* the lists are open now; what is asked later is only the flags */
    if (st < 0) {
        csn_runtime_free(rt);
        return csn_wrap(st, err, "host directory");
    }
    *ret_state = rt;
    return CSN_OK;
}
