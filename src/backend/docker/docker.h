/* docker.h: what the files of the docker backend share.
 *
 * One server: the engine (Docker's, or Podman's under the same interface) behind a unix socket
 * of this machine. Who may speak to it is root on this machine: that is the engine's way, and
 * the caller has that right already. What is inside the containers never gets the socket. */
#pragma once
#include "base/json_read.h"
#include "remote/remote.h"
#include "remote/stream.h"

extern const csn_remote_kind csn_docker_kind;

#define CSN_DOCKER_MOUNTS_MAX 16u
typedef struct csn_docker_mount {
    char *host, *inside;
    bool writable;
} csn_docker_mount;

typedef struct csn_docker {
    char *socket;
    char *container; /* its id, 64 hexadecimal digits; NULL: none yet */
    char *user;      /* of commands: the image's ("0" when it says nothing), or, where host
                        directories are shared, the caller */
    csn_docker_mount mounts[CSN_DOCKER_MOUNTS_MAX]; /* the first is the working directory */
    size_t mount_count;
    bool has_check; /* the image would have its health asked, by a command of its own */
    int tie;        /* the holder's stdin: the container ends when this closes; or -1 */
    pthread_mutex_t lock;
    bool owner_known; /* guarded by lock: uid and gid of `user` were asked for */
    unsigned uid, gid;
} csn_docker;

/* Nobody else's inside: the holder and its timer run as this user, so that commands can neither
 * stop nor signal them. */
#define CSN_DOCKER_HOLDER "65533:65533"

static inline csn_docker *csn_docker_of(const csn_remote *r)
{
    return r->own;
}

/* engine.c: where the engine is, and requests to it. */
csn_status csn_docker_socket(char **ret, csn_error **err); /* malloc'd */
typedef struct csn_docker_call {
    const char *method, *path;
    const char *what;    /* was attempted, for messages */
    const csn_buf *body; /* JSON, or NULL */
    csn_http_repeat repeat;
    bool always;               /* also while the sandbox is being closed */
    uint64_t deadline_ns;      /* 0: a minute from now */
    const int32_t *cancel_fds; /* three, in place of the sandbox's; or NULL */
    uint64_t (*on_alarm)(void *ctx, csn_status why);
    void *ctx;
} csn_docker_call;
/* Any status is CSN_OK, as with csn_http_do. */
csn_status csn_docker_do(csn_remote *r, const csn_docker_call *c, csn_http_res *res,
                         csn_error **err);
/* What an answer that is no success means. */
csn_status csn_docker_refused(const csn_remote *r, const csn_http_res *res, const char *what,
                              csn_error **err);
csn_status csn_docker_json(const csn_http_res *res, const char *what, csn_jval **ret,
                           csn_error **err);
char *csn_docker_words(const csn_http_res *res); /* the engine's message, or NULL; malloc'd */
bool csn_docker_id_fits(const char *id);         /* ids become parts of paths */

/* life.c */
bool csn_docker_image_fits(const char *image);
const char *
csn_docker_image(const csn_config *c); /* the config's, else the variable's; or NULL */
csn_status csn_docker_make(csn_remote *r, csn_error **err);
csn_status csn_docker_find(csn_remote *r, const char *note, csn_error **err);
int csn_docker_note(const csn_remote *r, csn_buf *out);
csn_status csn_docker_end(csn_remote *r, csn_error **err);
csn_status csn_docker_extend(csn_remote *r, uint64_t ms, csn_error **err);

/* exec.c */
csn_status csn_docker_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
csn_status csn_docker_run_as(csn_remote *r, const char *user, const csn_remote_cmd *cmd,
                             csn_remote_exit *ret, csn_error **err);

/* mounts.c: d->socket is known. */
csn_status csn_docker_mounts(csn_docker *d, const csn_config *c, csn_error **err);
void csn_docker_mounts_release(csn_docker *d);

/* put.c */
csn_status csn_docker_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err);
