/* etc.h: the copy of /etc that jails share; etc.c decides what is in it. */
#pragma once
#include <stddef.h>

#include "os/mounts.h"

/* Makes the directory `key` in the directory `store` out of a list of TEXT, LINK, DIR and BIND
 * entries below /etc, where a BIND is a file to be copied; and removes old ones that nobody
 * uses. It appears complete or not at all. 0, also when somebody else was faster, or -errno. */
int csn_etc_make(int store, const char *key, const csn_mount *list, size_t count);
/* Opens the one of that name and keeps it from being removed as long as *ret_lock is open.
 * 0 or -errno, -ENOENT: there is none. */
int csn_etc_hold(int store, const char *key, int *ret_lock);
