/* keeper_fixture.h: a local sandbox with its keeper, through the backend's own table, for tests
 * of commands. Everything lies in a private directory; $CSN_TEST_KEEPER names the keeper. */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/local/export.h"
#include "base/clock.h"
#include "os/tree.h"
#include "runtime/link.h"
#include "runtime/runtime.h"

#define MAYBE_UNUSED __attribute__((unused))
#define DEN_SOON_MS                                                                            \
    60000 /* what should happen at once may take this long on a busy machine                   \
           */

typedef struct den {
    char top[64], base[96], home[96];
    csn_config config;
    void *state;
    const csn_backend_ops *ops;
} den;

/* What a command wrote and how it ended. */
typedef struct out {
    char text[2][8192]; /* the first bytes of stdout and stderr */
    uint64_t total[2];  /* kept and counted */
    uint64_t keep;      /* answer COUNT from here on; 0: never */
    uint64_t stop;      /* answer STOP from here on; 0: never */
    csn_exec_end end;
    csn_status st;
    double ms;
} out;

MAYBE_UNUSED static void den_dirs(den *d)
{
    const char *tmp = getenv("TMPDIR");

    memset(d, 0, sizeof(*d));
    snprintf(d->top, sizeof(d->top), "%s/csn-den-XXXXXX",
             tmp && strlen(tmp) < 30 ? tmp : "/tmp");
    assert_non_null(mkdtemp(d->top));
    snprintf(d->base, sizeof(d->base), "%s/base", d->top);
    snprintf(d->home, sizeof(d->home), "%s/home", d->top);
    assert_int_equal(mkdir(d->base, 0700), 0);
    assert_int_equal(mkdir(d->home, 0700), 0);
    setenv("XDG_RUNTIME_DIR", d->top, 1);
    setenv("XDG_STATE_HOME", d->top, 1);
    csn_keeper_path_set(getenv("CSN_TEST_KEEPER"));
    d->ops = csn_local_backend();
    d->config.size = sizeof(d->config);
    d->config.workspace = d->base;
    d->config.home = d->home;
}

MAYBE_UNUSED static void den_open(den *d)
{
    csn_error *err = NULL;
    char id[64];
    static unsigned n;

    snprintf(id, sizeof(id), "local-%lld-%d%u", (long long)csn_wall_ms(), (int)getpid(), n++);
    csn_status st = d->ops->open(&d->config, id, NULL, &d->state, &err);
    if (st != CSN_OK)
        fail_msg("open: %s", csn_error_message(err));
}

MAYBE_UNUSED static void den_make(den *d)
{
    den_dirs(d);
    den_open(d);
}

MAYBE_UNUSED static void den_wipe(den *d)
{
    const char *name = strrchr(d->top, '/') + 1;
    char parent[64];

    snprintf(parent, sizeof(parent), "%.*s", (int)(name - d->top), d->top);
    int dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(csn_tree_remove(dir, name), 0);
    close(dir);
}

MAYBE_UNUSED static void den_clean(den *d)
{
    d->ops->close(d->state);
    den_wipe(d);
}

MAYBE_UNUSED static int den_sink(void *ctx, int stream, const void *data, size_t len)
{
    out *o = ctx;
    int i = stream == CSN_STDERR;

    if (data && o->total[i] < sizeof(o->text[i]) - 1) {
        size_t room = sizeof(o->text[i]) - 1 - (size_t)o->total[i];
        memcpy(o->text[i] + o->total[i], data, len < room ? len : room);
    }
    o->total[i] += len;
    if (o->stop && o->total[i] >= o->stop)
        return CSN_SINK_STOP;
    return o->keep && o->total[i] >= o->keep ? CSN_SINK_COUNT : CSN_SINK_MORE;
}

/* Runs a request as it is and fails the test when it could not be tried. */
MAYBE_UNUSED static void den_run(den *d, csn_exec_req *req, out *o)
{
    csn_sink sink = {den_sink, o};
    csn_error *err = NULL;
    uint64_t from = csn_now_ns();

    req->size = sizeof(*req);
    o->st = d->ops->exec(d->state, req, &sink, &o->end, &err);
    o->ms = (double)(csn_now_ns() - from) / 1e6;
    if (o->st != CSN_OK)
        fail_msg("exec: %s: %s", csn_status_name(o->st), csn_error_message(err));
}

MAYBE_UNUSED static csn_exec_req den_req(const char *const *argv)
{
    return (csn_exec_req){.argv = argv, .input_fd = -1, .cancel_fds = {-1, -1}};
}

/* sh -c TEXT with a timeout; 0: none. */
MAYBE_UNUSED static void den_sh(den *d, const char *text, uint64_t timeout_ms, out *o)
{
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    csn_exec_req req = den_req(argv);

    memset(o, 0, sizeof(*o));
    req.deadline_ns = timeout_ms ? csn_deadline_in(timeout_ms) : 0;
    den_run(d, &req, o);
}

/* The same, with the shortest of ever longer timeouts within which it gets as far as to print
 * this on stdout: a machine that stands still may end it before it has begun. */
MAYBE_UNUSED static void den_sh_until(den *d, const char *text, uint64_t timeout_ms,
                                      const char *printed, out *o)
{
    do {
        den_sh(d, text, timeout_ms, o);
        timeout_ms *= 2;
    } while (!strstr(o->text[0], printed) && timeout_ms <= DEN_SOON_MS);
}

MAYBE_UNUSED static pid_t den_keeper(den *d)
{
    return (pid_t)((csn_runtime *)d->state)->keeper_pid;
}

/* Reads a small file of the sandbox; "" when it is not there. */
MAYBE_UNUSED static const char *den_file(den *d, const char *name)
{
    static char text[4096];
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", d->base, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Waits until such a file says something, and returns what. */
MAYBE_UNUSED static const char *den_file_soon(den *d, const char *name)
{
    uint64_t deadline = csn_deadline_in(DEN_SOON_MS);

    while (den_file(d, name)[0] == '\0' && csn_deadline_poll_ms(deadline) > 0)
        (void)poll(NULL, 0, 10);
    return den_file(d, name);
}

/* Makes a file that a command waits for. */
MAYBE_UNUSED static void den_touch(den *d, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", d->base, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* How many living processes have `mark` in their command line (NUL read as space)? */
MAYBE_UNUSED static int den_alive(const char *mark)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while ((e = readdir(proc))) {
        char path[64], line[4096], state = 'X';
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || strtol(e->d_name, NULL, 10) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/%.16s/cmdline", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
        if (fd >= 0)
            close(fd);
        for (ssize_t i = 0; i < len; i++)
            if (line[i] == '\0')
                line[i] = ' ';
        line[len > 0 ? len : 0] = '\0';
        if (!strstr(line, mark))
            continue;
        snprintf(path, sizeof(path), "/proc/%.16s/stat", e->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
        if (fd >= 0)
            close(fd);
        line[len > 0 ? len : 0] = '\0';
        const char *p = strrchr(line, ')');
        if (p && p[1] == ' ')
            state = p[2];
        n += state != 'Z' && state != 'X';
    }
    closedir(proc);
    return n;
}

/* Is this process running? A zombie, which waits for init, is not. */
MAYBE_UNUSED static bool den_pid_alive(pid_t pid)
{
    char path[64], line[512];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (fd >= 0)
        close(fd);
    line[len > 0 ? len : 0] = '\0';
    const char *p = strrchr(line, ')');
    return p && p[1] == ' ' && p[2] != 'Z' && p[2] != 'X';
}

/* Waits until at least so many are there; how many are. */
MAYBE_UNUSED static int den_alive_soon(const char *mark, int least)
{
    uint64_t deadline = csn_deadline_in(DEN_SOON_MS);
    int n;

    while ((n = den_alive(mark)) < least && csn_deadline_poll_ms(deadline) > 0)
        (void)poll(NULL, 0, 5);
    return n;
}

/* Waits until none is left; how many are if that does not happen. What it is asked about must
 * live for longer than this by itself. */
MAYBE_UNUSED static int den_left_at_last(const char *mark)
{
    uint64_t deadline = csn_deadline_in(DEN_SOON_MS);
    int n;

    while ((n = den_alive(mark)) > 0 && csn_deadline_poll_ms(deadline) > 0)
        (void)poll(NULL, 0, 5);
    return n;
}

MAYBE_UNUSED static int den_zombies_of(pid_t parent)
{
    char path[64], line[512];
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while ((e = readdir(proc))) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%.16s/stat", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
        if (fd >= 0)
            close(fd);
        line[len > 0 ? len : 0] = '\0';
        const char *p = strrchr(line, ')');
        if (p && p[1] == ' ' && p[2] == 'Z' && strtol(p + 3, NULL, 10) == parent)
            n++;
    }
    closedir(proc);
    return n;
}

/* Open descriptors of a process, which must come down to `most` shortly: its side of a channel
 * is closed a moment after the last message. */
MAYBE_UNUSED static size_t den_fds(pid_t pid);
MAYBE_UNUSED static size_t den_fds_settled(pid_t pid, size_t most)
{
    size_t n = den_fds(pid);

    for (int i = 0; i < DEN_SOON_MS / 5 && n > most; i++) {
        (void)poll(NULL, 0, 5);
        n = den_fds(pid);
    }
    return n;
}

MAYBE_UNUSED static size_t den_fds(pid_t pid)
{
    char path[64];
    size_t n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A word that occurs in no other process. */
MAYBE_UNUSED static const char *den_mark(void)
{
    static char mark[64];
    static unsigned n;

    snprintf(mark, sizeof(mark), "csnmark%d.%u", (int)getpid(), n++);
    return mark;
}
