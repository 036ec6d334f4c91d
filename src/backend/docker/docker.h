/* docker.h: internal interface of the docker backend.
 *
 * The server is a container engine of this machine (Docker, or Podman with the same API) behind
 * a unix socket. Access to this socket is equivalent to root on this machine: the caller
 * already has it, and no container ever gets it. */
#pragma once
#include "remote/remote.h"

extern const csn_remote_provider csn_docker_provider;

#define CSN_DOCKER_MOUNTS_MAX 16u
typedef struct csn_docker_mount {
    char *host, *inside;
    bool writable;
} csn_docker_mount;

typedef struct csn_docker {
    char *socket;
    char *container; /* id, 64 hexadecimal digits; NULL: none yet */
    /* User of commands: the image's ("0" if it has none) or, with mounts, the caller. */
    char *user;
    csn_docker_mount mounts[CSN_DOCKER_MOUNTS_MAX]; /* the first is the working directory */
    size_t mount_count;
    bool has_healthcheck; /* of the image */
    bool own_workdir;     /* the image names none: CSN_DOCKER_WORKDIR */
    int stdin_fd;         /* of the main process: closing it ends the container; or -1 */
    pthread_mutex_t lock;
    bool owner_known; /* guarded by lock: uid and gid of `user` */
    unsigned uid, gid;
} csn_docker;

#define CSN_DOCKER_WORKDIR "/workspace"

/* The user of the main process and the lifetime timer. Commands run as other users, without
 * capabilities, and therefore cannot signal them. */
#define CSN_DOCKER_MAIN_USER "65533:65533"

static inline csn_docker *csn_docker_of(const csn_remote *r)
{
    return r->data;
}

/* engine.c */
csn_status csn_docker_socket(char **ret, csn_error **err); /* malloc'd */
typedef struct csn_docker_call {
    const char *what; /* for error messages */
    const char *method, *path;
    const char *id, *action; /* appended to the path: "/ID" and the action; or NULL */
    const csn_buf *body;     /* JSON, or NULL */
    csn_http_retry retry;
    bool ignore_stop;          /* send it even while the sandbox is being closed */
    uint64_t deadline_ns;      /* 0: one minute from now */
    const int32_t *cancel_fds; /* three, instead of the sandbox's; or NULL */
    uint64_t (*on_interrupt)(void *ctx, csn_status why);
    void *ctx;
} csn_docker_call;
/* Any status is CSN_OK, as with csn_http_do. */
csn_status csn_docker_request(csn_remote *r, const csn_docker_call *c, csn_http_res *res,
                              csn_error **err);
bool csn_docker_id_valid(const char *id); /* of a container or exec: safe in a path */

/* container.c: as the members of csn_remote_provider. */
csn_status csn_docker_create(csn_remote *r, csn_error **err);
csn_status csn_docker_connect(csn_remote *r, const char *record, csn_error **err);
int csn_docker_write_record(const csn_remote *r, csn_buf *out);
csn_status csn_docker_destroy(csn_remote *r, csn_error **err);
bool csn_docker_has_ended(csn_remote *r); /* queries the engine */
csn_status csn_docker_extend(csn_remote *r, uint64_t ms, csn_error **err);
bool csn_docker_image_valid(const char *image);
const char *csn_docker_image(const csn_config *c); /* configured, else the variable; or NULL */

/* exec.c */
csn_status csn_docker_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
csn_status csn_docker_run_as(csn_remote *r, const char *user, const csn_remote_cmd *cmd,
                             csn_remote_exit *ret, csn_error **err);

/* mounts.c: fills d->mounts; d->socket is set. */
csn_status csn_docker_mounts(csn_docker *d, const csn_config *c, csn_error **err);
void csn_docker_mounts_release(csn_docker *d);

/* upload.c */
/* Makes CSN_DOCKER_WORKDIR writable for the commands' user, before the container starts. */
csn_status csn_docker_open_workdir(csn_remote *r, csn_error **err);
csn_status csn_docker_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err);
