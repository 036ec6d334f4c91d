/* stress_trees.c: process trees that do not want to end, ended again and again.
 *
 *   stress_trees [N]    N trees (default 40), four at a time in one sandbox
 *
 * Each tree is this program in another role: double forks, sessions of their own, ignored and
 * blocked signals, stopped members, deep and wide families, and chains that fork and exit so
 * that no pid lives long. Each is ended by a timeout or a cancel at a random moment, also while
 * it is still growing. When exec returns nobody of the tree may be alive; at the end no
 * descriptor and no zombie may be left with us or the keeper. Speaks TAP; exit status 1:
 * something survived. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/export.h"
#include "base/clock.h"
#include "os/tree.h"
#include "runtime/link.h"
#include "runtime/runtime.h"

#define WORKERS   4
#define KINDS     8
#define N_DEFAULT 40

static const csn_backend_ops *ops;
static void *sandbox;
static char self[4096];
static unsigned long total;
static _Atomic unsigned long next_tree;
static _Atomic long survivors, failed, slow;

/* ---- the trees -----------------------------------------------------------------------------
 */

static void sit(void)
{
    for (;;)
        pause();
}

static void ignore_all(void)
{
    sigset_t all;

    for (int i = 1; i < 32; i++)
        (void)signal(i, SIG_IGN);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

/* One process forks and exits, its child does the same, for ever. */
static void hop(void)
{
    for (;;) {
        pid_t pid = fork();
        if (pid > 0)
            _exit(0);
        if (pid < 0)
            (void)poll(NULL, 0, 1);
    }
}

static void deep(int levels)
{
    for (int i = 0; i < levels && fork() == 0; i++)
        setsid();
    sit();
}

static void bush(int levels)
{
    for (int i = 0; i < levels && (fork() == 0 || fork() == 0); i++)
        ;
    sit();
}

static void grow(int kind)
{
    switch (kind) {
    case 0: /* daemons: orphans in sessions of their own */
        for (int i = 0; i < 3; i++)
            if (fork() == 0) {
                setsid();
                if (fork() == 0)
                    sit();
                _exit(0);
            }
        break;
    case 1:
        ignore_all();
        bush(2);
        break;
    case 2: /* stopped, parent and child */
        if (fork() == 0)
            setsid();
        raise(SIGSTOP);
        break;
    case 3:
        for (int i = 0; i < 3; i++)
            if (fork() == 0) {
                setsid();
                hop();
            }
        break;
    case 4:
        for (int i = 0; i < 20; i++)
            if (fork() == 0) {
                setsid();
                sit();
            }
        break;
    case 5:
        deep(15);
        break;
    case 6: /* a parent that reaps nobody, with a name that looks like a stat line */
        prctl(PR_SET_NAME, ") Z 1 1 (");
        for (int i = 0; i < 5; i++)
            if (fork() == 0)
                _exit(0);
        bush(3);
        break;
    default:
        close(0);
        close(1);
        close(2);
        ignore_all();
        if (fork() == 0) {
            setsid();
            raise(SIGSTOP);
        }
        break;
    }
    sit();
}

/* ---- ending them
 * ----------------------------------------------------------------------------- */

static int drop(void *ctx, int stream, const void *data, size_t len)
{
    (void)ctx;
    (void)stream;
    (void)data;
    (void)len;
    return CSN_SINK_MORE;
}

/* Living processes whose command line ends with the mark. */
static int alive(const char *mark)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while (proc && (e = readdir(proc))) {
        char path[64], line[8192];
        snprintf(path, sizeof(path), "/proc/%.16s/cmdline", e->d_name);
        int fd =
            e->d_name[0] >= '0' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
        if (fd >= 0)
            close(fd);
        size_t want = strlen(mark) + 1; /* zombies have no command line */
        if (len >= (ssize_t)want && memcmp(line + len - want, mark, want) == 0)
            n++;
    }
    if (proc)
        closedir(proc);
    return n;
}

static void end_one(unsigned long i, unsigned *seed)
{
    char kind[8], mark[64];
    uint64_t ms = (uint64_t)(rand_r(seed) % 60);
    bool cancel = rand_r(seed) % 2 == 0;
    csn_sink sink = {drop, NULL};
    csn_exec_end end;
    csn_error *err = NULL;

    snprintf(kind, sizeof(kind), "%lu", i % KINDS);
    snprintf(mark, sizeof(mark), "csn-tree-%d-%lu", (int)getpid(), i);
    const char *argv[] = {self, "--tree", kind, mark, NULL};
    csn_exec_req req = {
        .size = sizeof(req), .argv = argv, .input_fd = -1, .cancel_fds = {-1, -1}};
    if (cancel) {
        struct itimerspec t = {.it_value = {.tv_nsec = (long)(ms * 1000000 + 1)}};
        req.cancel_fds[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        timerfd_settime(req.cancel_fds[0], 0, &t, NULL);
    } else {
        req.deadline_ns = csn_deadline_in(ms + 1);
    }
    uint64_t from = csn_now_ns();
    csn_status st = ops->exec(sandbox, &req, &sink, &end, &err);
    double took = (double)(csn_now_ns() - from) / 1e6 - (double)ms;
    if (cancel)
        close(req.cancel_fds[0]);
    if (st != CSN_OK || end.how != (cancel ? CSN_END_CANCEL : CSN_END_TIMEOUT)) {
        printf("# tree %lu kind %s: %s, how %u\n", i, kind,
               st < 0 ? csn_error_message(err) : "ok", st < 0 ? 0 : end.how);
        failed++;
    }
    csn_error_free(err);
    int left = alive(mark);
    if (left > 0)
        printf("# tree %lu kind %s: %d survive\n", i, kind, left);
    survivors += left;
    if (took > 2000)
        printf("# tree %lu kind %s: ended %.0f ms late\n", i, kind, took);
    slow += took > 2000;
}

static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg * 7919u + (unsigned)getpid();

    for (;;) {
        unsigned long i = next_tree++;
        if (i >= total)
            return NULL;
        end_one(i, &seed);
    }
}

/* ---- the program
 * ------------------------------------------------------------------------------- */

static size_t count_fds(pid_t pid)
{
    char path[64];
    size_t n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int count_zombies(pid_t parent)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while (proc && (e = readdir(proc))) {
        char path[64], line[512] = "";
        snprintf(path, sizeof(path), "/proc/%.16s/stat", e->d_name);
        int fd =
            e->d_name[0] >= '0' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0 && read(fd, line, sizeof(line) - 1) > 0) {
            const char *p = strrchr(line, ')');
            n += p && p[1] == ' ' && p[2] == 'Z' && strtol(p + 3, NULL, 10) == parent;
        }
        if (fd >= 0)
            close(fd);
    }
    if (proc)
        closedir(proc);
    return n;
}

static int number;

static void report(bool ok, const char *what)
{
    printf("%sok %d - %s\n", ok ? "" : "not ", ++number, what);
    if (!ok)
        failed++;
}

static void run_all(pid_t keeper)
{
    pthread_t t[WORKERS];
    size_t ours = count_fds(getpid()), its = count_fds(keeper);

    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    (void)poll(NULL, 0, 100);
    report(failed == 0, "every tree was ended as asked");
    report(survivors == 0, "nobody survived");
    report(slow == 0, "none took over two seconds longer");
    report(count_fds(getpid()) <= ours, "no descriptor is left here");
    report(count_fds(keeper) <= its, "no descriptor is left with the keeper");
    report(count_zombies(keeper) == 0, "no zombie is left");
}

int main(int argc, char **argv)
{
    char top[] = "/tmp/csn-trees-XXXXXX";
    csn_error *err = NULL;
    csn_sink sink = {drop, NULL};
    csn_exec_end end;
    const char *warm[] = {"/bin/true", NULL};
    csn_exec_req req = {
        .size = sizeof(req), .argv = warm, .input_fd = -1, .cancel_fds = {-1, -1}};

    if (argc == 4 && strcmp(argv[1], "--tree") == 0)
        grow((int)strtol(argv[2], NULL, 10));
    total = argc > 1 ? strtoul(argv[1], NULL, 10) : N_DEFAULT;
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !mkdtemp(top)) {
        printf("Bail out! cannot prepare\n");
        return 1;
    }
    csn_keeper_path_set(getenv("CSN_TEST_KEEPER"));
    csn_config config = {.size = sizeof(config), .workspace = top, .home = top};
    ops = csn_local_backend();
    if (ops->open(&config, "local-0-trees", NULL, &sandbox, &err) < 0 ||
        ops->exec(sandbox, &req, &sink, &end, &err) < 0) {
        printf("Bail out! %s\n", csn_error_message(err));
        return 1;
    }
    (void)poll(NULL, 0, 50);
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_all((pid_t)((csn_runtime *)sandbox)->keeper_pid);
    printf("1..%d\n# %lu trees\n", number, total);
    ops->close(sandbox);
    rmdir(top);
    return failed != 0 || survivors != 0;
}
