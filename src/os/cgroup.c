/* cgroup.c: processes into a group, and the end of both.
 *
 * Called by the library, and by the program that cleans up after a keeper: with cgroup_io.c
 * this file is all that one needs. The processes inside are hostile: they fork while they are
 * being killed. A process with SIGKILL pending cannot finish a fork, so passes over the group
 * converge, and one that does not is forbidden to fork. Pids are recycled: who is signalled is
 * pinned first and then asked once more whether it is in the group. The directories come from a
 * csn_cgroup, thus from a spec that nobody in the sandbox could write. */
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
#include "os/cgroup_parts.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define PASSES_BEFORE_NO_FORK 3

int csn_cgroup_attach(const csn_cgroup *g, pid_t pid)
{
    char text[16];

    if (pid <= 0) /* 0 would be the caller */
        return -EINVAL;
    snprintf(text, sizeof(text), "%d", (int)pid);
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        int rc = csn_cgroup_put(g->dirs[i].path, "cgroup.procs", text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The kernel takes a lock against every fork and exit of the machine to move a process, unless
 * a thread moves itself alone; v2 knows that only inside one tree of threads. */
int csn_cgroup_enter(const csn_cgroup *g)
{
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];
        int rc = csn_cgroup_put(d->path, d->version == 1 ? "tasks" : "cgroup.procs", "0");
        if (rc < 0)
            return rc;
    }
    return 0;
}

int csn_cgroup_doors(const csn_cgroup *g, int ret[CSN_CGROUP_KINDS])
{
    char path[CSN_CGROUP_PATH_MAX];
    int rc = 0;

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        const csn_cgroup_dir *d = &g->dirs[i];
        rc = csn_cgroup_join(path, d->path, d->version == 1 ? "tasks" : "cgroup.procs");
        ret[i] = rc < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
        if (rc == 0 && ret[i] < 0)
            rc = -errno;
        if (rc == 0)
            continue;
        while (i > 0)
            close(ret[--i]);
        return rc;
    }
    return 0;
}

/* Is the process in the group of that name, or in one below it? `name` starts with a slash. */
static bool is_in(pid_t pid, const char *name)
{
    char dir[32], text[8192];
    size_t n = strlen(name);

    snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
    if (csn_cgroup_get(dir, "cgroup", text, sizeof(text)) < 0)
        return false;
    for (const char *p = text; (p = strstr(p, name)); p += n)
        if (p[n] == '\n' || p[n] == '/' || p[n] == '\0')
            return true;
    return false;
}

static void kill_one(pid_t pid, const char *name)
{
    csn_autofd int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd >= 0 && is_in(pid, name))
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

typedef struct kill_pass {
    const char *name;
    unsigned depth;
    size_t seen;
} kill_pass;

/* Signals everybody in one group and in what is nested in it. */
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
        /* 0: somebody of a pid namespace we cannot see into. Never kill(0). */
        k->seen++;
        if (pid > 0 && pid != getpid())
            kill_one((pid_t)pid, k->name);
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

/* One pass over all groups; how many processes were there. */
static size_t kill_pass_over(const csn_cgroup *g)
{
    kill_pass k = {0};

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        k.name = strrchr(g->dirs[i].path, '/');
        if (k.name)
            (void)kill_in(&k, g->dirs[i].path);
    }
    return k.seen;
}

/* The quick way of v2, and the end of forking: both are lost on who lacks them. */
static void put_all(const csn_cgroup *g, const char *file, const char *text)
{
    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++)
        (void)csn_cgroup_put(g->dirs[i].path, file, text);
}

/* Most processes are gone after the first of these, the shortest. */
static void nap(long *us)
{
    struct timespec ts = {.tv_nsec = *us * 1000};

    (void)nanosleep(&ts, NULL);
    *us = *us < 12800 ? *us * 2 : 12800;
}

int csn_cgroup_kill(const csn_cgroup *g)
{
    uint64_t deadline = csn_deadline_in(CSN_CGROUP_PATIENCE);
    long us = 100;

    put_all(g, "cgroup.kill", "1"); /* v2 since Linux 5.14: the whole tree in one step */
    for (unsigned pass = 1; kill_pass_over(g) > 0; pass++) {
        if (csn_deadline_poll_ms(deadline) == 0)
            return -EBUSY;
        if (pass == PASSES_BEFORE_NO_FORK)
            put_all(g, "pids.max", "0");
        nap(&us);
    }
    return 0;
}

int csn_cgroup_remove(const csn_cgroup *g)
{
    uint64_t deadline = csn_deadline_in(CSN_CGROUP_PATIENCE);
    int result = 0;

    for (uint32_t i = 0; i < g->count && i < CSN_CGROUP_KINDS; i++) {
        long us = 100;
        int rc = csn_cgroup_drop(NULL, g->dirs[i].path);

        /* A process leaves its group some time after it has ended for its parent. */
        while (rc == -EBUSY && csn_deadline_poll_ms(deadline) != 0) {
            nap(&us);
            rc = csn_cgroup_drop(NULL, g->dirs[i].path);
        }
        if (rc < 0 && rc != -ENOENT && result == 0)
            result = rc;
    }
    return result;
}
