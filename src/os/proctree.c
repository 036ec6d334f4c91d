/* proctree.c: finds the processes of a command without namespaces or cgroups.
 *
 * Members may be hostile: they fork, exit, change session and group, and stop during a scan. A
 * member is therefore signalled as soon as it is seen: new pids lie ahead of the scan (the
 * kernel lists /proc in pid order), and a process with a fatal or stopping signal pending
 * cannot finish a fork. A scan that lost a process between listing and checking proves nothing,
 * because that process may have left a child. Invariants: 0 is returned only after two scans in
 * a row found and lost no member; before a signal the process is pinned by a pidfd and checked
 * again, so that a recycled pid is never hit.
 *
 * The tag is a soft RLIMIT_RTTIME far above any real one: it affects only real-time tasks, so
 * programs ignore it, and it is readable for every process of the user. Set-id programs hide
 * it; they are found by ancestry as long as that lasts. */
#include "os/proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

#ifndef RLIMIT_RTTIME
#define RLIMIT_RTTIME 15
#endif

/* The kernel's own layouts: libc's differ between glibc and musl. */
struct rlimit_raw {
    uint64_t soft, hard;
};

struct dirent_raw {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

void csn_proctree_release(csn_proctree *t)
{
    free(t->items);
    *t = (csn_proctree){0};
}

uint64_t csn_proctree_tag(pid_t pid)
{
    struct rlimit_raw r;

    return syscall(SYS_prlimit64, pid, RLIMIT_RTTIME, NULL, &r) == 0 ? r.soft : 0;
}

int csn_proctree_mark(uint64_t tag)
{
    struct rlimit_raw r;

    if (syscall(SYS_prlimit64, 0, RLIMIT_RTTIME, NULL, &r) < 0)
        return -errno;
    r.soft = tag;
    return syscall(SYS_prlimit64, 0, RLIMIT_RTTIME, &r, NULL) < 0 ? -errno : 0;
}

static pid_t name_to_pid(const char *s)
{
    long v = 0;

    for (; *s; s++) {
        if (*s < '0' || *s > '9' || v > 100000000)
            return 0;
        v = v * 10 + (*s - '0');
    }
    return (pid_t)v;
}

/* Field n (3 = state) of a stat line. The process name may hold anything, so fields are counted
 * from the last parenthesis. */
static const char *stat_field(const char *line, int n)
{
    const char *p = strrchr(line, ')');

    for (int i = 2; p && i < n; i++) {
        p = strchr(p, ' ');
        if (p)
            p++;
    }
    return p;
}

/* Reads ppid and start time. 1: alive; 0: a zombie (one with living threads counts as alive);
 * -1: no such process. */
static int read_stat(int procfd, pid_t pid, csn_proc *ret)
{
    char path[32], line[1024];

    snprintf(path, sizeof(path), "%d/stat", (int)pid);
    csn_autofd int fd = openat(procfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    if (n <= 0)
        return -1;
    line[n] = '\0';
    const char *state = stat_field(line, 3);
    const char *ppid = stat_field(line, 4);
    const char *threads = stat_field(line, 20);
    const char *start = stat_field(line, 22);
    if (!state || !ppid || !threads || !start)
        return -1;
    if ((*state == 'Z' || *state == 'X') && strtol(threads, NULL, 10) <= 1)
        return 0;
    *ret = (csn_proc){
        .pid = pid, .ppid = (pid_t)strtol(ppid, NULL, 10), .start = strtoull(start, NULL, 10)};
    return 1;
}

/* 1: the process has the tag, 0: not, -1: it is gone. */
static int has_tag(const csn_proctree_query *w, pid_t pid)
{
    if (w->tag_hi == 0)
        return 0;
    errno = 0;
    uint64_t tag = csn_proctree_tag(pid);
    if (tag == 0 && errno == ESRCH)
        return -1;
    bool stray = w->ours_hi != 0 && pid != getpid() && (tag < w->ours_lo || tag > w->ours_hi);
    return stray || (tag >= w->tag_lo && tag <= w->tag_hi);
}

static int add_proc(csn_proctree *t, const csn_proc *p)
{
    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 256;
        if (cap > CSN_PROC_SCAN_MAX)
            return -E2BIG;
        csn_proc *grown = realloc(t->items, cap * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        t->items = grown;
        t->cap = cap;
    }
    t->items[t->count++] = *p;
    return 0;
}

static csn_proc *find_proc(const csn_proctree *t, pid_t pid)
{
    size_t lo = 0, hi = t->count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->items[mid].pid == pid)
            return &t->items[mid];
        if (t->items[mid].pid < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const csn_proc *)a)->pid, y = ((const csn_proc *)b)->pid;

    return x < y ? -1 : x > y;
}

typedef struct scan_state {
    const csn_proctree_query *w;
    const csn_proctree *before;
    csn_proctree *t;
    int procfd;
    int signo;
    bool cont;
    bool quick; /* only tagged processes and known members */
    bool lost;  /* a process that may have been a member was gone before it was checked */
} scan_state;

static bool was_member(const csn_proctree *before, const csn_proc *p)
{
    const csn_proc *old = find_proc(before, p->pid);

    return old && old->member && old->start == p->start;
}

/* A zombie accepts signals too, but must not be counted. */
static void send_signal(const scan_state *s, int pidfd)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    if (poll(&ended, 1, 0) > 0)
        return;
    s->t->hit += syscall(SYS_pidfd_send_signal, pidfd, s->signo, NULL, 0) == 0;
    if (s->cont)
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
}

/* Pins the process, checks that it is still the same one, then signals it. */
static void signal_proc(const scan_state *s, const csn_proc *p)
{
    csn_proc again;

    if (s->signo == 0 || p->pid == getpid())
        return;
    csn_autofd int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0)
        return;
    if (read_stat(s->procfd, p->pid, &again) != 1 || again.start != p->start)
        return;
    send_signal(s, fd);
}

/* Signals a tagged process at once. The tag is read again after pinning: if the pid was
 * recycled before, the second check fails; if after, the pinned process is dead. */
static int check_tag(const scan_state *s, pid_t pid)
{
    int tag = has_tag(s->w, pid);

    if (tag != 1 || s->signo == 0 || (pid == s->w->root && !s->w->include_root) ||
        pid == getpid())
        return tag;
    csn_autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && has_tag(s->w, pid) == 1)
        send_signal(s, fd);
    return tag;
}

/* Decides whether a listed pid is a member; one with the tag has been signalled. 0 or
 * -errno. */
static int check_pid(scan_state *s, pid_t pid, int tag)
{
    csn_proc p;

    if (tag < 0) {
        s->lost = true;
        return 0;
    }
    const csn_proc *old = find_proc(s->before, pid);
    if (s->quick && tag == 0 && pid != s->w->root && !(old && old->member))
        return 0;
    int alive = read_stat(s->procfd, pid, &p);
    if (alive != 1) {
        s->lost |= tag == 1; /* it may have forked before it ended */
        return 0;
    }
    p.member = pid == s->w->root ? s->w->include_root : tag == 1 || was_member(s->before, &p);
    if (p.member && tag != 1)
        signal_proc(s, &p);
    return add_proc(s->t, &p);
}

/* /proc is read in small parts and the tags of each part first: reading a tag is so fast that
 * few processes can exit before it. */
static int list_procs(scan_state *s)
{
    _Alignas(8) char buf[1024];
    pid_t pids[sizeof(buf) / 24];
    int tags[sizeof(buf) / 24];

    for (;;) {
        long n = syscall(SYS_getdents64, s->procfd, buf, sizeof(buf));
        size_t count = 0;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (s->w->reap)
            s->w->reap(s->w->ctx);
        for (long at = 0; at < n && count < sizeof(pids) / sizeof(pids[0]);) {
            const struct dirent_raw *d = (const void *)(buf + at);
            at += d->reclen;
            pids[count] = name_to_pid(d->name);
            if (pids[count] > 0) {
                tags[count] = check_tag(s, pids[count]);
                count++;
            }
        }
        for (size_t i = 0; i < count; i++) {
            int rc = check_pid(s, pids[i], tags[i]);
            if (rc < 0)
                return rc;
        }
    }
}

/* Descendants of members, and of the root, are members. */
static void mark_descendants(const scan_state *s)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < s->t->count; i++) {
            csn_proc *p = &s->t->items[i];
            if (p->member || p->pid == s->w->root)
                continue;
            const csn_proc *parent = find_proc(s->t, p->ppid);
            if (!(s->w->root > 0 && p->ppid == s->w->root) && !(parent && parent->member))
                continue;
            p->member = more = true;
            signal_proc(s, p);
        }
    }
}

static ssize_t scan(csn_proctree *t, const csn_proctree_query *w, int signo, bool cont,
                    bool quick, size_t *ret_fresh, bool *ret_lost)
{
    csn_autofd int procfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    csn_proctree before = *t;
    uint64_t whose = w->tag_hi != 0 ? w->tag_lo : (uint64_t)w->root;
    scan_state s = {w, &before, t, procfd, signo, cont, quick, false};
    size_t fresh = 0;

    if (procfd < 0)
        return -errno;
    if (before.whose != whose)
        before.count = 0; /* those are of another tree */
    *t = (csn_proctree){.whose = whose};
    int rc = list_procs(&s);
    if (rc == 0) {
        if (t->count > 1) /* usually sorted already, but not guaranteed */
            qsort(t->items, t->count, sizeof(*t->items), by_pid);
        if (!quick)
            mark_descendants(&s);
        for (size_t i = 0; i < t->count; i++) {
            if (!t->items[i].member)
                continue;
            t->seen++;
            fresh += !was_member(&before, &t->items[i]);
        }
    }
    csn_proctree_release(&before);
    *ret_fresh = fresh;
    *ret_lost = s.lost;
    return rc < 0 ? rc : (ssize_t)t->seen;
}

ssize_t csn_proctree_scan_tagged(csn_proctree *t, const csn_proctree_query *w, int signo,
                                 size_t *ret_fresh)
{
    size_t fresh = 0;
    bool lost = false;
    ssize_t n = scan(t, w, signo, false, true, &fresh, &lost);

    if (n >= 0)
        *ret_fresh = fresh + lost;
    return n;
}

ssize_t csn_proctree_scan(csn_proctree *t, const csn_proctree_query *w, int signo, bool cont,
                          size_t *ret_fresh)
{
    size_t fresh = 0;
    bool lost = false;
    ssize_t n = scan(t, w, signo, cont, false, &fresh, &lost);

    if (n == 0 && !lost) /* once more, for a new pid below the position of the scan */
        n = scan(t, w, signo, cont, true, &fresh, &lost);
    if (n < 0)
        return n;
    if (ret_fresh)
        *ret_fresh = fresh + lost;
    return n == 0 && lost ? 1 : n;
}
