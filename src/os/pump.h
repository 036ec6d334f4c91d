/* pump.h: moves bytes between a running command and its caller. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/input.h"

/* A sink's return values, equal to those of the public header. */
#define CSN_PUMP_SINK_MORE  0
#define CSN_PUMP_SINK_COUNT 1
#define CSN_PUMP_SINK_STOP  2

typedef enum csn_pump_event {
    CSN_PUMP_CLOSED,   /* every output has ended and no other event can come */
    CSN_PUMP_MESSAGE,  /* message_fd is readable or hung up */
    CSN_PUMP_CONTROL,  /* control_fd is readable or hung up */
    CSN_PUMP_NOTICE,   /* notice_fd is readable or hung up */
    CSN_PUMP_CANCEL,   /* one of cancel_fds is readable or hung up */
    CSN_PUMP_STOP,     /* the sink asks to stop */
    CSN_PUMP_DEADLINE, /* the deadline has passed */
    CSN_PUMP_FEED,     /* the source of stdin failed */
    CSN_PUMP_ERROR,    /* poll or a read failed: output may be lost */
} csn_pump_event;

typedef struct csn_pump_out {
    int fd; /* non-blocking; -1: none, or ended */
    int stream;
    bool counting; /* the sink wants only the length */
    bool grown;
    uint64_t total;
} csn_pump_out;

/* Outputs that have ended, a finished feed and its input are closed and become -1; other
 * descriptors stay the caller's. Unused members are -1 or NULL. */
typedef struct csn_pump {
    csn_pump_out out[2];
    int (*sink)(void *ctx, int stream, const void *data, size_t len);
    void *sink_ctx;
    int feed_fd; /* non-blocking; its bytes come from `input`, or from `feed` */
    csn_input input;
    int64_t (*feed)(void *ctx, void *buf, size_t len);
    void *feed_ctx;
    int message_fd, control_fd, notice_fd;
    int cancel_fds[2];
    uint64_t deadline_ns;
    /* out[0] and feed_fd are the master of a terminal: the end of the input is typed as ^D. */
    bool terminal;
    int size_fd; /* or -1: a terminal whose changes of size `out[0]` follows */
    /* private */
    char *buf, *feed_buf;
    size_t buf_size, feed_size;
    char spare[2][512]; /* used when malloc fails */
    size_t feed_len, feed_at;
    bool feed_full; /* the last splice found no room */
    int feed_error; /* errno of CSN_PUMP_FEED, or 0 */
    /* After CSN_PUMP_FEED. The pipe stays open: its end would tell the command that the input
     * is complete. */
    bool feed_failed;
    int null_fd;
    uint64_t eof_ns; /* when ^D is typed next; 0: there is input */
    unsigned eof_ms; /* then after this long again */
    uint32_t size;   /* of size_fd, rows and columns */
    bool mute;       /* after STOP: output is discarded */
    bool broken;     /* a read failed */
} csn_pump;

void csn_pump_init(csn_pump *p);
void csn_pump_release(csn_pump *p);  /* closes outputs and feed that are still open */
void csn_pump_end_feed(csn_pump *p); /* the command sees the end of its stdin */
/* Ends the input of a terminal that has none. */
void csn_pump_no_input(csn_pump *p);
/* Sets size_fd, if it is a terminal. */
void csn_pump_follow_size(csn_pump *p, int terminal);
/* Moves bytes until an event. */
csn_pump_event csn_pump_wait(csn_pump *p);
/* Moves the bytes that are in the output pipes now. */
void csn_pump_drain_now(csn_pump *p);
bool csn_pump_has_output(const csn_pump *p); /* there are such bytes */
