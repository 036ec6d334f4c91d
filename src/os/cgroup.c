/* cgroup.c: enters, kills, reads and removes the groups of one sandbox.
 *
 * The processes inside are hostile and fork while they are being killed. A process with SIGKILL
 * pending cannot finish a fork, so passes over the group converge; if they do not, pids.max
 * stops the forking. Pids are recycled: a process is pinned by a pidfd, and its membership is
 * checked again, before it is signalled. The paths come from the library, never from the
 * sandbox. The keeper links this file. */
#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "os/cgroup_internal.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define TIMEOUT_MS            1000u /* for the last tasks of a group to vanish */
#define PASSES_BEFORE_NO_FORK 3

/* To move a process the kernel takes a lock against every fork and exit of the machine, which
 * costs milliseconds, unless a thread moves itself alone: v1 `tasks`. v2 allows that only
 * within one threaded subtree. */
int csn_cgroup_procs_fds(const csn_cgroup *g, int ret[CSN_CGROUP_KINDS])
{
    char path[CSN_CGROUP_PATH_MAX];

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];
        int rc = csn_cgroup_join(path, d->path, d->version == 1 ? "tasks" : "cgroup.procs");
        ret[i] = rc < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
        if (ret[i] >= 0)
            continue;
        rc = rc < 0 ? rc : -errno;
        while (i > 0)
            close(ret[--i]);
        return rc;
    }
    return 0;
}

/* Groups of sandboxes have no nested groups, so local and hierarchical counts are the same. */
void csn_cgroup_read_events(const csn_cgroup *g, csn_cgroup_events *ret)
{
    memset(ret, 0xff, sizeof(*ret)); /* all CSN_CGROUP_UNKNOWN */
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];
        bool v2 = d->version == 2;

        if (d->kinds & 1u << CSN_CGROUP_MEMORY) {
            ret->memory_peak = csn_cgroup_read_u64(
                d->path, v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
            ret->memory_oom_kills = csn_cgroup_read_u64(
                d->path, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
        }
        if (d->kinds & 1u << CSN_CGROUP_PIDS)
            ret->pids_limit_hits = csn_cgroup_read_u64(d->path, "pids.events", "max");
    }
}

/* Is the process in the group of that name, or in one below it? `name` starts with a slash. */
static bool is_member(pid_t pid, const char *name)
{
    char dir[32], text[8192];
    size_t n = strlen(name);

    snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
    if (csn_cgroup_read(dir, "cgroup", text, sizeof(text)) < 0)
        return false;
    for (const char *p = text; (p = strstr(p, name)); p += n)
        if (p[n] == '\n' || p[n] == '/' || p[n] == '\0')
            return true;
    return false;
}

static void kill_member(pid_t pid, const char *name)
{
    csn_autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd >= 0 && is_member(pid, name))
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

typedef struct kill_pass {
    const char *name;
    unsigned depth;
    size_t seen;
} kill_pass;

/* Signals the processes of one group and of those nested in it. */
static int kill_in(void *ctx, const char *path)
{
    kill_pass *k = ctx;
    char procs[CSN_CGROUP_PATH_MAX];
    csn_autofree char *line = NULL;
    size_t cap = 0;

    if (csn_cgroup_join(procs, path, "cgroup.procs") < 0)
        return 0;
    FILE *f = fopen(procs, "re");
    while (f && getline(&line, &cap, f) > 0) {
        long pid = strtol(line, NULL, 10);
        k->seen++;
        /* 0: a process of a pid namespace that is not visible here. */
        if (pid > 0 && pid != getpid())
            kill_member((pid_t)pid, k->name);
    }
    if (f)
        fclose(f);
    if (k->depth < CSN_CGROUP_DEPTH_MAX) {
        k->depth++;
        (void)csn_cgroup_each_child(path, kill_in, k);
        k->depth--;
    }
    return 0;
}

/* One pass over all groups. Returns how many processes were there. */
static size_t kill_all(const csn_cgroup *g)
{
    kill_pass k = {0};

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        k.name = strrchr(g->dirs[i].path, '/');
        if (k.name)
            (void)kill_in(&k, g->dirs[i].path);
    }
    return k.seen;
}

/* Groups without that file are skipped. */
static void write_all(const csn_cgroup *g, const char *file, const char *text)
{
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++)
        (void)csn_cgroup_write(g->dirs[i].path, file, text);
}

static void backoff(long *us)
{
    struct timespec ts = {.tv_nsec = *us * 1000};

    (void)nanosleep(&ts, NULL);
    *us = *us < 12800 ? *us * 2 : 12800;
}

int csn_cgroup_kill(const csn_cgroup *g)
{
    uint64_t deadline = csn_deadline_in(TIMEOUT_MS);
    long us = 100;

    write_all(g, "cgroup.kill", "1"); /* v2 since Linux 5.14: the whole tree in one step */
    for (unsigned pass = 1; kill_all(g) > 0; pass++) {
        if (csn_deadline_poll_ms(deadline) == 0)
            return -EBUSY;
        if (pass == PASSES_BEFORE_NO_FORK)
            write_all(g, "pids.max", "0");
        backoff(&us);
    }
    return 0;
}

int csn_cgroup_remove(const csn_cgroup *g)
{
    uint64_t deadline = csn_deadline_in(TIMEOUT_MS);
    int result = 0;

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        long us = 100;
        int rc = csn_cgroup_rmdir(NULL, g->dirs[i].path);

        /* A process leaves its group some time after its parent has reaped it. */
        while (rc == -EBUSY && csn_deadline_poll_ms(deadline) != 0) {
            backoff(&us);
            rc = csn_cgroup_rmdir(NULL, g->dirs[i].path);
        }
        if (rc < 0 && rc != -ENOENT && result == 0)
            result = rc;
    }
    return result;
}
