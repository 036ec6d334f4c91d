/* stdin_feed.h: connects a terminal to a command through a pipe. */
#pragma once
#include <pthread.h>

#include "base/error.h"

typedef struct csn_feed {
    int from, to, stop; /* the terminal, the writing end of the pipe, an eventfd */
    pthread_t thread;
} csn_feed;

/* Copies input of `terminal` to a pipe until csn_feed_end. *ret: the reading end; the caller
 * closes it. */
csn_status csn_feed_begin(csn_feed *f, int terminal, int *ret, csn_error **err);
void csn_feed_end(csn_feed *f);
