/* engine.c: where the engine is, and requests to it.
 *
 * Called by the other files of this backend. DOCKER_HOST is honoured as far as it names a unix
 * socket; no context file is read and no program is run. Paths of requests carry no version of
 * the interface: what is asked for is in all that are alive, and each engine refuses others. */
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

#define API_MS     60000u
#define BASE       "http://localhost"
#define ANSWER_MAX (8u * 1024u * 1024u)
#define DOCKER     "/var/run/docker.sock"
#define PODMAN     "/run/podman/podman.sock"

/* ---- where ------------------------------------------------------------------------------ */

static csn_status usable(const char *path, csn_error **err)
{
    csn_status st;

    if (access(path, R_OK | W_OK) == 0)
        return CSN_OK;
    if (errno == EACCES || errno == EPERM) {
        st = csn_fail(err, CSN_DENIED, "the container engine's socket %s is not yours to use",
                      path);
        return csn_error_advise(st, err,
                                "whoever may use it is root on this machine; with Docker that "
                                "is the group 'docker', with Podman a service of your own");
    }
    st = csn_fail(err, CSN_UNAVAILABLE, "no container engine: %s: %m", path);
    return csn_error_advise(st, err,
                            "start dockerd or 'podman system service', or set DOCKER_HOST to "
                            "unix:// and the path of its socket");
}

static csn_status named(const char *host, char **ret, csn_error **err)
{
    if (!csn_str_starts(host, "unix:///"))
        return csn_fail(
            err, CSN_UNSUPPORTED,
            "backend 'docker' speaks to an engine on this machine only; DOCKER_HOST "
            "is '%.200s', not unix:// and a path",
            host);
    csn_status st = usable(host + 7, err);
    if (st < 0)
        return st;
    *ret = strdup(host + 7);
    return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* The user's own Podman. malloc'd, or NULL. */
static char *own_podman(void)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    char *path = NULL;

    return dir && *dir && asprintf(&path, "%s/podman/podman.sock", dir) >= 0 ? path : NULL;
}

csn_status csn_docker_socket(char **ret, csn_error **err)
{
    const char *host = getenv("DOCKER_HOST");
    csn_autofree char *own = own_podman();
    const char *const places[] = {DOCKER, own ? own : PODMAN, PODMAN};

    if (host && *host)
        return named(host, ret, err);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], R_OK | W_OK) != 0)
            continue;
        *ret = strdup(places[i]);
        return *ret ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
    }
    csn_status st = usable(DOCKER, err);
    return st < 0 ? st : csn_fail(err, CSN_UNAVAILABLE, "the container engine comes and goes");
}

/* ---- requests --------------------------------------------------------------------------- */

csn_status csn_docker_do(csn_remote *r, const csn_docker_call *c, csn_http_res *res,
                         csn_error **err)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    const int32_t stop[] = {r->stop_fd};
    csn_autofree char *url = NULL;

    if (asprintf(&url, BASE "%s", c->path) < 0) {
        url = NULL;
        return csn_fail(err, CSN_NOMEM, "%s", c->what);
    }
    const csn_http_req q = {
        .method = c->method,
        .url = url,
        .headers = headers,
        .body = c->body ? c->body->data : NULL,
        .body_len = c->body ? c->body->len : 0,
        .repeat = c->repeat,
        .deadline_ns = c->deadline_ns ? c->deadline_ns : csn_deadline_in(API_MS),
        .cancel_fds = c->cancel_fds ? c->cancel_fds : stop,
        .cancel_count = c->cancel_fds ? 3
                        : c->always   ? 0
                                      : 1,
        .on_alarm = c->on_alarm,
        .ctx = c->ctx,
        .body_max = ANSWER_MAX,
    };
    csn_status st = csn_http_do(r->http, &q, res, err);
    return st == CSN_UNAVAILABLE
               ? csn_wrap(st, err, "container engine at %s", csn_docker_of(r)->socket)
               : st;
}

csn_status csn_docker_json(const csn_http_res *res, const char *what, csn_jval **ret,
                           csn_error **err)
{
    csn_status st =
        csn_json_parse(res->body.len ? res->body.data : "", res->body.len, what, ret, err);

    return st == CSN_INVALID ? csn_wrap(CSN_IO, err, "answer of the engine") : st;
}

char *csn_docker_words(const csn_http_res *res)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    if (res->body.len == 0 || csn_docker_json(res, "answer", &root, NULL) < 0)
        return NULL;
    const char *text = csn_jval_string(csn_jval_get(root, "message"));
    return text ? strdup(text) : NULL;
}

csn_status csn_docker_refused(const csn_remote *r, const csn_http_res *res, const char *what,
                              csn_error **err)
{
    csn_autofree char *said = csn_docker_words(res);

    return csn_remote_refused(r, res->status, what, said, err);
}

bool csn_docker_id_fits(const char *id)
{
    size_t n = id ? strspn(id, "0123456789abcdef") : 0;

    return n >= 12 && n <= 64 && id[n] == '\0';
}
