/* sweeper.h: the program that cleans up after a jail (keeper/sweep.c), as the library sees it.
 *
 * It runs before anything that it would have to remove is made, so there is no moment at which
 * a killed library leaves something that nobody knows of. */
#pragma once
#include "runtime/runtime.h"

typedef struct csn_jail_sweeper {
    csn_keeper_start start;
    int control; /* or -1. When it hangs up before the sweeper knows a keeper, it sweeps */
    int pidfd;   /* or -1: there is none */
} csn_jail_sweeper;

void csn_jail_sweeper_init(csn_jail_sweeper *s);
/* Once: it is on its way, if this sandbox will leave anything. Plans the limits for that. */
csn_status csn_jail_sweeper_begin(csn_runtime *rt, csn_error **err);
/* It runs: now things can be made. Its failure is the reason for whatever else failed since
 * (os/spawn.h). */
csn_status csn_jail_sweeper_ready(csn_runtime *rt, csn_error **err);
/* There is a keeper, and its end is the time to sweep. */
csn_status csn_jail_sweeper_tell(csn_runtime *rt, csn_error **err);
/* Nothing more will be made. Does it run, and do the rest? wait: until it has. */
bool csn_jail_sweeper_leave(csn_runtime *rt, bool wait);
void csn_jail_sweeper_release(csn_jail_sweeper *s);
