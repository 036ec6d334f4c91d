/* stdin_feed.h: a terminal as the standard input of a command, without giving the terminal
 * away. */
#pragma once
#include <pthread.h>

#include "base/error.h"

typedef struct csn_feed {
    int from, to, stop; /* the terminal, our end of the pipe, an eventfd; each -1 if not open */
    pthread_t thread;
} csn_feed;

/* Carries what is typed at `terminal` to *ret, the reading end of a pipe, which the caller
 * closes, until csn_feed_end. */
csn_status csn_feed_begin(csn_feed *f, int terminal, int *ret, csn_error **err);
void csn_feed_end(csn_feed *f);
