/* sweeper.h: starts and controls the program that cleans up after a jail (keeper/sweep.c).
 *
 * The sweeper runs before anything that it removes is created, so a killed library leaves
 * nothing behind. */
#pragma once
#include "runtime/runtime.h"

typedef struct csn_jail_sweeper {
    csn_keeper_start start;
    int control; /* or -1. If it is closed before a keeper is set, the sweeper cleans up */
    int pidfd;   /* or -1: not running */
    pid_t pid;
} csn_jail_sweeper;

void csn_jail_sweeper_init(csn_jail_sweeper *s);
/* Plans the limits and, if the sandbox will create anything to remove, begins to start the
 * sweeper. Later calls do nothing. */
csn_status csn_jail_sweeper_begin(csn_runtime *rt, csn_error **err);
/* Waits until the sweeper runs. If it fails, report its error rather than one that occurred
 * since csn_jail_sweeper_begin. */
csn_status csn_jail_sweeper_ready(csn_runtime *rt, csn_error **err);
/* Passes the pidfd of the keeper: the sweeper cleans up when the keeper ends. That of a
 * detached jail also gets descriptors to hold, for handles that connect when other files have
 * their paths: of the socket and, for a root caller, of the workspaces. */
csn_status csn_jail_sweeper_set_keeper(csn_runtime *rt, csn_error **err);
/* Call when nothing more will be created. wait: until the sweeper has ended. True: it still
 * runs and will clean up. */
bool csn_jail_sweeper_finish(csn_runtime *rt, bool wait);
void csn_jail_sweeper_release(csn_jail_sweeper *s);
