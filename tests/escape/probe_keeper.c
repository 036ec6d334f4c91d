/* probe_keeper.c: slows, limits or stops one process, which inside is the keeper.
 *
 * The target WHO is a number or `child`, a child of the probe; the control outside uses
 * `child`. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define OTHER_UID 64123 /* has no process */

static pid_t child;

/* The child has a session of its own, so that its autogroup is not that of the test. */
static long who(const char *word)
{
    int ready[2];
    char c;

    if (strcmp(word, "child") != 0 || pipe(ready) < 0)
        return strtol(word, NULL, 0);
    child = fork();
    if (child == 0) {
        (void)setsid();
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    (void)!read(ready[0], &c, 1);
    return child;
}

static int done(long rc)
{
    int e = rc < 0 ? errno : 0;

    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    return e;
}

/* WHICH WHO */
static int set_priority(char **a)
{
    int which = number(a[0]);
    long id = who(a[1]);

    return done(syscall(SYS_setpriority, which, id, 19));
}

/* WHICH WHO: class idle */
static int set_ioprio(char **a)
{
    int which = number(a[0]);
    long id = who(a[1]);

    return done(syscall(SYS_ioprio_set, which, id, 3 << 13));
}

/* CALL: all processes of this user. Root takes another user first, outside. */
static int of_user(char **a)
{
    bool io = strcmp(a[0], "ioprio") == 0;

    if (geteuid() == 0 && setuid(OTHER_UID) < 0)
        return errno;
    return done(io ? syscall(SYS_ioprio_set, 3, getuid(), 3 << 13)
                   : syscall(SYS_setpriority, 2, 0, 19));
}

static int set_scheduler(char **a)
{
    struct sched_param none = {0};

    return done(syscall(SYS_sched_setscheduler, who(a[0]), 5 /* idle */, &none));
}

static int set_param(char **a)
{
    struct sched_param none = {0};

    return done(syscall(SYS_sched_setparam, who(a[0]), &none));
}

static int set_attr(char **a)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } idle = {.size = sizeof(idle), .policy = 5};

    return done(syscall(SYS_sched_setattr, who(a[0]), &idle, 0));
}

static int set_affinity(char **a)
{
    unsigned long cpu = 1;

    return done(syscall(SYS_sched_setaffinity, who(a[0]), sizeof(cpu), &cpu));
}

static int set_limit(char **a)
{
    uint64_t low[2] = {16, 16};

    return done(syscall(SYS_prlimit64, who(a[0]), RLIMIT_NOFILE, low, NULL));
}

/* WHO FILE TEXT: writes to a file of /proc/WHO */
static int proc_write(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/%s", who(a[0]), a[1]);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return done(-1);
    long n = write(fd, a[2], strlen(a[2]));
    return done(n);
}

/* The same for the probe itself. */
static int proc_self_write(char **a)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/%s", a[0]);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, a[1], strlen(a[1])) < 0 ? errno : 0;
}

/* Helper: N processes, each with a session of its own, that never wait. */
static int busy(char **a)
{
    for (int i = number(a[0]); i > 1 && fork() > 0; i--)
        ;
    (void)setsid();
    for (volatile uint64_t turns = 0;; turns++)
        if (turns == UINT64_MAX)
            return SAID;
}

const attempt keeper_attempts[] = {{"set-priority", 2, set_priority},
                                   {"set-ioprio", 2, set_ioprio},
                                   {"of-user", 1, of_user},
                                   {"set-scheduler", 1, set_scheduler},
                                   {"set-param", 1, set_param},
                                   {"set-attr", 1, set_attr},
                                   {"set-affinity", 1, set_affinity},
                                   {"set-limit", 1, set_limit},
                                   {"proc-write", 3, proc_write},
                                   {"proc-self-write", 2, proc_self_write},
                                   {"busy", 1, busy},
                                   {NULL, 0, NULL}};
