/* start_command.c: from a SPAWN request to a running program.
 *
 * The child shares the keeper's memory until exec (CLONE_VM | CLONE_VFORK) and reports a
 * failure by writing to a struct. It has a stack of its own and makes system calls only; the
 * keeper has no signal handlers that could run in it. child_main() does all that distinguishes
 * a command from the keeper: descriptors, directory, limits, tag, empty signal mask, its own
 * Landlock ruleset in a jail without namespaces, and diverted sockets. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "os/landlock.h"
#include "os/pty.h"
#include "os/socket_divert.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define FD_CTL       9
#define OOM_SCORE    "700" /* the keeper of a jail has 500, see boot/confine.c */

#if defined(__clang__) || defined(__GNUC__)
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))
#else
#define IN_CHILD
#endif

/* The PATH of the command, as in a shell. */
static const char *path_list(const char **env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return DEFAULT_PATH;
}

/* Returns errno. A file that the kernel cannot execute is run as a shell script. */
IN_CHILD static int try_exec(kp_child *c, const char *file)
{
    char *const *argv = (char *const *)c->spawn->argv;
    char *const *env = (char *const *)c->spawn->env;

    /* not execve(): under gcov that one writes counters to memory that the keeper shares */
    (void)syscall(SYS_execve, file, argv, env);
    if (errno == ENOEXEC) {
        const char **v = c->spawn->argv - 1;
        v[0] = "/bin/sh";
        v[1] = file;
        (void)syscall(SYS_execve, "/bin/sh", v, env);
    }
    int e = errno;
    if (e == ENOENT && access(file, F_OK) == 0)
        c->stage = CSN_STAGE_INTERP;
    return e;
}

/* Searches as a shell does: the first file that can be executed. If there is none, EACCES of
 * one that exists wins over ENOENT. */
IN_CHILD static int search_exec(kp_child *c)
{
    const char *name = c->spawn->argv[0];
    size_t name_len = strlen(name);
    static char long_path[CSN_PATH_MAX];
    char short_path[512]; /* a longer one would touch a second page of the stack */
    int worst = ENOENT;

    if (c->file || strchr(name, '/'))
        return try_exec(c, c->file ? c->file : name);
    if (name_len == 0 || name_len > 255)
        return ENOENT;
    for (const char *p = path_list(c->spawn->env);; p++) {
        size_t len = strcspn(p, ":");
        char *file = len + name_len + 2 <= sizeof(short_path) ? short_path : long_path;
        if (len + name_len + 2 <= sizeof(long_path)) {
            memcpy(file, p, len);
            size_t at = len;
            if (len > 0)
                file[at++] = '/';
            memcpy(file + at, name, name_len + 1);
            /* costs a tenth of a failed execve */
            if (access(file, F_OK) == 0) {
                int e = try_exec(c, file);
                if (e != ENOENT && e != ENOTDIR && e != EACCES)
                    return e;
                if (e == EACCES) {
                    c->stage = CSN_STAGE_EXEC;
                    worst = e;
                }
            }
        }
        p += len;
        if (*p == '\0')
            return worst;
    }
}

/* Soft and hard, so that a command cannot raise it. libc's struct differs between libcs. */
IN_CHILD static int set_limit(int what, uint64_t value)
{
    struct {
        uint64_t soft, hard;
    } r = {value, value};

    if (value == 0)
        return 0;
    return (int)syscall(SYS_prlimit64, 0, what, &r, NULL);
}

/* When memory runs out, commands are killed before their keeper. The kernel gives a vfork child
 * a value of its own. Commands cannot lower it: their /proc is read-only. */
IN_CHILD static void raise_oom_score(int proc)
{
    int fd = (int)syscall(SYS_openat, proc, "self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return;
    (void)syscall(SYS_write, fd, OOM_SCORE, sizeof(OOM_SCORE) - 1);
    (void)syscall(SYS_close, fd);
}

IN_CHILD static int set_limits(const kp_child *c)
{
    const csn_spawn_msg *b = c->spawn;

    if (set_limit(RLIMIT_DATA, c->k->spec.confinement.data_max) < 0 ||
        set_limit(RLIMIT_AS, b->memory_max) < 0 || set_limit(RLIMIT_FSIZE, b->file_max) < 0 ||
        set_limit(RLIMIT_NOFILE, b->nofile_max) < 0)
        return -1;
    return 0;
}

/* Streams that are not given stay the keeper's /dev/null. Descriptors that came by message are
 * above 2, so dup2 overwrites none that is still needed. */
IN_CHILD static int set_stdio(const kp_child *c)
{
    uint32_t flags = c->spawn->flags;
    bool merge = (flags & CSN_SPAWN_MERGE) || ((flags & CSN_SPAWN_PTY) && c->err < 0);
    int err = merge ? c->out : c->err;

    if (c->in >= 0 && dup2(c->in, 0) < 0)
        return -1;
    if (c->out >= 0 && dup2(c->out, 1) < 0)
        return -1;
    if (err >= 0 && dup2(err, 2) < 0)
        return -1;
    if ((flags & CSN_SPAWN_PTY) && ioctl(0, TIOCSCTTY, 0) < 0)
        return -1;
    if (c->ctl >= 0 && dup2(c->ctl, FD_CTL) < 0)
        return -1;
    /* all are close-on-exec; this is a second safeguard */
    (void)syscall(SYS_close_range, 3u, c->ctl >= 0 ? FD_CTL - 1u : ~0u, 0u);
    if (c->ctl >= 0)
        (void)syscall(SYS_close_range, FD_CTL + 1u, ~0u, 0u);
    return 0;
}

IN_CHILD static int set_cwd(const kp_child *c)
{
    if (c->cwd >= 0)
        return fchdir(c->cwd);
    return c->spawn->cwd ? chdir(c->spawn->cwd) : 0;
}

IN_CHILD static int child_main(void *arg)
{
    kp_child *c = arg;
    uint64_t none = 0;

    c->stage = CSN_STAGE_SETUP; /* before its descriptor is closed */
    if (c->k->command_ruleset >= 0 && csn_landlock_enter(c->k->command_ruleset) < 0)
        goto failed;
    c->stage = CSN_STAGE_SOCKETS;
    if (c->sockets >= 0) {
        int rc = csn_socket_divert_install(c->sockets);
        if (rc < 0) {
            errno = -rc;
            goto failed;
        }
    }
    (void)setsid(); /* no controlling terminal, and a process group of its own */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it dies with the keeper */
    if (c->k->spec.confinement.on != 0)
        raise_oom_score(c->k->proc); /* before its descriptor is closed */
    c->stage = CSN_STAGE_CWD;
    if (set_cwd(c) < 0)
        goto failed;
    c->stage = CSN_STAGE_STDIO;
    if (set_stdio(c) < 0)
        goto failed;
    c->stage = CSN_STAGE_LIMIT;
    (void)csn_proctree_mark(c->tag); /* without a tag, ancestry still finds the child */
    if (set_limits(c) < 0)
        goto failed;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
    c->stage = CSN_STAGE_EXEC;
    c->errnum = (uint32_t)search_exec(c);
    _exit(127);
failed:
    c->errnum = (uint32_t)errno;
    _exit(127);
}

/* One stack is enough: the keeper is suspended while the child uses it. */
bool kp_job_start(kp_keeper *k, kp_job *job, kp_child *c)
{
    c->k = k;
    c->tag = job->tag;
    c->errnum = 0;
    job->pid =
        clone(child_main, k->child_stack + KP_CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (job->pid < 0) {
        c->stage = CSN_STAGE_CLONE;
        c->errnum = (uint32_t)errno;
    } else if (c->errnum != 0) {
        while (waitpid(job->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    job->running = c->errnum == 0;
    return job->running;
}

/* ---- SPAWN ---- */

/* The keeper reads the output of a background process, so that it outlives the caller. */
static int stream_open(kp_keeper *k, kp_stream *s, int fd, size_t cap)
{
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    kp_ring_init(&s->ring, cap);
    s->ended = false;
    return kp_watch_open(k, &s->watch, KP_WATCH_OUTPUT, fd, s);
}

static int open_output(kp_keeper *k, kp_stream *s, size_t cap, int *ret_w)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    *ret_w = p[1];
    return stream_open(k, s, p[0], cap);
}

static int open_stdin(kp_job *job, int *ret_r)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    (void)fcntl(p[1], F_SETFL, O_NONBLOCK);
    job->stdin_w = p[1];
    *ret_r = p[0];
    return 0;
}

static int open_terminal(kp_keeper *k, kp_job *job, const csn_spawn_msg *b, int fds[4])
{
    int master = -1;
    int rc = csn_pty_open((uint16_t)b->rows, (uint16_t)b->cols, &master, &fds[1]);

    if (rc < 0)
        return rc;
    job->pty = true;
    rc = stream_open(k, &job->out, master, (size_t)b->ring_max);
    if (rc == 0)
        fds[2] = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
    return rc == 0 && fds[2] < 0 ? -errno : rc;
}

/* Fills fds[] with the ends for a background process; the caller closes them. */
static int background_stdio(kp_keeper *k, kp_job *job, const csn_spawn_msg *b, int fds[4])
{
    int rc = 0;

    if (b->flags & CSN_SPAWN_PTY)
        return open_terminal(k, job, b, fds);
    if (b->flags & CSN_SPAWN_STDIN_PIPE)
        rc = open_stdin(job, &fds[1]);
    if (rc == 0)
        rc = open_output(k, &job->out, (size_t)b->ring_max, &fds[2]);
    if (rc == 0 && !(b->flags & CSN_SPAWN_MERGE))
        rc = open_output(k, &job->err, (size_t)b->ring_max, &fds[3]);
    return rc;
}

static void started(kp_keeper *k, kp_job *job, const csn_spawn_msg *b)
{
    job->deadline_ns = b->deadline_ns;
    if (job->kind != KP_JOB_BACKGROUND)
        return;
    job->started_ms = csn_wall_ms();
    kp_reply(job->channel.fd, CSN_MSG_STARTED, &(csn_started_msg){.pid = (uint64_t)job->pid});
    if (!job->tied)
        kp_watch_close(k, &job->channel);
}

static void spawn_job(kp_keeper *k, kp_job *job, const csn_spawn_msg *b, int fds[5])
{
    kp_child c = {.spawn = b, .ctl = -1, .stage = CSN_STAGE_SETUP};

    job->command = b->command ? strdup(b->command) : NULL;
    int rc = job->kind == KP_JOB_BACKGROUND ? background_stdio(k, job, b, fds) : 0;
    c.cwd = fds[0];
    c.in = fds[1];
    c.out = fds[2];
    c.err = fds[3];
    c.sockets = fds[4];
    if (rc == 0 && kp_job_start(k, job, &c)) {
        started(k, job, b);
        return;
    }
    kp_job_send_exit(k, job, c.stage, rc < 0 ? (uint32_t)-rc : c.errnum, false);
    kp_job_free(k, job);
}

static void start(kp_keeper *k, kp_job *job, const csn_spawn_msg *b, csn_msg *m)
{
    int fds[5] = {-1, -1, -1, -1, -1}; /* cwd, stdin, stdout, stderr, sockets */
    size_t next = 0;

    for (int i = 0; i < 5; i++)
        if (b->flags & (1u << i))
            fds[i] = csn_msg_take_fd(m, next++);
    job->tied = (b->flags & CSN_SPAWN_TIED) != 0;
    job->keep_channel = (b->flags & CSN_SPAWN_KEEP_CHANNEL) != 0;
    spawn_job(k, job, b, fds);
    for (int i = 0; i < 5; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int kp_spawn_serve(kp_keeper *k, kp_request *r)
{
    const csn_spawn_msg *b = &r->body.spawn;
    bool background = (b->flags & CSN_SPAWN_BACKGROUND) != 0;
    kp_job *job = kp_job_new(k, background ? KP_JOB_BACKGROUND : KP_JOB_FOREGROUND);

    if (!job)
        return -errno;
    int rc = kp_watch_open(k, &job->channel, KP_WATCH_CHANNEL, r->channel, job);
    if (rc < 0) {
        job->channel.fd = -1;
        kp_job_free(k, job);
        return rc;
    }
    r->channel = -1;
    start(k, job, b, r->m);
    return KP_REPLIED;
}

/* 0: the command was started, or its EXIT says why not. */
static int spawn_on_kept_channel(kp_keeper *k, kp_job *job, csn_msg *m)
{
    csn_spawn_msg b;
    int rc = csn_proto_decode(m, CSN_MSG_SPAWN, &b);

    if (rc < 0)
        return rc;
    if (b.flags & CSN_SPAWN_BACKGROUND)
        rc = -EINVAL;
    else if (k->jobs.count >= CSN_KEEPER_JOBS_MAX)
        rc = -EAGAIN;
    if (rc == 0) {
        kp_job_reuse(k, job);
        start(k, job, &b, m);
    }
    csn_proto_release(CSN_MSG_SPAWN, &b);
    return rc;
}

/* A hang-up, or anything but a valid SPAWN, closes the channel. */
void kp_kept_channel_read(kp_keeper *k, kp_job *job)
{
    csn_msg m;
    int rc = csn_msg_recv(job->channel.fd, k->packet, sizeof(k->packet), &m);

    if (rc == -EAGAIN)
        return;
    if (rc > 0) {
        rc = spawn_on_kept_channel(k, job, &m);
        csn_msg_release(&m);
        if (rc == 0)
            return;
    }
    if (rc < 0)
        kp_reply_error(job->channel.fd, -rc, CSN_STAGE_SETUP);
    kp_list_drop(&k->kept_channels, &job->link);
    kp_watch_close(k, &job->channel);
    kp_free_later(k, &job->link);
}
