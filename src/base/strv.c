/* strv.c: lists of strings; parsing of durations, sizes and signals.
 *
 * A user or an agent wrote the texts: a number that does not fit is refused, and the whole word
 * must match. Signal names come from a table here, because they must not depend on the C
 * library (the keeper uses another one) or its locale. */
#include "base/strv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* ---- lists ---- */

size_t csn_strv_len(const char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

void csn_strv_free(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

void csn_strv_freep(char ***v)
{
    csn_strv_free(*v);
}

bool csn_strv_has(const char *const *v, const char *s)
{
    for (size_t i = 0; v && v[i]; i++)
        if (strcmp(v[i], s) == 0)
            return true;
    return false;
}

int csn_strv_push(char ***v, const char *s)
{
    size_t n = csn_strv_len((const char *const *)*v);
    csn_autofree char *copy = strdup(s);
    char **grown = copy ? reallocarray(*v, n + 2, sizeof(*grown)) : NULL;

    if (!grown)
        return ENOMEM;
    grown[n] = CSN_STEAL(copy);
    grown[n + 1] = NULL;
    *v = grown;
    return 0;
}

bool csn_str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* ---- numbers ---- */

/* Parses the digits at s; returns their end, NULL if there are none or too many. */
static const char *scan_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    const char *p = s;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return NULL;
    if (p == s)
        return NULL;
    *ret = v;
    return p;
}

/* The number times the scale of its unit; *ret is set only on success. */
static bool scale(uint64_t v, uint64_t by, uint64_t *ret)
{
    uint64_t product;

    if (__builtin_mul_overflow(v, by, &product))
        return false;
    *ret = product;
    return true;
}

bool csn_parse_u64(const char *s, uint64_t *ret)
{
    uint64_t v;
    const char *rest = s ? scan_u64(s, &v) : NULL;

    return rest && !*rest && scale(v, 1, ret);
}

bool csn_parse_milli(const char *s, uint64_t *ret)
{
    char whole[24];
    size_t len = strcspn(s, ".");
    uint64_t n, milli = 0;

    if (len >= sizeof(whole))
        return false;
    memcpy(whole, s, len);
    whole[len] = '\0';
    if (!csn_parse_u64(whole, &n) || n > UINT32_MAX)
        return false;
    if (s[len] == '.') {
        const char *digits = s + len + 1;
        size_t count = strspn(digits, "0123456789");
        if (count == 0 || digits[count] != '\0')
            return false;
        for (size_t i = 0; i < 3; i++)
            milli = milli * 10 + (i < count ? (uint64_t)(digits[i] - '0') : 0);
        milli += count > 3 && digits[3] >= '5';
    }
    *ret = n * 1000 + milli;
    return true;
}

bool csn_parse_duration_ms(const char *s, uint64_t *ret)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
                 {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t v;
    const char *rest = s ? scan_u64(s, &v) : NULL;

    for (size_t i = 0; rest && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(rest, units[i].unit) == 0)
            return scale(v, units[i].ms, ret);
    return false;
}

bool csn_parse_size(const char *s, uint64_t *ret)
{
    static const char units[] = "KMGTP";
    uint64_t v, by = 1;
    const char *rest = s ? scan_u64(s, &v) : NULL;

    if (!rest)
        return false;
    const char *unit = *rest ? strchr(units, *rest & ~0x20) : NULL; /* either case */
    if (unit) {
        by <<= 10 * (unit - units + 1);
        rest++;
        /* "KiB" equals "K" and "KB"; "Ki" is not a unit */
        if (rest[0] == 'i' && rest[1] == 'B')
            rest++;
    }
    if (rest[0] == 'B')
        rest++;
    return !*rest && scale(v, by, ret);
}

const char *csn_size_text(uint64_t bytes, char buf[CSN_SIZE_TEXT])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t whole = bytes, tenths = 0;
    size_t u = 0;

    while (whole >= 1024 && u + 1 < sizeof(units) / sizeof(units[0])) {
        tenths = (whole & 1023) * 10 / 1024;
        whole >>= 10;
        u++;
    }
    if (tenths != 0)
        snprintf(buf, CSN_SIZE_TEXT, "%llu.%llu %s", (unsigned long long)whole,
                 (unsigned long long)tenths, units[u]);
    else
        snprintf(buf, CSN_SIZE_TEXT, "%llu %s", (unsigned long long)whole, units[u]);
    return buf;
}

/* ---- signals ---- */

#define FIRST_REALTIME 34 /* the C library keeps 32 and 33 for itself */
#define SIGNAL_MAX     64

static const char *const signal_names[SIGNAL_MAX + 1] = {
    [SIGHUP] = "SIGHUP",
    [SIGINT] = "SIGINT",
    [SIGQUIT] = "SIGQUIT",
    [SIGILL] = "SIGILL",
    [SIGTRAP] = "SIGTRAP",
    [SIGABRT] = "SIGABRT",
    [SIGBUS] = "SIGBUS",
    [SIGFPE] = "SIGFPE",
    [SIGKILL] = "SIGKILL",
    [SIGUSR1] = "SIGUSR1",
    [SIGSEGV] = "SIGSEGV",
    [SIGUSR2] = "SIGUSR2",
    [SIGPIPE] = "SIGPIPE",
    [SIGALRM] = "SIGALRM",
    [SIGTERM] = "SIGTERM",
    [SIGSTKFLT] = "SIGSTKFLT",
    [SIGCHLD] = "SIGCHLD",
    [SIGCONT] = "SIGCONT",
    [SIGSTOP] = "SIGSTOP",
    [SIGTSTP] = "SIGTSTP",
    [SIGTTIN] = "SIGTTIN",
    [SIGTTOU] = "SIGTTOU",
    [SIGURG] = "SIGURG",
    [SIGXCPU] = "SIGXCPU",
    [SIGXFSZ] = "SIGXFSZ",
    [SIGVTALRM] = "SIGVTALRM",
    [SIGPROF] = "SIGPROF",
    [SIGWINCH] = "SIGWINCH",
    [SIGIO] = "SIGIO",
    [SIGPWR] = "SIGPWR",
    [SIGSYS] = "SIGSYS",
    /* clang-format off */
    [FIRST_REALTIME] = "SIGRTMIN",
    "SIGRTMIN+1", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6",
    "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12",
    "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+16", "SIGRTMIN+17", "SIGRTMIN+18",
    "SIGRTMIN+19", "SIGRTMIN+20", "SIGRTMIN+21", "SIGRTMIN+22", "SIGRTMIN+23", "SIGRTMIN+24",
    "SIGRTMIN+25", "SIGRTMIN+26", "SIGRTMIN+27", "SIGRTMIN+28", "SIGRTMIN+29", "SIGRTMAX",
    /* clang-format on */
};

int csn_signal_number(const char *s)
{
    uint64_t n;

    if (!s)
        return 0;
    /* Any number a kernel knows may be sent, also those without a name (32, 33). */
    if (csn_parse_u64(s, &n))
        return n <= SIGNAL_MAX ? (int)n : 0;
    for (int i = 1; i <= SIGNAL_MAX; i++) {
        const char *name = signal_names[i];
        if (name && (strcasecmp(s, name) == 0 || strcasecmp(s, name + 3) == 0))
            return i;
    }
    return 0;
}

const char *csn_signal_name(int signo)
{
    return signo > 0 && signo <= SIGNAL_MAX ? signal_names[signo] : NULL;
}
