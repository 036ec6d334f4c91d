/* e2b.h: what the files of the e2b backend share.
 *
 * Two servers: the control plane (sandboxes as such; REST with a key) and envd in each sandbox
 * (processes by Connect-RPC, files by HTTP; reached through one host, named by headers). */
#pragma once
#include <stdatomic.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "remote/remote.h"
#include "remote/stream.h"

extern const csn_remote_kind csn_e2b_kind;

typedef struct csn_e2b {
    char *key;            /* E2B_API_KEY */
    char *api_url;        /* no slash at the end */
    char *envd_url;       /* likewise; known once there is a sandbox */
    char *sandbox;        /* their id */
    char *token;          /* for envd, or NULL */
    char *version;        /* of envd */
    _Atomic(bool) paused; /* by this handle */
} csn_e2b;

#define CSN_E2B_MESSAGE_MAX (16u * 1024u * 1024u)

static inline csn_e2b *csn_e2b_of(const csn_remote *r)
{
    return r->own;
}

/* api.c: the control plane. */
csn_status csn_e2b_configure(csn_remote *r, csn_error **err); /* r->own from the environment */
csn_status csn_e2b_make(csn_remote *r, csn_error **err);
csn_status csn_e2b_find(csn_remote *r, const char *note, csn_error **err);
int csn_e2b_note(const csn_remote *r, csn_buf *out);
csn_status csn_e2b_end(csn_remote *r, csn_error **err);
csn_status csn_e2b_extend(csn_remote *r, uint64_t ms, csn_error **err);
csn_status csn_e2b_pause(void *state, csn_error **err); /* as csn_backend_ops.pause */
csn_status csn_e2b_resume(void *state, csn_error **err);
void csn_e2b_release(csn_remote *r);
bool csn_e2b_has_key(void);

/* network.c */
csn_status csn_e2b_check_network(const csn_config *c, csn_error **err);
void csn_e2b_put_network(csn_json *j, const csn_config *c); /* members of a create request */

/* envd.c: what requests to envd have in common. */
typedef struct csn_e2b_headers {
    char *list[16]; /* owned, NULL-terminated */
    size_t count;
    bool failed;
} csn_e2b_headers;
/* Those that every request to envd has; `type` is the content type, user may be NULL. */
void csn_e2b_headers_init(csn_e2b_headers *h, const csn_remote *r, const char *type,
                          const char *user);
void csn_e2b_headers_add(csn_e2b_headers *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void csn_e2b_headers_release(csn_e2b_headers *h);
/* A unary call: `body` is JSON, the answer is parsed into *ret (NULL: not wanted). */
csn_status csn_e2b_call(csn_remote *r, const char *method, const csn_buf *body, uint64_t ms,
                        csn_jval **ret, csn_error **err);
/* What a Connect code, or a bare status, means. */
csn_status csn_e2b_refused(const csn_remote *r, int status, const char *code, const char *words,
                           const char *what, csn_error **err);
/* An answer of envd that is not a 2xx. */
csn_status csn_e2b_failed(const csn_remote *r, const csn_http_res *res, const char *what,
                          csn_error **err);

/* files.c */
csn_status csn_e2b_put(csn_remote *r, const char *path, const csn_source *content,
                       csn_error **err);
csn_status csn_e2b_fetch(void *state, const char *path, uint64_t file_size, uint64_t offset,
                         uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                         csn_error **err); /* as csn_file_ops.fetch */

/* exec.c */
csn_status csn_e2b_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                       csn_error **err);

/* watch.c: as the entries of csn_backend_ops. */
csn_status csn_e2b_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                         csn_error **err);
csn_status csn_e2b_watch_next(void *handle, uint64_t timeout_ms, csn_event *ret,
                              csn_error **err);
void csn_e2b_watch_free(void *handle);
