/* audit_in_flight.c: counts the operations in flight, and finds those that are lost.
 *
 * Each handle locks a range of its own in the head file, as long as its number of operations in
 * flight. The start of the range is random; the lock itself excludes that two handles share
 * one. The sum of the locked bytes is the number of operations in flight. All functions expect
 * that the caller holds flock on the log, so the sum and the count in the head file fit. */
#include "core/audit_in_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#define USE_BYTE   4096        /* locked by each handle while it has the log open */
#define FIRST_BYTE (1ll << 20) /* of the ranges; the text of the head file is far shorter */
#define RANGE_BITS 20          /* a handle has fewer operations in flight */
#define END_BYTE   (1ll << 60) /* of the ranges */
#define TRIES      16
#define DEPTH_MAX  1024u /* handles that are counted */

/* Operations that change the sandbox, its processes or files of the host. All others are
 * questions and reads: if their line cannot be written, they fail and return nothing. */
bool csn_audit_has_effect(const char *op)
{
    static const char *const ops[] = {
        "exec",        "start",    "write",   "write_many",  "edit",    "delete",
        "mkdir",       "rename",   "import",  "export",      "cleanup", "extend",
        "signal",      "stdin",    "fork",    "close_stdin", "pause",   "resume",
        "snapshot",    "rollback", "open",    "destroy",     "reset",   "set_workdir",
        "network_set", "undo",     "discard", "commit",
    };

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (op[0] == ops[i][0] && strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

static int set_lock(int fd, short type, int64_t start, int64_t len)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

    return fcntl(fd, F_OFD_SETLK, &l) < 0 ? errno : 0;
}

/* Chooses a range that no other handle has and locks its first byte. */
static void choose_range(csn_audit_in_flight *f, int fd)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            continue;
        int64_t slots = (END_BYTE - FIRST_BYTE) >> RANGE_BITS;
        int64_t at = FIRST_BYTE + ((int64_t)(random % (uint64_t)slots) << RANGE_BITS);
        int rc = set_lock(fd, F_WRLCK, at, 1);
        if (rc == 0)
            f->at = at;
        if (rc != EAGAIN && rc != EACCES)
            return; /* locked, or this file system has no such locks */
    }
}

void csn_audit_in_flight_add(csn_audit_in_flight *f, int head_fd)
{
    f->count++;
    if (head_fd < 0)
        return;
    if (f->at == 0)
        choose_range(f, head_fd);
    if (f->at != 0)
        (void)set_lock(head_fd, F_WRLCK, f->at, f->count);
}

void csn_audit_in_flight_drop(csn_audit_in_flight *f, int head_fd)
{
    if (f->count == 0)
        return;
    f->count--;
    if (head_fd >= 0 && f->at != 0)
        (void)set_lock(head_fd, F_UNLCK, f->at + f->count, 1);
}

void csn_audit_in_flight_renew(csn_audit_in_flight *f, int head_fd)
{
    f->at = 0;
    if (f->count == 0 || head_fd < 0)
        return;
    choose_range(f, head_fd);
    if (f->at != 0)
        (void)set_lock(head_fd, F_WRLCK, f->at, f->count);
}

/* Adds up the locks of other handles from `from` to `to`. The kernel reports any one of them,
 * so both sides of it are examined as well. 0 or errno. */
static int sum_locks(int fd, int64_t from, int64_t to, unsigned depth, uint64_t *sum)
{
    while (from < to) {
        struct flock l = {.l_type = F_WRLCK, .l_start = from, .l_len = to - from};
        if (depth == 0)
            return E2BIG;
        if (fcntl(fd, F_OFD_GETLK, &l) < 0)
            return errno;
        if (l.l_type == F_UNLCK)
            return 0;
        if (l.l_len <= 0 || l.l_start < from || l.l_start + l.l_len > to)
            return EBADMSG; /* not a lock of this library */
        *sum += (uint64_t)l.l_len;
        int rc = sum_locks(fd, from, l.l_start, depth - 1, sum);
        if (rc != 0)
            return rc;
        from = l.l_start + l.l_len;
    }
    return 0;
}

uint64_t csn_audit_in_flight_lost(int head_fd, uint64_t open, uint64_t own)
{
    uint64_t alive = own;

    if (head_fd < 0 || open <= own ||
        sum_locks(head_fd, FIRST_BYTE, END_BYTE, DEPTH_MAX, &alive) != 0)
        return 0;
    return open > alive ? open - alive : 0;
}

void csn_audit_use_mark(int head_fd)
{
    if (head_fd >= 0)
        (void)set_lock(head_fd, F_RDLCK, USE_BYTE, 1);
}

bool csn_audit_in_use(int head_fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_start = USE_BYTE, .l_len = 1};

    return fcntl(head_fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
