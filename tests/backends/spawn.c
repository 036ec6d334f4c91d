/* spawn.c: fork, exec and one poll loop: the `exec` that the test backends share.
 *
 * It is written against backend.h alone, as somebody outside this project would write it:
 * nothing of src/ is used. The child gets three pipes and a process group of its own; a fourth
 * pipe tells why exec failed. The loop ends when the child has ended and its pipes are dry, or
 * 100 ms later, since something in the background may hold them open. Deadline, cancel and a
 * sink that has enough lead to SIGTERM for the group, and SIGKILL 200 ms after. */
#include "backends/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK    65536
#define GRACE_NS 200000000ull
#define DRAIN_NS 100000000ull

enum { IN, OUT, ERR, WHY, PIPES };

typedef struct run {
    const csn_exec_req *req;
    const csn_sink *sink;
    pid_t pid;
    int pidfd;
    int ours[PIPES], theirs[PIPES];
    char pending[CHUNK]; /* of stdin, not yet taken */
    size_t pending_len, pending_pos;
    bool count_only[PIPES];
    bool killing, dead, source_failed;
    uint64_t until_ns; /* SIGKILL when killing, giving up when dead; 0: neither */
    uint32_t how;
} run;

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the child -------------------------------------------------------------------------- */

/* base, with each NAME=value of more in place of its namesake. Shallow; free the array. */
static const char **merge_env(const char *const *base, const char *const *more)
{
    size_t n = 0, m = 0;

    while (base[n])
        n++;
    while (more && more[m])
        m++;
    const char **env = calloc(n + m + 1, sizeof(*env));
    if (!env)
        return NULL;
    memcpy(env, base, n * sizeof(*env));
    for (size_t i = 0; i < m; i++) {
        size_t name = strcspn(more[i], "=") + 1, at = 0;
        while (at < n && strncmp(env[at], more[i], name) != 0)
            at++;
        env[at] = more[i];
        n += at == n;
    }
    return env;
}

static void child(const run *r, const csn_test_place *place, const char *const *env,
                  const char *cwd)
{
    int in = r->req->input_fd >= 0 ? r->req->input_fd : r->theirs[IN];
    int err = r->req->flags & CSN_EXEC_MERGE ? r->theirs[OUT] : r->theirs[ERR];
    sigset_t none;
    int e = 0;

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    if (place->enter)
        e = place->enter(place->enter_ctx);
    if (e == 0 &&
        (chdir(cwd) != 0 || dup2(in, 0) < 0 || dup2(r->theirs[OUT], 1) < 0 || dup2(err, 2) < 0))
        e = errno;
    if (e == 0) {
        environ = (char **)env;
        close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
        execvp(r->req->argv[0], (char *const *)r->req->argv);
        e = errno;
    }
    ssize_t ignored = write(r->theirs[WHY], &e, sizeof(e));
    _exit(ignored == sizeof(e) ? 127 : 126);
}

static bool make_pipes(run *r)
{
    for (int i = 0; i < PIPES; i++) {
        int fd[2];
        if (pipe2(fd, O_CLOEXEC) != 0)
            return false;
        r->theirs[i] = fd[i == IN ? 0 : 1];
        r->ours[i] = fd[i == IN ? 1 : 0];
        fcntl(r->ours[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static csn_status start(run *r, const csn_test_place *place, csn_error **err)
{
    const char **env = merge_env(place->env, r->req->env);
    const char *cwd = r->req->cwd ? r->req->cwd : place->cwd;

    if (!env || !make_pipes(r)) {
        free(env);
        return csn_error_set(err, CSN_IO, "exec: %s", strerrordesc_np(errno));
    }
    r->pid = fork();
    if (r->pid == 0)
        child(r, place, env, cwd);
    free(env);
    for (int i = 0; i < PIPES; i++)
        shut(&r->theirs[i]);
    if (r->pid < 0)
        return csn_error_set(err, CSN_IO, "fork: %s", strerrordesc_np(errno));
    setpgid(r->pid, r->pid); /* both sides do it: whoever comes first */
    r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    if (!r->req->input)
        shut(&r->ours[IN]);
    return CSN_OK;
}

/* ---- the loop --------------------------------------------------------------------------- */

static void end_all(run *r, uint32_t how)
{
    if (r->killing || r->dead)
        return;
    r->killing = true;
    r->how = how;
    r->until_ns = now_ns() + GRACE_NS;
    kill(-r->pid, SIGTERM);
}

static void feed(run *r)
{
    if (r->pending_pos == r->pending_len) {
        int64_t n = r->req->input->read(r->req->input->ctx, r->pending, sizeof(r->pending));
        if (n < 0) {
            r->source_failed = true;
            end_all(r, CSN_END_CANCEL);
        }
        if (n <= 0) {
            shut(&r->ours[IN]);
            return;
        }
        r->pending_len = (size_t)n;
        r->pending_pos = 0;
    }
    ssize_t n =
        write(r->ours[IN], r->pending + r->pending_pos, r->pending_len - r->pending_pos);
    if (n > 0)
        r->pending_pos += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        shut(&r->ours[IN]); /* nobody reads it: fine */
}

static void take(run *r, int which)
{
    char chunk[CHUNK];
    int stream = which == OUT ? CSN_STDOUT : CSN_STDERR;

    ssize_t n = read(r->ours[which], chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        shut(&r->ours[which]);
        return;
    }
    int next =
        r->sink->write(r->sink->ctx, stream, r->count_only[which] ? NULL : chunk, (size_t)n);
    if (next == CSN_SINK_COUNT)
        r->count_only[which] = true;
    else if (next == CSN_SINK_STOP)
        end_all(r, CSN_END_CANCEL);
}

static int wait_ms(const run *r)
{
    uint64_t at = r->until_ns, now = now_ns();
    uint64_t deadline = r->killing || r->dead ? 0 : r->req->deadline_ns;

    if (deadline != 0 && (at == 0 || deadline < at))
        at = deadline;
    if (at == 0)
        return -1;
    return at <= now ? 0 : (int)((at - now) / 1000000 + 1);
}

static void look_at_clock(run *r)
{
    uint64_t now = now_ns();

    if (!r->killing && !r->dead && r->req->deadline_ns != 0 && now >= r->req->deadline_ns)
        end_all(r, CSN_END_TIMEOUT);
    else if (r->killing && !r->dead && now >= r->until_ns)
        kill(-r->pid, SIGKILL);
}

static void pump(run *r)
{
    while (!r->dead || ((r->ours[OUT] >= 0 || r->ours[ERR] >= 0) && now_ns() < r->until_ns)) {
        bool watch = !r->killing && !r->dead;
        struct pollfd p[] = {
            {.fd = r->dead ? -1 : r->ours[IN], .events = POLLOUT},
            {.fd = r->ours[OUT], .events = POLLIN},
            {.fd = r->ours[ERR], .events = POLLIN},
            {.fd = r->dead ? -1 : r->pidfd, .events = POLLIN},
            {.fd = watch ? r->req->cancel_fds[0] : -1, .events = POLLIN},
            {.fd = watch ? r->req->cancel_fds[1] : -1, .events = POLLIN},
        };
        if (poll(p, sizeof(p) / sizeof(p[0]), wait_ms(r)) < 0 && errno != EINTR)
            return;
        if (p[0].revents)
            feed(r);
        if (p[1].revents)
            take(r, OUT);
        if (p[2].revents)
            take(r, ERR);
        if (p[3].revents) {
            r->dead = true;
            r->until_ns = now_ns() + DRAIN_NS;
        }
        if (p[4].revents || p[5].revents)
            end_all(r, CSN_END_CANCEL);
        look_at_clock(r);
    }
}

static void reap(run *r, csn_exec_end *ret)
{
    struct rusage use = {0};
    int status = 0, why = 0;

    kill(-r->pid, SIGKILL); /* what it left behind, while its number is still taken */
    while (wait4(r->pid, &status, 0, &use) < 0 && errno == EINTR)
        continue;
    ret->how = r->how;
    ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret->cpu_ns = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000u +
                  (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000u;
    ret->peak_memory = (uint64_t)use.ru_maxrss * 1024u;
    if (read(r->ours[WHY], &why, sizeof(why)) == sizeof(why)) {
        ret->how = CSN_END_SPAWN;
        ret->exit_code = why == ENOENT ? 127 : why == EACCES || why == ENOEXEC ? 126 : 1;
        /* the core shows this as the command's output */
        snprintf(ret->message, sizeof(ret->message), "%s%.200s: %s",
                 ret->exit_code == 1 ? "Error: " : "", r->req->argv[0], strerrordesc_np(why));
    }
}

csn_status csn_test_spawn(const csn_test_place *place, const csn_exec_req *req,
                          const csn_sink *sink, csn_exec_end *ret, csn_error **err)
{
    run *r = calloc(1, sizeof(*r));

    if (!r)
        return csn_error_set(err, CSN_NOMEM, "exec");
    *r = (run){.req = req, .sink = sink, .pid = -1, .pidfd = -1, .how = CSN_END_EXITED};
    for (int i = 0; i < PIPES; i++)
        r->ours[i] = r->theirs[i] = -1;
    csn_status st = CSN_OK;
    if (req->session || (req->flags & (CSN_EXEC_SUDO | CSN_EXEC_PTY | CSN_EXEC_RESTART)))
        st = csn_error_set(err, CSN_UNSUPPORTED, "exec: this backend runs plain commands only");
    if (st == CSN_OK)
        st = start(r, place, err);
    if (st == CSN_OK) {
        pump(r);
        reap(r, ret);
        if (r->source_failed)
            st = csn_error_set(err, CSN_IO, "exec: stdin could not be read");
    }
    for (int i = 0; i < PIPES; i++) {
        shut(&r->ours[i]);
        shut(&r->theirs[i]);
    }
    shut(&r->pidfd);
    free(r);
    return st;
}
