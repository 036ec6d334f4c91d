/* vercel.h: internal interface of the vercel backend.
 *
 * Vercel has one server with two kinds of objects: sandboxes, which have a name and may be
 * persistent, and sessions, the microVMs that run them. Commands and files go to a session.
 * When the session of a persistent sandbox has ended, the next request starts another session,
 * with the same files and without the old processes. */
#pragma once
#include "remote/remote.h"

extern const csn_remote_provider csn_vercel_provider;

typedef struct csn_vercel {
    char *token, *team, *project;
    bool from_triple;     /* credential from the token, team and project variables */
    char *url;            /* without trailing slash */
    char *name;           /* of the sandbox */
    pthread_mutex_t lock; /* guards session and keep_snapshots; held while a session starts */
    char *session;
    bool keep_snapshots; /* a snapshot was taken: deleting the sandbox must not delete it */
} csn_vercel;

static inline csn_vercel *csn_vercel_of(const csn_remote *r)
{
    return r->data;
}

/* request.c */
csn_status csn_vercel_configure(csn_remote *r, csn_error **err);
csn_status csn_vercel_check_credential(csn_error **err);
void csn_vercel_release(csn_remote *r);

typedef struct csn_vercel_call {
    const char *what; /* for error messages */
    const char *path; /* below the base URL or, with in_session, below the session */
    bool in_session;
    const char *query;          /* "&name=value", or NULL */
    const char *const *headers; /* additional ones, NULL-terminated; NULL: JSON content */
    void (*rewind)(void *ctx);  /* of upload_ctx, before each attempt; or NULL */
    csn_http_req http;          /* all but url and headers */
} csn_vercel_call;

/* Sends the request. If the session of a persistent sandbox has ended, starts a new session and
 * sends the request once more. CSN_OK for a 2xx; ret->sent is true only if the server may have
 * acted on the request. */
csn_status csn_vercel_request(csn_remote *r, const csn_vercel_call *c, csn_http_res *ret,
                              csn_error **err);
/* csn_vercel_request with a JSON body (or NULL) and a parsed response (or NULL). The default
 * deadline is one minute. */
csn_status csn_vercel_request_json(csn_remote *r, csn_vercel_call c, const csn_buf *body,
                                   csn_jval **ret, csn_http_res *res, csn_error **err);

/* api.c: as the members of csn_remote_provider and csn_snapshot_ops. */
csn_status csn_vercel_create(csn_remote *r, csn_error **err);
csn_status csn_vercel_connect(csn_remote *r, const char *record, csn_error **err);
int csn_vercel_write_record(const csn_remote *r, csn_buf *out);
csn_status csn_vercel_destroy(csn_remote *r, csn_error **err);
csn_status csn_vercel_extend(csn_remote *r, uint64_t ms, csn_error **err);
csn_status csn_vercel_snapshot(void *state, char **ret, csn_error **err);
/* Starts a session unless another thread has already replaced the session `ended`. Uses the
 * deadline and cancel descriptors of `needs`, the request that needs the session. */
csn_status csn_vercel_resume(csn_remote *r, const char *ended, const csn_http_req *needs,
                             csn_error **err);

/* network.c */
csn_status csn_vercel_check_network(const csn_config *c, csn_error **err);
void csn_vercel_json_network(csn_json *j, const csn_config *c); /* a member, or nothing */

/* exec.c, upload.c */
csn_status csn_vercel_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
csn_status csn_vercel_upload(csn_remote *r, const char *path, const csn_source *content,
                             csn_error **err);
