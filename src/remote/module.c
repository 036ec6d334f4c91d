/* module.c: the entry point of caisson-remote.so, which finds a backend by name. */
#include <string.h>

#include "backend/dagger/export.h"
#include "backend/docker/export.h"
#include "backend/e2b/export.h"
#include "backend/vercel/export.h"
#include "remote/load.h"

static const csn_backend_ops *find(const char *name)
{
#define ROW(id, options) {#id, csn_##id##_backend},
    static const struct {
        const char *name;
        const csn_backend_ops *(*get)(void);
    } backends[] = {CSN_REMOTE_BACKENDS(ROW)};

    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
        if (strcmp(backends[i].name, name) == 0)
            return backends[i].get();
    return NULL;
}

const csn_remote_api *csn_remote_module(void)
{
    static const csn_remote_api api = {
        .version = CSN_REMOTE_API_VERSION, .ops_size = sizeof(csn_backend_ops), .find = find};

    return &api;
}
