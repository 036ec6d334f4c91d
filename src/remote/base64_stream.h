/* base64_stream.h: binary output and exact exit status over a transport for text.
 *
 * csn_base64_stream_script wraps a command inside the sandbox; csn_base64_stream decodes what
 * arrives. Used with CSN_REMOTE_TEXT_ONLY. */
#pragma once
#include "remote/remote.h"

extern const char csn_base64_stream_script[]; /* sh -c SCRIPT sh EXEC_ID PROGRAM ARGS... */
/* Prints 265 if the sandbox's awk can tell a signal from an exit code. */
extern const char csn_base64_stream_probe[];

typedef struct csn_base64_stream {
    const char *exec_id;
    int (*on_output)(void *ctx, int stream, const void *data, size_t len); /* decoded */
    void *ctx;
    struct {
        csn_buf line;    /* incomplete line of base64 */
        csn_buf decoded; /* not passed on yet: it may be part of the trailer */
        bool ended;      /* the trailer came */
    } streams[2];
    int status; /* of the trailer: an exit code, or 256 + signal */
} csn_base64_stream;

void csn_base64_stream_init(csn_base64_stream *s, const char *exec_id,
                            int (*on_output)(void *, int, const void *, size_t), void *ctx);
void csn_base64_stream_release(csn_base64_stream *s);
/* As csn_remote_cmd.on_output; CSN_REMOTE_DONE once both trailers came. */
int csn_base64_stream_feed(csn_base64_stream *s, int stream, const void *data, size_t len);
/* The response has ended: passes on what is left and sets in `x` how the command ended. */
void csn_base64_stream_finish(csn_base64_stream *s, csn_remote_exit *x);
