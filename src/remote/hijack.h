/* hijack.h: an HTTP request over a unix socket whose connection becomes a byte stream.
 *
 * Docker calls this connection hijacking: after the head of the response the connection carries
 * raw bytes in both directions until one side closes it. libcurl cannot do that; all other
 * requests use http.h. A response with any status is a success of the call, as there. */
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

/* Sent at most once. `ret` as csn_http_do's. The stream ends with the connection: whether the
 * output is complete must be asked of the server. */
csn_status csn_hijack_do(const csn_hijack_req *req, csn_http_res *ret, csn_error **err);
/* Returns the connection once the stream has begun, instead of using on_body and input_fd; -1
 * when the server refused. */
csn_status csn_hijack_open(const csn_hijack_req *req, csn_http_res *ret, int *ret_fd,
                           csn_error **err);
