/* alloc.h: makes the nth allocation of the library fail.
 *
 * The test program is linked with --wrap for every allocating function, so only calls from our
 * own objects are counted; libc and the other libraries keep their memory. One thread. */
#pragma once
#include <stdbool.h>

/* From now on: the nth allocation fails (and every later one with `all`). */
void csn_alloc_arm(unsigned long nth, bool all);
/* Stops it; true when an allocation was made to fail. */
bool csn_alloc_disarm(void);
