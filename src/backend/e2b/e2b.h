/* e2b.h: internal interface of the e2b backend.
 *
 * E2B has two servers: the control plane, which manages sandboxes (REST, api.c), and envd in
 * each sandbox, which runs processes (Connect-RPC) and serves files (HTTP). Headers identify
 * the sandbox, because many share one host name. */
#pragma once
#include <stdatomic.h>

#include "remote/remote.h"

extern const csn_remote_provider csn_e2b_provider;

typedef struct csn_e2b {
    char *key;            /* E2B_API_KEY */
    char *api_url;        /* without trailing slash */
    char *envd_url;       /* likewise; set with the sandbox */
    char *sandbox;        /* E2B's id */
    char *token;          /* for envd, or NULL */
    _Atomic(bool) paused; /* by this handle */
} csn_e2b;

#define CSN_E2B_MESSAGE_MAX (16u * 1024u * 1024u)
#define CSN_E2B_ENVD_PORT   "49983"

static inline csn_e2b *csn_e2b_of(const csn_remote *r)
{
    return r->data;
}

/* api.c: as the members of csn_remote_provider and csn_backend_ops. */
csn_status csn_e2b_configure(csn_remote *r, csn_error **err);
csn_status csn_e2b_create(csn_remote *r, csn_error **err);
csn_status csn_e2b_connect(csn_remote *r, const char *record, csn_error **err);
int csn_e2b_write_record(const csn_remote *r, csn_buf *out);
csn_status csn_e2b_destroy(csn_remote *r, csn_error **err);
csn_status csn_e2b_extend(csn_remote *r, uint64_t ms, csn_error **err);
csn_status csn_e2b_pause(void *state, csn_error **err);
csn_status csn_e2b_resume(void *state, csn_error **err);
void csn_e2b_release(csn_remote *r);
bool csn_e2b_has_key(void);

/* network.c */
csn_status csn_e2b_check_network(const csn_config *c, csn_error **err);
void csn_e2b_json_network(csn_json *j, const csn_config *c); /* members of a create request */

/* envd.c */
typedef struct csn_e2b_headers {
    char *list[16]; /* owned, NULL-terminated */
    size_t count;
    bool failed;
} csn_e2b_headers;
/* Sets the headers that every request to envd needs. user: the user to act as, or NULL. */
void csn_e2b_headers_init(csn_e2b_headers *h, const csn_remote *r, const char *content_type,
                          const char *user);
void csn_e2b_headers_add(csn_e2b_headers *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void csn_e2b_headers_release(csn_e2b_headers *h);
/* Sends q to `path` and releases the headers. Any status is CSN_OK. */
csn_status csn_e2b_send(csn_remote *r, const char *what, const char *path, csn_e2b_headers *h,
                        csn_http_req *q, csn_http_res *res, csn_error **err);
/* csn_e2b_send; a status other than 2xx is an error. */
csn_status csn_e2b_request(csn_remote *r, const char *what, const char *path,
                           csn_e2b_headers *h, csn_http_req *q, csn_http_res *res,
                           csn_error **err);
/* A unary Connect-RPC call with a JSON body; the response is discarded. */
csn_status csn_e2b_call(csn_remote *r, const char *method, const csn_buf *body, uint64_t ms,
                        csn_error **err);
/* Fails with the error for a Connect error object {code, message}, or for the HTTP status if
 * there is none. */
csn_status csn_e2b_error(const csn_remote *r, int status, const csn_jval *error,
                         const char *what, csn_error **err);

/* files.c; fetch as csn_file_ops.fetch. */
csn_status csn_e2b_upload(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err);
csn_status csn_e2b_fetch(void *state, const char *path, uint64_t file_size, uint64_t offset,
                         uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                         csn_error **err);

/* exec.c */
csn_status csn_e2b_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                       csn_error **err);

/* watch.c: as the members of csn_file_ops. */
csn_status csn_e2b_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                         csn_error **err);
csn_status csn_e2b_watch_next(void *handle, uint64_t timeout_ms, csn_event *ret,
                              csn_error **err);
void csn_e2b_watch_free(void *handle);
