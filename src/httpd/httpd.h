/* httpd.h: an HTTP server in front of a handler, as a module.
 *
 * The module caisson-httpd.so holds libmicrohttpd and what that brings; a program loads it when
 * it is told to listen. What may pass (tokens, hosts) is access.h; what is said is the
 * handler's. Nothing blocks: the handler is given a whole request and answers it when it can,
 * at once or later, from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caisson/caisson.h"

#define CSN_HTTPD_API_VERSION 1u

typedef struct csn_httpd csn_httpd;
typedef struct csn_httpd_req csn_httpd_req; /* one request, until it is answered */

typedef struct csn_httpd_header {
    const char *name, *value; /* a name of NULL ends a list */
} csn_httpd_header;

/* What a request is refused with before its body is read. */
typedef struct csn_httpd_refusal {
    int status;
    const csn_httpd_header *headers; /* or NULL */
    const char *body;                /* JSON, or NULL */
} csn_httpd_refusal;

typedef struct csn_httpd_config {
    int listen_fd;      /* a listening socket; the server takes it over */
    uint64_t body_max;  /* bytes; more is 413 */
    unsigned conns_max; /* connections at once */
    uint64_t arrive_ms; /* for a request to arrive completely */
    unsigned idle_s;    /* of a connection that says nothing */
    unsigned threads;
    /* The head of a request is there. true: go on and read the body. Must not block. */
    bool (*admit)(void *ctx, csn_httpd_req *r, csn_httpd_refusal *no);
    /* It is complete: to be answered by `reply` or by `stream` and `finish`. Must not block. */
    void (*handle)(void *ctx, csn_httpd_req *r);
    /* The client has gone, and the request is not answered yet: it still has to be. Must not
     * block. */
    void (*gone)(void *ctx, csn_httpd_req *r);
    void *ctx;
} csn_httpd_config;

typedef struct csn_httpd_api {
    uint32_t version;
    csn_status (*start)(const csn_httpd_config *config, csn_httpd **ret, csn_error **err);
    /* No new connections from now on; those that are there stay. */
    void (*quiesce)(csn_httpd *f);
    /* After every request was answered. */
    void (*stop)(csn_httpd *f);

    const char *(*method)(const csn_httpd_req *r);
    const char *(*path)(const csn_httpd_req *r); /* decoded, without the query */
    /* NULL: there is none. With *ret_count: how often it is there. */
    const char *(*header)(csn_httpd_req *r, const char *name, unsigned *ret_count);
    const char *(*body)(const csn_httpd_req *r, size_t *ret_len);
    void (*set_data)(csn_httpd_req *r, void *data);
    void *(*data)(const csn_httpd_req *r);

    /* The request is gone after reply and finish. Bytes are copied. */
    void (*reply)(csn_httpd_req *r, int status, const csn_httpd_header *headers,
                  const void *body, size_t len);
    void (*stream)(csn_httpd_req *r, int status, const csn_httpd_header *headers);
    bool (*push)(csn_httpd_req *r, const void *data, size_t len); /* false: cannot be sent */
    void (*finish)(csn_httpd_req *r);
} csn_httpd_api;

/* Finds and loads the module. */
csn_status csn_httpd_load(const csn_httpd_api **ret, csn_error **err);

/* "127.0.0.1:8080", "[::1]:0", "localhost:8080" -> a listening socket, and its address as it
 * is ("127.0.0.1:43121"). */
#define CSN_HTTPD_ADDRESS_MAX 80
csn_status csn_httpd_listen(const char *address, int *ret_fd,
                            char ret_bound[CSN_HTTPD_ADDRESS_MAX], bool *ret_loopback,
                            csn_error **err);
