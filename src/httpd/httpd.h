/* httpd.h: an HTTP server as a loadable module.
 *
 * The module caisson-httpd.so contains libmicrohttpd and its dependencies; a program loads it
 * only if it listens. The handler receives a complete request and responds at once or later,
 * from any thread. access.h checks tokens and host names. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caisson/caisson.h"

#define CSN_HTTPD_API_VERSION 2u

typedef struct csn_httpd csn_httpd;
typedef struct csn_httpd_req csn_httpd_req; /* a request, until its response */

typedef struct csn_httpd_header {
    const char *name, *value; /* name NULL ends a list */
} csn_httpd_header;

/* The response that refuses a request before its body is read. */
typedef struct csn_httpd_refusal {
    int status;
    const csn_httpd_header *headers; /* or NULL */
    const char *body;                /* JSON, or NULL */
} csn_httpd_refusal;

typedef struct csn_httpd_config {
    int listen_fd;     /* listening socket; owned by the server */
    uint64_t body_max; /* bytes; a longer body gets 413 */
    unsigned
        conns_max;   /* connections at once; beyond that the oldest unclaimed one is closed */
    unsigned owners; /* number of tokens; each has an equal share of connections */
    uint64_t arrive_ms; /* time for a complete request to arrive */
    unsigned idle_s;    /* timeout of an idle connection */
    unsigned threads;
    /* Called when the head has arrived. Returns true to read the body. Must not block. */
    bool (*admit)(void *ctx, csn_httpd_req *r, csn_httpd_refusal *refusal);
    /* Called when the request is complete. Respond by `reply`, or by `stream` and `finish`.
     * Must not block. */
    void (*handle)(void *ctx, csn_httpd_req *r);
    /* Called when the client disconnected before the response, which is still required. Must
     * not block. */
    void (*disconnected)(void *ctx, csn_httpd_req *r);
    void *ctx;
} csn_httpd_config;

typedef struct csn_httpd_api {
    uint32_t version;
    csn_status (*start)(const csn_httpd_config *config, csn_httpd **ret, csn_error **err);
    /* Stops accepting connections. */
    void (*quiesce)(csn_httpd *f);
    /* Call after every request has its response. */
    void (*stop)(csn_httpd *f);

    const char *(*method)(const csn_httpd_req *r);
    const char *(*path)(const csn_httpd_req *r); /* decoded, without the query */
    /* Returns NULL if the header is absent. *ret_count: number of occurrences. */
    const char *(*header)(csn_httpd_req *r, const char *name, unsigned *ret_count);
    const char *(*body)(const csn_httpd_req *r, size_t *ret_len);
    void (*set_data)(csn_httpd_req *r, void *data);
    void *(*data)(const csn_httpd_req *r);

    /* In `admit`: the request's connection is one of this owner (0 to owners - 1) from now on.
     * False: the owner has its share of connections already; refuse the request. */
    bool (*claim)(csn_httpd_req *r, unsigned owner);

    /* reply and finish release the request. Bytes are copied. */
    void (*reply)(csn_httpd_req *r, int status, const csn_httpd_header *headers,
                  const void *body, size_t len);
    void (*stream)(csn_httpd_req *r, int status, const csn_httpd_header *headers);
    bool (*push)(csn_httpd_req *r, const void *data, size_t len); /* false: cannot be sent */
    void (*finish)(csn_httpd_req *r);
} csn_httpd_api;

/* Finds and loads the module. */
csn_status csn_httpd_load(const csn_httpd_api **ret, csn_error **err);

/* Listens on "127.0.0.1:8080", "[::1]:0" or "localhost:8080" and returns the socket and its
 * actual address ("127.0.0.1:43121"). */
#define CSN_HTTPD_ADDRESS_MAX 80
csn_status csn_httpd_listen(const char *address, int *ret_fd,
                            char ret_bound[CSN_HTTPD_ADDRESS_MAX], bool *ret_loopback,
                            csn_error **err);
