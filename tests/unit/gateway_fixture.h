/* gateway_fixture.h: a real gateway, with the test as its library and as its keeper. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/protocol.h"

#define GW_WAIT_MS 60000 /* how long anything may take before a test gives up */

typedef struct gw {
    pid_t pid;
    int control;
    csn_gateway_ready ready;
    char failed[CSN_GATEWAY_TEXT_MAX + 1]; /* of the last answer, or "" */
    uint8_t packet[CSN_KEEPER_MSG_MAX];
} gw;

static inline void gwt_die(const char *what)
{
    fprintf(stderr, "# gateway_fixture: %s: %m\n", what);
    abort();
}

static inline bool gwt_poll(int fd, short events, int ms)
{
    struct pollfd pf = {.fd = fd, .events = events};

    return poll(&pf, 1, ms) == 1;
}

/* Sends a request and waits for its answer: the type, 0 when the gateway hung up. Release m. */
static inline uint16_t gwt_request(gw *g, uint16_t type, const void *body, size_t len,
                                   const int *fds, size_t nfds, csn_msg *m)
{
    int pair[2], all[CSN_KEEPER_FDS_MAX];
    int rc = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        gwt_die("socketpair");
    all[0] = pair[1];
    if (nfds > 0)
        memcpy(all + 1, fds, nfds * sizeof(int));
    *m = (csn_msg){0};
    g->failed[0] = '\0';
    rc = csn_msg_send(g->control, type, body, len, all, nfds + 1, csn_deadline_in(GW_WAIT_MS));
    close(pair[1]);
    if (rc == 0 && gwt_poll(pair[0], POLLIN, GW_WAIT_MS))
        rc = csn_msg_recv(pair[0], g->packet, sizeof(g->packet), m);
    close(pair[0]);
    if (rc != 1)
        return 0;
    const char *text;
    if (m->type == CSN_GATEWAY_FAILED && csn_get_gateway_text(m->body, m->len, &text) == 0)
        snprintf(g->failed, sizeof(g->failed), "%s", text);
    return m->type;
}

/* Only the process; SETUP is still to come. */
static inline void gwt_spawn(gw *g, const char *program)
{
    int pair[2];

    *g = (gw){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        gwt_die("socketpair");
    g->pid = fork();
    if (g->pid == 0) {
        char *argv[] = {(char *)(uintptr_t) "caisson-gateway", NULL}, *env[] = {NULL};
        if (pair[1] == 3)
            (void)fcntl(3, F_SETFD, 0);
        else if (dup2(pair[1], 3) < 0)
            _exit(127);
        execve(program, argv, env);
        _exit(127);
    }
    close(pair[1]);
    g->control = pair[0];
}

/* false: it refused, and g->failed says why. */
static inline bool gwt_setup(gw *g, const csn_gateway_setup_msg *s, const int *fds, size_t nfds)
{
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_setup(&o, s);
    uint16_t type = gwt_request(g, CSN_GATEWAY_SETUP, o.data, o.len, fds, nfds, &m);
    bool good =
        type == CSN_GATEWAY_READY && csn_get_gateway_ready(m.body, m.len, &g->ready) == 0;
    csn_msg_release(&m);
    csn_packer_release(&o);
    return good;
}

/* Waits for its end after the control connection is closed; how it exited, -1: it did not. */
static inline int gwt_end(gw *g)
{
    int status = 0;

    if (g->pid <= 0)
        return -1;
    if (g->control >= 0)
        close(g->control);
    g->control = -1;
    for (int i = 0; i < GW_WAIT_MS / 10; i++) {
        if (waitpid(g->pid, &status, WNOHANG) == g->pid) {
            g->pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        (void)poll(NULL, 0, 10);
    }
    kill(g->pid, SIGKILL);
    (void)waitpid(g->pid, &status, 0);
    g->pid = 0;
    return -1;
}

/* ---- sockets ---------------------------------------------------------------------------- */

static inline struct sockaddr_in gwt_addr(const char *ip, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    if (inet_pton(AF_INET, ip, &in.sin_addr) != 1)
        gwt_die(ip);
    return in;
}

/* Listens on 127.0.0.1; *port 0: any. */
static inline int gwt_listen(uint16_t *port)
{
    struct sockaddr_in in = gwt_addr("127.0.0.1", *port);
    socklen_t len = sizeof(in);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (void *)&in, sizeof(in)) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (void *)&in, &len) < 0)
        gwt_die("listen");
    *port = ntohs(in.sin_port);
    return fd;
}

/* -1 and errno when it cannot. */
static inline int gwt_connect(const char *ip, uint16_t port)
{
    struct sockaddr_in in = gwt_addr(ip, port);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (void *)&in, sizeof(in)) < 0) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* Everything a test reads comes soon or never. */
static inline int gwt_patient(int fd)
{
    struct timeval tv = {.tv_sec = GW_WAIT_MS / 1000};

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    return fd;
}

static inline int gwt_accept(int listener)
{
    if (!gwt_poll(listener, POLLIN, GW_WAIT_MS))
        return -1;
    return gwt_patient(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

static inline bool gwt_send(int fd, const void *data, size_t len)
{
    return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static inline bool gwt_say(int fd, const char *text)
{
    return gwt_send(fd, text, strlen(text));
}

/* A socket with a time limit is interrupted also where the process is only stopped and goes on.
 */
static inline ssize_t gwt_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    do
        n = recv(fd, buf, len, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Exactly so many bytes. */
static inline bool gwt_read(int fd, void *buf, size_t len)
{
    size_t at = 0;
    ssize_t n = 1;

    for (; at < len && n > 0; at += n > 0 ? (size_t)n : 0)
        n = gwt_recv(fd, (char *)buf + at, len - at);
    return at == len;
}

/* Is this what comes next? */
static inline bool gwt_hears(int fd, const char *text)
{
    char buf[4096];
    size_t len = strlen(text);

    return gwt_read(fd, buf, len) && memcmp(buf, text, len) == 0;
}

/* All until the end, as text; -1: it did not end in order. */
static inline ssize_t gwt_rest(int fd, char *buf, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while ((n = gwt_recv(fd, buf + len, size - 1 - len)) > 0)
        len += (size_t)n;
    buf[len] = '\0';
    return n < 0 ? -1 : (ssize_t)len;
}

static inline bool gwt_is_ended(int fd)
{
    char c;

    return gwt_recv(fd, &c, 1) == 0;
}

static inline bool gwt_is_reset(int fd)
{
    char c;
    ssize_t n;

    do
        n = gwt_recv(fd, &c, 1);
    while (n > 0);
    return n < 0 && errno == ECONNRESET;
}

static inline void gwt_reset(int fd)
{
    struct linger now = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
}

/* ---- events and rules -------------------------------------------------------------------- */

typedef struct gwt_seen {
    csn_gateway_event e; /* the strings are below */
    char name[CSN_GATEWAY_NAME_MAX + 1], address[CSN_GATEWAY_ADDRESS_MAX + 1];
    char rule[CSN_GATEWAY_RULE_MAX + 1], hint[CSN_GATEWAY_RULE_MAX + 1],
        why[CSN_GATEWAY_WHY_MAX + 1];
} gwt_seen;

/* One answer to EVENTS; how many events, -1: none came. */
static inline int gwt_events(gw *g, uint64_t since, gwt_seen *v, size_t max,
                             csn_gateway_batch *b)
{
    csn_packer o;
    csn_unpacker in;
    csn_msg m;
    int n = -1;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_since(&o, since);
    if (gwt_request(g, CSN_GATEWAY_EVENTS, o.data, o.len, NULL, 0, &m) ==
        CSN_GATEWAY_EVENTS_R) {
        csn_unpacker_init(&in, m.body, m.len);
        n = csn_get_gateway_batch(&in, b) < 0 ? -1 : 0;
        for (uint32_t i = 0; n >= 0 && i < b->count; i++) {
            gwt_seen s = {0};
            if (csn_get_gateway_event(&in, &s.e) < 0)
                gwt_die("event");
            snprintf(s.name, sizeof(s.name), "%s", s.e.name);
            snprintf(s.address, sizeof(s.address), "%s", s.e.address);
            snprintf(s.rule, sizeof(s.rule), "%s", s.e.rule);
            snprintf(s.hint, sizeof(s.hint), "%s", s.e.hint);
            snprintf(s.why, sizeof(s.why), "%s", s.e.why);
            if ((size_t)n < max)
                v[n++] = s;
        }
    }
    csn_msg_release(&m);
    csn_packer_release(&o);
    return n;
}

/* Waits for an event of that kind and verdict about a name (NULL: any). */
static inline bool gwt_event(gw *g, uint32_t kind, uint32_t verdict, const char *name,
                             gwt_seen *ret)
{
    static gwt_seen v[CSN_GATEWAY_BATCH_MAX];
    csn_gateway_batch b;

    for (int tries = 0; tries < GW_WAIT_MS / 10; tries++) {
        uint64_t since = 0;
        do {
            int n = gwt_events(g, since, v, CSN_GATEWAY_BATCH_MAX, &b);
            for (int i = 0; i < n; i++)
                if (v[i].e.kind == kind && v[i].e.verdict == verdict &&
                    (!name || strcmp(name, v[i].name) == 0)) {
                    *ret = v[i];
                    return true;
                }
            if (n < 0)
                return false;
            since = b.next;
        } while (b.more);
        (void)poll(NULL, 0, 10);
    }
    return false;
}

static inline bool gwt_update(gw *g, uint32_t mode, const char *const *allow,
                              const char *const *deny)
{
    csn_gateway_rules r = {.mode = mode,
                           .allow = (const char **)(uintptr_t)allow,
                           .deny = (const char **)(uintptr_t)deny};
    csn_packer o;
    csn_msg m;

    csn_packer_init(&o, NULL, 0);
    csn_put_gateway_rules(&o, &r);
    uint16_t type = gwt_request(g, CSN_GATEWAY_UPDATE, o.data, o.len, NULL, 0, &m);
    csn_msg_release(&m);
    csn_packer_release(&o);
    return type == CSN_GATEWAY_OK;
}

static inline const char *gwt_program(void)
{
    const char *p = getenv("CSN_TEST_GATEWAY");

    return p ? p : "./caisson-gateway";
}
