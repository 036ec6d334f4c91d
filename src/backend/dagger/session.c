/* session.c: finds or starts the session of a Dagger engine.
 *
 * DAGGER_SESSION_PORT and DAGGER_SESSION_TOKEN, which every Dagger SDK uses, name an existing
 * session, which caisson never ends. Otherwise caisson starts `dagger session`, which prints
 * its port and token on one line and serves until its stdin is closed. For a sandbox that ends
 * with its handle, caisson holds the write end of this pipe, and the kernel closes it even if
 * the process is killed. The session of a detached sandbox holds the write end itself and is
 * ended by a signal; its pid is recorded with its start time, so a reused pid is never
 * signalled. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/dagger/dagger.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/spawn.h"

#define START_MS 600000u /* the first start downloads the engine's image */
#define END_MS   10000
#define LINE_MAX 4096u

extern char **environ;

/* ---- the program ------------------------------------------------------------------------ */

/* The first `dagger` in an absolute directory of PATH; malloc'd, or NULL. */
static char *search_path(void)
{
    const char *at = csn_remote_getenv("PATH");

    while (at && *at) {
        size_t n = strcspn(at, ":");
        csn_autofree char *file = NULL;
        if (asprintf(&file, "%.*s/dagger", (int)n, at) < 0)
            file = NULL;
        if (file && n > 0 && *at == '/' && access(file, X_OK) == 0)
            return CSN_STEAL(file);
        at += n + (at[n] == ':');
    }
    return NULL;
}

static char *find_program(void)
{
    const char *named = csn_remote_getenv("_EXPERIMENTAL_DAGGER_CLI_BIN");

    return named ? strdup(named) : search_path();
}

csn_status csn_dagger_session_check(csn_error **err)
{
    if (csn_remote_getenv("DAGGER_SESSION_PORT")) {
        if (csn_remote_getenv("DAGGER_SESSION_TOKEN"))
            return CSN_OK;
        csn_status st = csn_fail(err, CSN_AUTH,
                                 "DAGGER_SESSION_PORT is set and DAGGER_SESSION_TOKEN is not");
        return csn_error_advise(st, err, "set both or neither");
    }
    csn_autofree char *file = find_program();
    if (file)
        return CSN_OK;
    csn_status st = csn_fail(err, CSN_AUTH,
                             "backend 'dagger' needs a session: DAGGER_SESSION_PORT is not set "
                             "and PATH has no program 'dagger' to start one");
    return csn_error_advise(st, err,
                            "set DAGGER_SESSION_PORT and DAGGER_SESSION_TOKEN, or install the "
                            "dagger program");
}

/* ---- starting --------------------------------------------------------------------------- */

static csn_status parse_line(csn_dagger_session *s, const char *line, size_t len,
                             csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;
    const char *token = NULL;
    uint64_t port = 0;

    if (csn_json_parse(line, len, "first line of dagger session", &root, NULL) < 0 ||
        csn_jget_u64(root, "port", &port, NULL) < 0 ||
        csn_jget_str(root, "session_token", &token, NULL) < 0 || port == 0 || port > 65535 ||
        !token)
        return csn_fail(err, CSN_UNAVAILABLE,
                        "the first line of 'dagger session' has no port and token");
    s->port = (unsigned)port;
    s->token = strdup(token);
    return s->token ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

static csn_status read_line(const csn_remote *r, csn_dagger_session *s, int fd, int pidfd,
                            csn_error **err)
{
    uint64_t deadline = csn_deadline_in(START_MS);
    char line[LINE_MAX];
    size_t len = 0;

    for (;;) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN},
                             {.fd = pidfd, .events = POLLIN},
                             {.fd = r->stop_fd, .events = POLLIN}};
        int ready = poll(p, 3, csn_deadline_poll_ms(deadline));
        if (ready < 0 && errno == EINTR)
            continue;
        if (p[2].revents)
            return csn_fail(err, CSN_CANCELLED, "cancelled");
        ssize_t n = p[0].revents ? read(fd, line + len, sizeof(line) - len) : 0;
        if (n <= 0) {
            csn_status st =
                csn_fail(err, CSN_UNAVAILABLE, "'dagger session' %s before it printed its port",
                         ready == 0 ? "took too long" : "ended");
            return csn_error_advise(st, err, "run 'dagger session' by hand to see its error");
        }
        len += (size_t)n;
        const char *end = memchr(line, '\n', len);
        if (end || len == sizeof(line))
            return parse_line(s, line, end ? (size_t)(end - line) : len, err);
    }
}

/* Start time of a process in clock ticks since boot; 0: no such process. */
static uint64_t start_time_of(pid_t pid)
{
    char path[64], text[1024];
    unsigned long long at = 0;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *rest = strrchr(text, ')'); /* the name may contain anything */
    for (int field = 2; rest && field < 22; field++)
        rest = strchr(rest + 1, ' ');
    return rest && sscanf(rest, " %llu", &at) == 1 ? at : 0;
}

/* The session also inherits the read end of its own stdout, so later output cannot fail with
 * EPIPE. */
static csn_status launch(const csn_remote *r, csn_dagger_session *s, csn_error **err)
{
    csn_autofree char *file = find_program();
    csn_autofd int in_r = -1, in_w = -1, out_r = -1, out_w = -1, pidfd = -1;
    const char *const argv[] = {"dagger", "session", NULL};
    int in[2], out[2];

    if (!file)
        return csn_dagger_session_check(err);
    if (pipe2(in, O_CLOEXEC) < 0)
        return csn_fail_errno(err, errno, "pipe");
    in_r = in[0];
    in_w = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return csn_fail_errno(err, errno, "pipe");
    out_r = out[0];
    out_w = out[1];
    bool detached = (r->config->flags & CSN_OPEN_DETACHED) != 0;
    const csn_spawn_opts o = {.path = file,
                              .argv = argv,
                              .env = (const char *const *)environ,
                              .usual_signals = true,
                              .fds = {in_r, out_w, -1, out_r, in_w},
                              .nfds = detached ? 5 : 4};
    int e = csn_spawn(&o, &s->pid, &pidfd, NULL);
    if (e < 0) {
        s->pid = 0;
        return csn_fail_errno(err, -e, "start '%s session'", file);
    }
    s->start_time = start_time_of(s->pid);
    s->stdin_fd = csn_steal_fd(&in_w);
    close(csn_steal_fd(&out_w)); /* so that the read end gets EOF */
    return read_line(r, s, out_r, pidfd, err);
}

csn_status csn_dagger_session_open(csn_remote *r, csn_error **err)
{
    csn_dagger_session *s = &csn_dagger_of(r)->session;
    const char *token = csn_remote_getenv("DAGGER_SESSION_TOKEN");
    unsigned port = 0;
    int used = 0;

    csn_status st = csn_dagger_session_check(err);
    if (st < 0 || s->port)
        return st;
    if (!csn_remote_getenv("DAGGER_SESSION_PORT"))
        return launch(r, s, err);
    const char *text = csn_remote_getenv("DAGGER_SESSION_PORT");
    if (sscanf(text, "%5u%n", &port, &used) != 1 || text[used] || port == 0 || port > 65535)
        return csn_fail(err, CSN_INVALID, "DAGGER_SESSION_PORT is not a port: '%.40s'", text);
    s->port = port;
    s->token = strdup(token);
    return s->token ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* ---- a session of another process ------------------------------------------------------- */

csn_status csn_dagger_session_attach(csn_dagger *d, const csn_jval *record, csn_error **err)
{
    csn_dagger_session *s = &d->session;
    const char *token = NULL;
    uint64_t pid = 0, at = 0, port = 0;

    if (csn_jget_u64(record, "pid", &pid, NULL) < 0 ||
        csn_jget_u64(record, "born", &at, NULL) < 0 ||
        csn_jget_u64(record, "port", &port, NULL) < 0 ||
        csn_jget_str(record, "token", &token, NULL) < 0 || !token || !port || port > 65535 ||
        !pid || pid > INT32_MAX)
        return csn_fail(err, CSN_GONE, "the record of the session is damaged");
    if (!at || start_time_of((pid_t)pid) != at)
        return csn_fail(err, CSN_GONE, "the session of the sandbox has ended");
    s->pid = (pid_t)pid;
    s->start_time = at;
    s->port = (unsigned)port;
    s->token = strdup(token);
    return s->token ? CSN_OK : csn_fail(err, CSN_NOMEM, "open");
}

/* ---- ending ----------------------------------------------------------------------------- */

/* Opens the pidfd before comparing the start time: if the times match, the pidfd refers to the
 * session. */
void csn_dagger_session_stop(csn_dagger *d)
{
    csn_dagger_session *s = &d->session;
    csn_autofd int pidfd = s->pid > 0 ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;

    if (s->stdin_fd >= 0)
        close(csn_steal_fd(&s->stdin_fd));
    if (pidfd < 0 || start_time_of(s->pid) != s->start_time)
        return;
    syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
    if (csn_spawn_wait(pidfd, END_MS) < 0) {
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        (void)csn_spawn_wait(pidfd, END_MS);
    }
    s->pid = 0;
}

void csn_dagger_session_release(csn_dagger *d)
{
    if (d->session.stdin_fd >= 0)
        close(d->session.stdin_fd);
    free(d->session.token);
}
