/* mounts.c: parses and checks the host directories to mount in a container.
 *
 * By default there are none. The configuration has the form HOST[:INSIDE] with `:ro` or `:rw`,
 * as for a jail. Both ends are resolved and checked before the container is created. Invariant:
 * the engine's socket is never inside a mount, because access to it is equivalent to root. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"

void csn_docker_mounts_release(csn_docker *d)
{
    for (size_t i = 0; i < d->mount_count; i++) {
        free(d->mounts[i].host);
        free(d->mounts[i].inside);
    }
    d->mount_count = 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static bool contains_path(const char *dir, const char *path)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static csn_status check_ends(const csn_docker *d, const char *real, const char *inside,
                             csn_error **err)
{
    csn_autofree char *socket = realpath(d->socket, NULL);
    struct stat st;

    if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return csn_fail(err, CSN_WRONG_TYPE, "workspace: %s is not a directory", real);
    if (strcmp(real, "/") == 0 || strcmp(inside, "/") == 0)
        return csn_fail(err, CSN_INVALID, "workspace: the root directory cannot be shared");
    if (strstr(inside, "/../") || strstr(inside, "//"))
        return csn_fail(err, CSN_INVALID,
                        "workspace: the path inside has .. or empty components");
    if (socket && contains_path(real, socket))
        return csn_fail(err, CSN_DENIED,
                        "workspace: %s contains the container engine's socket, which would "
                        "make the sandbox root on this machine",
                        real);
    return CSN_OK;
}

static csn_status add_mount(csn_docker *d, const char *text, csn_error **err)
{
    csn_autofree char *host = strdup(text), *real = NULL;
    const char *inside, *mode;

    if (!host)
        return csn_fail(err, CSN_NOMEM, "workspace");
    if (d->mount_count == CSN_DOCKER_MOUNTS_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "at most %u directories can be shared",
                        CSN_DOCKER_MOUNTS_MAX);
    csn_workspace_split(host, exists, &inside, &mode);
    if (mode && strcmp(mode, "cow") == 0)
        return csn_fail(err, CSN_UNSUPPORTED,
                        "workspace %s: backend 'docker' has no copy-on-write", text);
    real = realpath(host, NULL);
    if (!real) {
        int e = errno;
        csn_autofree char *shown = csn_path_printable(host);
        return csn_fail_errno(err, e, "workspace: %s", shown ? shown : "");
    }
    inside = inside ? inside : real;
    csn_status st = check_ends(d, real, inside, err);
    if (st < 0)
        return st;
    csn_docker_mount *m = &d->mounts[d->mount_count++];
    *m = (csn_docker_mount){.inside = strdup(inside),
                            .writable = !mode || strcmp(mode, "ro") != 0};
    m->host = CSN_STEAL(real);
    return m->inside ? CSN_OK : csn_fail(err, CSN_NOMEM, "workspace");
}

csn_status csn_docker_mounts(csn_docker *d, const csn_config *c, csn_error **err)
{
    csn_status st = c->workspace ? add_mount(d, c->workspace, err) : CSN_OK;

    for (size_t i = 0; st == CSN_OK && c->workspaces && c->workspaces[i]; i++)
        st = add_mount(d, c->workspaces[i], err);
    return st;
}
