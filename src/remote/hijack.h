/* hijack.h: a request to a unix socket after which its connection is a stream both ways.
 *
 * Container engines run commands so: the head of the answer is HTTP, and what follows are
 * bytes, up and down at once, until one side ends. libcurl cannot do that; everything else goes
 * through net/http. Whatever an answer says is a success of the call, as there. */
#pragma once
#include "remote/http.h"

typedef struct csn_hijack_req {
    const char *unix_path;
    const char *path; /* of a POST, with its query; no blank, no line break */
    const void *body; /* JSON, or NULL */
    size_t body_len;
    int32_t input_fd; /* -1, or what is sent until its end */
    /* As in csn_http_req: */
    uint64_t deadline_ns;
    const int32_t *cancel_fds;
    size_t cancel_count;
    uint64_t (*on_alarm)(void *ctx, csn_status why);
    int (*on_body)(void *ctx, const void *data, size_t len);
    void *ctx;
} csn_hijack_req;

/* Never repeated. ret as csn_http_do's: the end of the stream is the end of the connection, so
 * whether that was the end of what was to come must be asked of the server. */
csn_status csn_hijack_do(const csn_hijack_req *req, csn_http_res *ret, csn_error **err);
/* The connection itself once the stream has begun, in place of on_body and input_fd; -1 when
 * the answer was no. */
csn_status csn_hijack_open(const csn_hijack_req *req, csn_http_res *ret, int *ret_fd,
                           csn_error **err);
