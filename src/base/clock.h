/* clock.h: CLOCK_MONOTONIC nanoseconds and deadlines. 0 means no deadline. */
#pragma once
#include <stddef.h>
#include <stdint.h>

uint64_t csn_now_ns(void);
int64_t csn_wall_ms(void); /* since the epoch */
/* A deadline `ms` from now; CSN_NO_LIMIT gives 0. Saturates. */
uint64_t csn_deadline_in(uint64_t ms);
/* For poll(): milliseconds left, rounded up; 0: passed; -1: no deadline. */
int csn_deadline_poll_ms(uint64_t deadline_ns);
int csn_deadline_left_ms(uint64_t deadline_ns, uint64_t now_ns); /* the same, at this time */
/* Seconds and nanoseconds since the epoch as one number; saturates before 1678 and after
 * 2262. */
int64_t csn_epoch_ns(int64_t seconds, int64_t ns);
/* ISO 8601 in UTC with milliseconds, any year: "2026-11-15T07:43:00.000Z". */
#define CSN_ISO_SIZE 40
void csn_iso8601(int64_t epoch_ns, char ret[CSN_ISO_SIZE]);
