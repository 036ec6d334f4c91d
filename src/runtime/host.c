/* host.c: file operations below a host directory, for export and import.
 *
 * The caller, not the agent, names the directory, so there is no policy, home or keeper. Files
 * are written by the same code as those of a sandbox. */
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
    rt->config = &plain; /* `config` is on the stack; later calls use only its flags */
    if (st < 0) {
        csn_runtime_free(rt);
        return csn_wrap(st, err, "host directory");
    }
    *ret_state = rt;
    return CSN_OK;
}
