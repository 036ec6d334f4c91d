/* sweeper.h: the library's side of the program that cleans up after a jail (keeper/sweep.c).
 *
 * The sweeper runs before anything that it removes is created, so a killed library leaves
 * nothing behind. */
#pragma once
#include "runtime/runtime.h"

typedef struct csn_jail_sweeper {
    csn_keeper_start start;
    int control; /* or -1. The sweeper cleans up if it is closed before a keeper is set */
    int pidfd;   /* or -1: not running */
} csn_jail_sweeper;

void csn_jail_sweeper_init(csn_jail_sweeper *s);
/* Begins its start, once, if the sandbox will create anything to remove. Plans the limits. */
csn_status csn_jail_sweeper_begin(csn_runtime *rt, csn_error **err);
/* Waits until it runs; then things may be created. If it failed, that is the cause of other
 * failures since csn_jail_sweeper_begin (os/spawn.h). */
csn_status csn_jail_sweeper_ready(csn_runtime *rt, csn_error **err);
/* Passes the pidfd of the keeper: the sweeper cleans up when the keeper ends. */
csn_status csn_jail_sweeper_set_keeper(csn_runtime *rt, csn_error **err);
/* Call when nothing more will be created. True: the sweeper runs and cleans up. wait: until it
 * has ended. */
bool csn_jail_sweeper_finish(csn_runtime *rt, bool wait);
void csn_jail_sweeper_release(csn_jail_sweeper *s);
