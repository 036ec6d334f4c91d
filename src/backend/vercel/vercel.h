/* vercel.h: what the files of the vercel backend share.
 *
 * One server for everything: sandboxes, which have a name and last, and sessions, which are
 * machines that run them and end. Work goes to a session; when it has ended and the sandbox is
 * one that lasts, another one takes its place. */
#pragma once
#include <pthread.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "remote/remote.h"
#include "remote/stream.h"

extern const csn_remote_kind csn_vercel_kind;

typedef struct csn_vercel {
    char *token, *team, *project;
    bool triple;          /* of the variables, not the one: an index of secrets */
    char *url;            /* no slash at the end */
    char *name;           /* of the sandbox */
    pthread_mutex_t lock; /* guards what follows; held while a session is replaced */
    char *session;
    bool kept; /* a snapshot was asked for: deleting the sandbox must not delete it */
} csn_vercel;

static inline csn_vercel *csn_vercel_of(const csn_remote *r)
{
    return r->own;
}

/* It outlives its sessions: with its files, not with its processes. */
static inline bool csn_vercel_lasts(const csn_remote *r)
{
    return r->found || (r->config->flags & CSN_OPEN_DETACHED);
}

/* request.c: where and with what; one request. */
csn_status csn_vercel_configure(csn_remote *r, csn_error **err); /* r->own */
csn_status csn_vercel_has_credential(csn_error **err);
void csn_vercel_release(csn_remote *r);

typedef struct csn_vercel_call {
    const char *what; /* for messages */
    const char *path; /* below the base or, with `session`, below that session */
    bool session;
    const char *query;          /* "&name=value", or NULL */
    const char *const *headers; /* more of them, NULL-terminated; or NULL for JSON */
    void (*rewind)(void *ctx);  /* of upload_ctx, before each time it is sent; or NULL */
    csn_http_req http;          /* all but url and headers */
} csn_vercel_call;

/* Makes the request; a session that has ended is replaced once, if the sandbox lasts. CSN_OK is
 * a 2xx; ret->sent is true only if the server may have acted on it. */
csn_status csn_vercel_do(csn_remote *r, const csn_vercel_call *c, csn_http_res *ret,
                         csn_error **err);
/* A JSON body and a parsed answer (ret may be NULL), within a minute. */
csn_status csn_vercel_ask(csn_remote *r, csn_vercel_call c, const csn_buf *body, csn_jval **ret,
                          csn_http_res *res, csn_error **err);

/* api.c: the life of a sandbox. */
csn_status csn_vercel_make(csn_remote *r, csn_error **err);
csn_status csn_vercel_find(csn_remote *r, const char *note, csn_error **err);
int csn_vercel_note(const csn_remote *r, csn_buf *out);
csn_status csn_vercel_end(csn_remote *r, csn_error **err);
csn_status csn_vercel_extend(csn_remote *r, uint64_t ms, csn_error **err);
csn_status csn_vercel_snapshot(void *state, char **ret, csn_error **err); /* as in the ops */
/* A session in place of `ended`, unless somebody else has got one meanwhile. Its deadline and
 * what cancels it are those of the request that needs it. */
csn_status csn_vercel_resume(csn_remote *r, const char *ended, const csn_http_req *needs,
                             csn_error **err);
bool csn_vercel_id_fits(const char *id);

/* policy.c: network rules in the provider's words. */
csn_status csn_vercel_check_net(const csn_config *c, csn_error **err);
void csn_vercel_put_policy(csn_json *j, const csn_config *c); /* a member, or nothing */

/* exec.c, files.c */
csn_status csn_vercel_run(csn_remote *r, const csn_remote_cmd *cmd, csn_remote_exit *ret,
                          csn_error **err);
csn_status csn_vercel_put(csn_remote *r, const char *path, const csn_source *content,
                          csn_error **err);
