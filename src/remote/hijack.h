/* hijack.h: send an HTTP request over a unix socket and use its connection as a byte stream.
 *
 * Docker calls this connection hijacking: after the head of the response the connection carries
 * raw bytes in both directions until one side closes it. libcurl does not support this; all
 * other requests use http.h. As in http.h, a response with any status is CSN_OK. */
#pragma once
#include "remote/http.h"

typedef struct csn_hijack_req {
    const char *unix_path;
    const char *path; /* of the POST, with its query; no blank, no line break */
    const void *body; /* JSON, or NULL */
    size_t body_len;
    int32_t input_fd; /* sent until its end; or -1 */
    /* As in csn_http_req: */
    uint64_t deadline_ns;
    const int32_t *cancel_fds;
    size_t cancel_count;
    uint64_t (*on_interrupt)(void *ctx, csn_status why);
    int (*on_body)(void *ctx, const void *data, size_t len);
    void *ctx;
} csn_hijack_req;

/* The request is sent at most once. `ret` as for csn_http_do. The end of the connection ends
 * the stream: only the server knows whether the output is complete. */
csn_status csn_hijack_do(const csn_hijack_req *req, csn_http_res *ret, csn_error **err);
/* Returns the connection in *ret_fd once the stream has begun; on_body and input_fd are not
 * used. -1: the server refused. */
csn_status csn_hijack_open(const csn_hijack_req *req, csn_http_res *ret, int *ret_fd,
                           csn_error **err);
