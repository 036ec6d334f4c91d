/* clock.c: time as one number.
 *
 * Called by everyone who waits. A deadline is made once, at the public edge, and passed down;
 * nobody adds up remaining times. What must hold: a deadline that was asked for is never 0
 * (that means none), and huge times saturate instead of wrapping into the past. File times come
 * from the file system and can be any int64, also before 1970. */
#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "caisson/caisson.h"

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000u

uint64_t csn_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int64_t csn_wall_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / (int64_t)NS_PER_MS;
}

uint64_t csn_deadline_in(uint64_t ms)
{
    uint64_t now = csn_now_ns();

    if (ms == CSN_NO_LIMIT)
        return 0;
    return ms < (UINT64_MAX - now) / NS_PER_MS ? now + ms * NS_PER_MS : UINT64_MAX;
}

int csn_deadline_poll_ms(uint64_t deadline_ns)
{
    if (deadline_ns == 0)
        return -1;
    uint64_t now = csn_now_ns();
    if (deadline_ns <= now)
        return 0;
    uint64_t left = (deadline_ns - now - 1) / NS_PER_MS + 1;
    return left < INT_MAX ? (int)left : INT_MAX;
}

void csn_iso8601(int64_t epoch_ns, char ret[CSN_ISO_SIZE])
{
    int64_t sec = epoch_ns / NS_PER_S, ns = epoch_ns % NS_PER_S;
    struct tm tm;

    if (ns < 0) { /* C rounds towards zero; time before 1970 must go down */
        ns += NS_PER_S;
        sec--;
    }
    time_t t = (time_t)sec;
    gmtime_r(&t, &tm);
    size_t n = strftime(ret, CSN_ISO_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(ret + n, CSN_ISO_SIZE - n, ".%03uZ", (unsigned)ns / NS_PER_MS);
}

int64_t csn_epoch_ns(int64_t seconds, int64_t ns)
{
    if (seconds > INT64_MAX / 1000000000 - 1 || seconds < INT64_MIN / 1000000000 + 1)
        return seconds > 0 ? INT64_MAX : INT64_MIN;
    return seconds * 1000000000 + ns;
}
