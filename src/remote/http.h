/* http.h: one HTTP request, from any thread, within a deadline; the only door to libcurl.
 *
 * A client is a handful of connections that requests take turns with; it may be used by many
 * threads at once. TLS is verified (against the system's list, or what SSL_CERT_FILE and
 * SSL_CERT_DIR name), redirects are not followed (credentials go where they were meant to go),
 * the usual proxy variables are honoured. An answer with any status is a success
 * of the call: what it means is the provider's to say. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "caisson/caisson.h"

typedef struct csn_http csn_http;

/* May the request be made again when it is not known whether the server acted on it? What was
 * surely not acted on (no connection, 429) is repeated in both cases. */
typedef enum { CSN_HTTP_ONCE, CSN_HTTP_SAFE } csn_http_repeat;

#define CSN_HTTP_ENOUGH 1
#define CSN_HTTP_LINGER 2

typedef struct csn_http_req {
    const char *method;
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const void *body;           /* or NULL */
    size_t body_len;
    /* In place of body: as csn_source.read. upload_len is exact, or -1 when unknown. */
    int64_t (*upload)(void *ctx, void *buf, size_t len);
    void *upload_ctx;
    int64_t upload_len;

    csn_http_repeat repeat;
    bool direct;               /* no proxy, whatever the environment says */
    uint64_t deadline_ns;      /* 0: none */
    uint64_t silence_ms;       /* no byte either way for longer: CSN_UNAVAILABLE. 0: default */
    const int32_t *cancel_fds; /* each -1, or readable once the request must end */
    size_t cancel_count;

    /* Asked once, at the deadline or a cancel (why: CSN_TIMEOUT, CSN_CANCELLED), in place of
     * failing: returns until when the answer is listened to all the same, or 0. It may make
     * requests of its own. */
    uint64_t (*on_alarm)(void *ctx, csn_status why);

    /* Gets the body of a 2xx answer as it comes; CSN_HTTP_ENOUGH ends the request without
     * error, CSN_HTTP_LINGER does if the answer does not end by itself in a moment, so that
     * the connection can be kept. NULL: it is collected. Called on the calling thread;
     * status, type and header of the result are filled by then. */
    int (*on_body)(void *ctx, const void *data, size_t len);
    void *ctx;
    size_t body_max;         /* of what is collected; 0: 1 MiB. More: CSN_TOO_LARGE */
    const char *want_header; /* a response header to keep, or NULL */
} csn_http_req;

/* Valid after a failure too: what had come by then. Release it in any case. */
typedef struct csn_http_res {
    int status;    /* 0: no answer */
    bool sent;     /* the server may have acted on it */
    bool stopped;  /* by on_body */
    unsigned made; /* requests that were tried */
    csn_buf body;  /* collected; of another status than 2xx always */
    char type[96]; /* Content-Type */
    char header[512];
} csn_http_res;

#define CSN_HTTP_SILENCE_MS 75000u /* servers of ours say something every 50 s */
#define CSN_HTTP_TRIES      4u
#define CSN_HTTP_RETRY_MS   20000u /* a longer Retry-After is not waited for */

/* unix_path: connect there whatever the URL's host says; or NULL. */
csn_status csn_http_new(const char *agent, const char *unix_path, csn_http **ret,
                        csn_error **err);
void csn_http_free(csn_http *h); /* no request may be under way */

/* CSN_UNAVAILABLE: nobody answered, or stopped answering. CSN_IO: the answer broke off or made
 * no sense. CSN_TIMEOUT, CSN_CANCELLED, CSN_TOO_LARGE. Messages name the host. */
csn_status csn_http_do(csn_http *h, const csn_http_req *req, csn_http_res *ret,
                       csn_error **err);
void csn_http_res_release(csn_http_res *r);
#define csn_autores CSN_CLEANUP(csn_http_res_release) csn_http_res

/* Appends s with everything but unreserved characters as %XX. 0 or errno. */
int csn_url_escape(csn_buf *b, const char *s);
/* "host:port" of a URL, for messages. */
void csn_url_host(const char *url, char *buf, size_t size);
