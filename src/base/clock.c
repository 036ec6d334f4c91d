/* clock.c: times and deadlines as nanoseconds in one number.
 *
 * A deadline is computed once, where a call enters the library, and passed down. Invariants: a
 * requested deadline is never 0, which means none; huge times saturate. File times may be any
 * int64, also before 1970. */
#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caisson/caisson.h"

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000u

/* The keeper uses the system call: resolving the vDSO costs it two of its fourteen pages. */
static void read_clock(clockid_t clock, struct timespec *ret)
{
#ifdef CSN_FEW_PAGES
    (void)syscall(SYS_clock_gettime, clock, ret);
#else
    clock_gettime(clock, ret);
#endif
}

uint64_t csn_now_ns(void)
{
    struct timespec ts;

    read_clock(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int64_t csn_wall_ms(void)
{
    struct timespec ts;

    read_clock(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / (int64_t)NS_PER_MS;
}

uint64_t csn_deadline_in(uint64_t ms)
{
    uint64_t now = csn_now_ns();

    if (ms == CSN_NO_LIMIT)
        return 0;
    return ms < (UINT64_MAX - now) / NS_PER_MS ? now + ms * NS_PER_MS : UINT64_MAX;
}

int csn_deadline_left_ms(uint64_t deadline_ns, uint64_t now_ns)
{
    if (deadline_ns == 0)
        return -1;
    if (deadline_ns <= now_ns)
        return 0;
    uint64_t left = (deadline_ns - now_ns - 1) / NS_PER_MS + 1;
    return left < INT_MAX ? (int)left : INT_MAX;
}

int csn_deadline_poll_ms(uint64_t deadline_ns)
{
    return deadline_ns == 0 ? -1 : csn_deadline_left_ms(deadline_ns, csn_now_ns());
}

/* Gregorian date of a day counted from 1970-01-01, in eras of 400 years that begin in March, so
 * that the leap day comes last. gmtime would read the time zone files first, which is expensive
 * for a short command. */
static void civil(int64_t day, int *ret_y, unsigned *ret_m, unsigned *ret_d)
{
    const int64_t era_days = 146097;

    day += 719468; /* from 0000-03-01 */
    int64_t era = (day >= 0 ? day : day - era_days + 1) / era_days;
    unsigned of_era = (unsigned)(day - era * era_days);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* 0: March */

    *ret_d = of_year - (153 * month + 2) / 5 + 1;
    *ret_m = month < 10 ? month + 3 : month - 9;
    *ret_y = (int)(year + era * 400) + (month < 10 ? 0 : 1);
}

void csn_iso8601(int64_t epoch_ns, char ret[CSN_ISO_SIZE])
{
    int64_t sec = epoch_ns / NS_PER_S, ns = epoch_ns % NS_PER_S;
    unsigned month, day;
    int year;

    if (ns < 0) { /* C rounds towards zero; times before 1970 must round down */
        ns += NS_PER_S;
        sec--;
    }
    int64_t days = sec / 86400, left = sec % 86400;
    if (left < 0) {
        left += 86400;
        days--;
    }
    civil(days, &year, &month, &day);
    snprintf(ret, CSN_ISO_SIZE, "%04d-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month, day,
             (unsigned)left / 3600, (unsigned)left / 60 % 60, (unsigned)left % 60,
             (unsigned)ns / NS_PER_MS);
}

int64_t csn_epoch_ns(int64_t seconds, int64_t ns)
{
    if (seconds > INT64_MAX / 1000000000 - 1 || seconds < INT64_MIN / 1000000000 + 1)
        return seconds > 0 ? INT64_MAX : INT64_MIN;
    return seconds * 1000000000 + ns;
}
