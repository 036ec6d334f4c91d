/* http.h: an HTTP client with deadlines, cancellation and at-most-once requests.
 *
 * The only user of libcurl. One client keeps a pool of connections and may be used from several
 * threads at once. TLS certificates are verified (against the system's store, or SSL_CERT_FILE
 * and SSL_CERT_DIR), redirects are not followed because they would send the credential to
 * another host, and the usual proxy variables are honoured. A response with any status is
 * CSN_OK: the caller interprets the status. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "caisson/caisson.h"

typedef struct csn_http csn_http;

/* Whether to retry when the server may have acted on the request. A request that the server has
 * not acted on (no connection, status 429) is retried in both cases. */
typedef enum { CSN_HTTP_ONCE, CSN_HTTP_IDEMPOTENT } csn_http_retry;

/* Results of on_body. */
#define CSN_HTTP_STOP  1 /* end the request, without error */
#define CSN_HTTP_DRAIN 2 /* wait up to 300 ms for the response to end, then as STOP */

typedef struct csn_http_req {
    const char *method;
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const void *body;           /* or NULL */
    size_t body_len;
    /* In place of body; as csn_source.read. upload_len is exact, or -1: unknown. */
    int64_t (*upload)(void *ctx, void *buf, size_t len);
    void *upload_ctx;
    int64_t upload_len;

    csn_http_retry retry;
    bool no_proxy;             /* ignore the proxy variables */
    uint64_t deadline_ns;      /* 0: none */
    uint64_t idle_ms;          /* no byte in either direction: CSN_UNAVAILABLE. 0: default */
    const int32_t *cancel_fds; /* each -1, or readable once the request must end */
    size_t cancel_count;

    /* Called once, at the deadline or on cancellation (why: CSN_TIMEOUT, CSN_CANCELLED), before
     * the request fails. Returns a new deadline for the rest of the response, or 0 to fail. It
     * may send other requests. */
    uint64_t (*on_interrupt)(void *ctx, csn_status why);

    /* Receives the body of a 2xx response on the calling thread; status, content_type and
     * header of the result are valid then. NULL: the body is collected. */
    int (*on_body)(void *ctx, const void *data, size_t len);
    void *ctx;
    size_t body_max;             /* of a collected body; 0: 1 MiB. Over it: CSN_TOO_LARGE */
    const char *response_header; /* to keep in the result, or NULL */
} csn_http_req;

/* Also valid after a failure, with the part of the response that had arrived. Always release
 * it. */
typedef struct csn_http_res {
    int status;        /* 0: no response */
    bool sent;         /* the server may have acted on the request */
    bool stopped;      /* by on_body */
    unsigned attempts; /* requests made */
    csn_buf body;      /* collected; always for a status other than 2xx */
    char content_type[96];
    char header[512];
} csn_http_res;

#define CSN_HTTP_IDLE_MS        75000u /* E2B sends a heartbeat every 50 s */
#define CSN_HTTP_ATTEMPTS       4u
#define CSN_HTTP_RETRY_AFTER_MS 20000u /* a longer Retry-After is not retried */

/* unix_path: a socket to connect to instead of the URL's host; or NULL. */
csn_status csn_http_new(const char *agent, const char *unix_path, csn_http **ret,
                        csn_error **err);
void csn_http_free(csn_http *h); /* after all requests have returned */

/* CSN_UNAVAILABLE: no response. CSN_IO: it broke off or is malformed. CSN_TIMEOUT,
 * CSN_CANCELLED, CSN_TOO_LARGE. Messages name the host. */
csn_status csn_http_do(csn_http *h, const csn_http_req *req, csn_http_res *ret,
                       csn_error **err);
void csn_http_res_release(csn_http_res *r);
#define csn_autores CSN_CLEANUP(csn_http_res_release) csn_http_res

/* Appends s, percent-encoded except unreserved characters. 0 or errno. */
int csn_url_escape(csn_buf *b, const char *s);
/* "host:port" of a URL, without user and password. */
void csn_url_host(const char *url, char *buf, size_t size);
