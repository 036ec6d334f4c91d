/* pump.h: carries bytes between a running command and whoever called it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sink answers; the values of the public header. */
#define CSN_PUMP_SINK_MORE  0
#define CSN_PUMP_SINK_COUNT 1
#define CSN_PUMP_SINK_STOP  2

typedef enum csn_pump_event {
    CSN_PUMP_CLOSED,   /* every output is at its end, and nothing else was to be waited for */
    CSN_PUMP_MESSAGE,  /* message_fd is readable or hung up */
    CSN_PUMP_CONTROL,  /* control_fd is */
    CSN_PUMP_CANCEL,   /* one of cancel_fds is */
    CSN_PUMP_STOP,     /* the sink wants no more */
    CSN_PUMP_DEADLINE, /* it passed */
    CSN_PUMP_FEED,     /* the source of stdin failed */
    CSN_PUMP_ERROR,    /* poll failed, or reading an output did: some of it may be lost */
} csn_pump_event;

typedef struct csn_pump_out {
    int fd; /* non-blocking; -1: none, or at its end */
    int stream;
    bool counting; /* the sink only wants to know how much */
    bool grown;
    uint64_t total;
} csn_pump_out;

/* Descriptors stay the caller's, except that outputs at their end and a finished feed are
 * closed and become -1. All that is not used is -1 or NULL. */
typedef struct csn_pump {
    csn_pump_out out[2];
    int (*sink)(void *ctx, int stream, const void *data, size_t len);
    void *sink_ctx;
    int feed_fd; /* non-blocking */
    int64_t (*feed)(void *ctx, void *buf, size_t len);
    void *feed_ctx;
    int message_fd, control_fd;
    int cancel_fds[2];
    uint64_t deadline_ns;
    /* private */
    char *buf, *feed_buf;
    size_t buf_size, feed_size;
    char spare[2]
              [512]; /* instead of them, when there is no memory: slow, but nothing is lost */
    size_t feed_len, feed_at;
    int null_fd;
    bool mute;   /* after STOP bytes are read and dropped */
    bool broken; /* an output could not be read */
} csn_pump;

void csn_pump_init(csn_pump *p);
void csn_pump_release(csn_pump *p); /* closes outputs and feed that are still open */
/* Moves bytes until there is something to tell. */
csn_pump_event csn_pump_wait(csn_pump *p);
/* Moves what is in the output pipes at this moment, and no more. */
void csn_pump_drain_now(csn_pump *p);
