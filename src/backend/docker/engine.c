/* engine.c: finds the socket of the container engine and sends requests to it.
 *
 * DOCKER_HOST is honoured if it names a unix socket; Docker contexts are ignored. Request paths
 * have no API version: the requests used exist in every supported version, and engines reject
 * versions that they do not know. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/docker/docker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strv.h"

#define REQUEST_MS    60000u
#define RESPONSE_MAX  (8u * 1024u * 1024u)
#define DOCKER_SOCKET "/var/run/docker.sock"
#define PODMAN_SOCKET "/run/podman/podman.sock"

/* ---- the socket ------------------------------------------------------------------------- */

static csn_status check_socket(const char *path, csn_error **err)
{
    csn_status st;

    if (access(path, R_OK | W_OK) == 0)
        return CSN_OK;
    if (errno == EACCES || errno == EPERM) {
        st = csn_fail(err, CSN_DENIED, "no permission to use the container engine's socket %s",
                      path);
        return csn_error_advise(st, err,
                                "Docker: join the group 'docker', which is equivalent to root; "
                                "Podman: run 'podman system service' as your own user");
    }
    st = csn_fail(err, CSN_UNAVAILABLE, "no container engine: %s: %m", path);
    return csn_error_advise(st, err,
                            "start dockerd or 'podman system service', or set DOCKER_HOST to "
                            "unix:// and the path of its socket");
}

static csn_status docker_host(const char *host, char **ret, csn_error **err)
{
    if (!csn_str_starts(host, "unix:///"))
        return csn_fail(err, CSN_UNSUPPORTED,
                        "backend 'docker' needs an engine on this machine; DOCKER_HOST is "
                        "'%.200s', not unix:// and a path",
                        host);
    csn_status st = check_socket(host + 7, err);
    if (st < 0)
        return st;
    *ret = strdup(host + 7);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* The socket of rootless Podman; malloc'd, or NULL. */
static char *user_podman(void)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    char *path = NULL;

    return dir && *dir && asprintf(&path, "%s/podman/podman.sock", dir) >= 0 ? path : NULL;
}

csn_status csn_docker_socket(char **ret, csn_error **err)
{
    const char *host = getenv("DOCKER_HOST");
    csn_autofree char *user = user_podman();
    const char *const candidates[] = {DOCKER_SOCKET, user ? user : PODMAN_SOCKET,
                                      PODMAN_SOCKET};

    if (host && *host)
        return docker_host(host, ret, err);
    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        if (access(candidates[i], R_OK | W_OK) != 0)
            continue;
        *ret = strdup(candidates[i]);
        return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
    }
    csn_status st = check_socket(DOCKER_SOCKET, err);
    return st < 0 ? st
                  : csn_fail(err, CSN_UNAVAILABLE,
                             "the container engine was restarted: try again");
}

/* ---- requests --------------------------------------------------------------------------- */

csn_status csn_docker_request(csn_remote *r, const csn_docker_call *c, csn_http_res *res,
                              csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const int32_t stop[] = {r->stop_fd};
    csn_autofree char *url = NULL;

    if (asprintf(&url, "http://localhost%s%s%s%s", c->path, c->id ? "/" : "",
                 c->id ? c->id : "", c->action ? c->action : "") < 0) {
        url = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c->what);
    }
    const csn_http_req q = {
        .method = c->method,
        .url = url,
        .headers = headers,
        .body = c->body ? c->body->data : NULL,
        .body_len = c->body ? c->body->len : 0,
        .retry = c->retry,
        .deadline_ns = c->deadline_ns ? c->deadline_ns : csn_deadline_in(REQUEST_MS),
        .cancel_fds = c->cancel_fds ? c->cancel_fds : stop,
        .cancel_count = c->cancel_fds    ? 3
                        : c->ignore_stop ? 0
                                         : 1,
        .on_interrupt = c->on_interrupt,
        .ctx = c->ctx,
        .body_max = RESPONSE_MAX,
    };
    csn_status st = csn_http_do(r->http, &q, res, err);
    return st == CSN_UNAVAILABLE
               ? csn_wrap(st, err, "container engine at %s", csn_docker_of(r)->socket)
               : st;
}

bool csn_docker_id_valid(const char *id)
{
    size_t n = id ? strspn(id, "0123456789abcdef") : 0;

    return n >= 12 && n <= 64 && id[n] == '\0';
}
