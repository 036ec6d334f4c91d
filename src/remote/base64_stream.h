/* base64_stream.h: carry binary output and the exact exit status over a text-only transport.
 *
 * csn_base64_stream_script runs a command inside the sandbox and encodes its output;
 * csn_base64_stream decodes it. Used with CSN_REMOTE_TEXT_ONLY. */
#pragma once
#include "remote/remote.h"

extern const char csn_base64_stream_script[]; /* sh -c SCRIPT sh EXEC_ID PROGRAM ARGS... */
/* Prints 265 if the sandbox's awk distinguishes signals from exit codes. */
extern const char csn_base64_stream_probe[];

typedef struct csn_base64_stream {
    const char *exec_id;
    int (*on_output)(void *ctx, int stream, const void *data, size_t len); /* decoded */
    void *ctx;
    struct {
        csn_buf line;    /* incomplete line of base64 */
        csn_buf decoded; /* held back: may be part of the trailer */
        bool ended;      /* the trailer has arrived */
    } streams[2];
    int status; /* of the trailer: an exit code, or 256 + signal */
} csn_base64_stream;

void csn_base64_stream_init(csn_base64_stream *s, const char *exec_id,
                            int (*on_output)(void *, int, const void *, size_t), void *ctx);
void csn_base64_stream_release(csn_base64_stream *s);
/* As csn_remote_cmd.on_output; CSN_REMOTE_DONE once both trailers have arrived. */
int csn_base64_stream_feed(csn_base64_stream *s, int stream, const void *data, size_t len);
/* Call when the response has ended: delivers the held bytes and stores the exit status in
 * `x`. */
void csn_base64_stream_finish(csn_base64_stream *s, csn_remote_exit *x);
