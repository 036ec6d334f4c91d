/* module.c: which backends are in caisson-remote.so. The only file here that names any. */
#include <string.h>

#include "backend/docker/export.h"
#include "backend/e2b/export.h"
#include "backend/vercel/export.h"
#include "remote/load.h"

static const csn_backend_ops *find(const char *name)
{
    if (strcmp(name, "docker") == 0)
        return csn_docker_backend();
    if (strcmp(name, "vercel") == 0)
        return csn_vercel_backend();
    return strcmp(name, "e2b") == 0 ? csn_e2b_backend() : NULL;
}

const csn_remote_api *csn_remote_module(void)
{
    static const csn_remote_api api = {
        .version = CSN_REMOTE_API_VERSION, .ops_size = sizeof(csn_backend_ops), .find = find};

    return &api;
}
