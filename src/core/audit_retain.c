/* audit_retain.c: removes old logs of sandboxes that have ended.
 *
 * The clock of the host may jump, and a jump must not remove logs. Age is therefore counted in
 * days of use: the file audit/days has one line, seconds since the epoch, for each day on which
 * this user opened a sandbox, in the order in which they came. A jump of ten years is one day.
 *
 * Invariants: a log is removed only if it is certain that its sandbox has ended: it has no
 * record, and no handle has the log open. Every error keeps the log. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/audit.h"
#include "core/audit_chain.h"
#include "core/audit_in_flight.h"
#include "core/state.h"

#define DAY       86400
#define DAYS_FILE "days"
#define SUFFIX    ".jsonl"

typedef struct days {
    int64_t at[CSN_AUDIT_DAYS_MAX]; /* numbers of days, in the order of use */
    size_t count;
} days;

/* ---- days of use ------------------------------------------------------------------------ */

static void days_add(days *d, int64_t day)
{
    if (d->count == CSN_AUDIT_DAYS_MAX)
        memmove(d->at, d->at + 1, --d->count * sizeof(d->at[0]));
    d->at[d->count++] = day;
}

static bool days_has(const days *d, int64_t day)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->at[i] == day)
            return true;
    return false;
}

/* Reads the file; lines that are not numbers are skipped. */
static void days_read(int fd, days *d)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *f = copy >= 0 ? fdopen(copy, "r") : NULL;
    char line[64];

    d->count = 0;
    if (!f && copy >= 0)
        close(copy);
    while (f && fgets(line, sizeof(line), f)) {
        char *end = NULL;
        errno = 0;
        long long seconds = strtoll(line, &end, 10);
        if (errno == 0 && end != line && *end == '\n' && seconds >= 0)
            days_add(d, seconds / DAY);
    }
    if (f)
        fclose(f);
}

/* Writes the lines over the old ones, of which all but the last are usually the same. */
static bool days_write(int fd, const days *d)
{
    csn_autobuf text;
    int rc = 0;

    csn_buf_init(&text, CSN_AUDIT_DAYS_MAX * 24);
    for (size_t i = 0; i < d->count && rc == 0; i++)
        rc = csn_buf_printf(&text, "%" PRId64 "\n", d->at[i] * DAY);
    return rc == 0 && pwrite(fd, text.data, text.len, 0) == (ssize_t)text.len &&
           ftruncate(fd, (off_t)text.len) == 0;
}

/* Number of days of use after `day`; -1: the log is older than every day that is known. A day
 * that was noted counts from its place in the order; another one from the last earlier day. */
static int64_t days_after(const days *d, int64_t day)
{
    int64_t exact = -1, before = -1;

    for (size_t i = 0; i < d->count; i++) {
        if (d->at[i] == day)
            exact = (int64_t)i;
        if (d->at[i] <= day)
            before = (int64_t)i;
    }
    int64_t from = exact >= 0 ? exact : before;
    return from < 0 ? -1 : (int64_t)d->count - 1 - from;
}

/* ---- logs ------------------------------------------------------------------------------- */

typedef struct log_file {
    char id[CSN_AUDIT_NAME_MAX];
    int64_t written; /* seconds */
    uint64_t bytes;
} log_file;

typedef struct sweep {
    int dir;
    const days *days;
    uint64_t keep, max; /* CSN_NO_LIMIT: none */
    log_file *logs;     /* that stay for now */
    size_t count, room;
    uint64_t bytes; /* of all logs */
} sweep;

static bool has_ended(int dir, const char *id)
{
    char head[CSN_AUDIT_NAME_MAX + 8];
    csn_autofree char *record = NULL;

    if (!csn_name_valid(id) || csn_state_lookup(id, &record, NULL) != CSN_NOT_FOUND)
        return false;
    snprintf(head, sizeof(head), "%s.head", id);
    csn_autofd int fd = openat(dir, head, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? errno == ENOENT : !csn_audit_in_use(fd);
}

bool csn_audit_remove_in(int dir, const char *id)
{
    char name[CSN_AUDIT_NAME_MAX + 8];

    if (!has_ended(dir, id))
        return false;
    snprintf(name, sizeof(name), "%s" SUFFIX, id);
    if (unlinkat(dir, name, 0) < 0)
        return false;
    snprintf(name, sizeof(name), "%s.head", id);
    (void)unlinkat(dir, name, 0);
    return true;
}

static void remember(sweep *s, const log_file *l)
{
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 64;
        log_file *more = reallocarray(s->logs, room, sizeof(*more));
        if (!more)
            return; /* it stays */
        s->logs = more;
        s->room = room;
    }
    s->logs[s->count++] = *l;
}

/* Removes a log that is old enough; remembers the others. */
static void examine(sweep *s, const char *name)
{
    log_file l;
    struct stat st;
    size_t len = strlen(name), end = sizeof(SUFFIX) - 1;

    if (len <= end || len - end >= sizeof(l.id) || strcmp(name + len - end, SUFFIX) != 0 ||
        fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return;
    snprintf(l.id, sizeof(l.id), "%.*s", (int)(len - end), name);
    l.written = st.st_mtim.tv_sec;
    l.bytes = (uint64_t)st.st_blocks * 512 + 4096; /* with its head */
    int64_t age = days_after(s->days, l.written / DAY);
    /* Older than every day that is known: the clock was wrong, or the log is of a version that
     * noted no days. Its age counts from today. */
    if (age < 0)
        (void)utimensat(s->dir, name, NULL, AT_SYMLINK_NOFOLLOW);
    if (s->keep != CSN_NO_LIMIT && age >= 0 && (uint64_t)age >= s->keep &&
        csn_audit_remove_in(s->dir, l.id))
        return;
    s->bytes += l.bytes;
    remember(s, &l);
}

static int by_age(const void *a, const void *b)
{
    const log_file *x = a, *y = b;

    return x->written < y->written ? -1 : x->written > y->written;
}

/* Removes the oldest logs of ended sandboxes until the rest fits. */
static void shrink(sweep *s)
{
    if (s->bytes <= s->max)
        return;
    qsort(s->logs, s->count, sizeof(s->logs[0]), by_age);
    for (size_t i = 0; i < s->count && s->bytes > s->max; i++)
        if (csn_audit_remove_in(s->dir, s->logs[i].id))
            s->bytes -= s->logs[i].bytes;
}

static void sweep_logs(int audit_dir, const days *d, uint64_t keep, uint64_t max)
{
    int fd = openat(audit_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    sweep s = {.dir = fd, .days = d, .keep = keep, .max = max};
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        examine(&s, e->d_name);
    shrink(&s);
    free(s.logs);
    closedir(dir);
}

/* The check costs one statx on all but the first opening of a day. */
void csn_audit_retain_in(int audit_dir, uint64_t keep, uint64_t max)
{
    struct stat st;
    int64_t today = csn_wall_ms() / 1000 / DAY;

    if (fstatat(audit_dir, DAYS_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_mtim.tv_sec / DAY == today)
        return;
    csn_autofd int fd =
        openat(audit_dir, DAYS_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    csn_autofree days *d = malloc(sizeof(*d));
    if (fd < 0 || !d || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return; /* another process is at it */
    days_read(fd, d);
    if (!days_has(d, today))
        days_add(d, today);
    if (!days_write(fd, d))
        return;
    sweep_logs(audit_dir, d, keep ? keep : CSN_AUDIT_KEEP_DAYS, max ? max : CSN_AUDIT_MAX);
}
