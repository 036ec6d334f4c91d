/* unix_proxy.h: a unix socket that passes bytes on to another one, counts what it is asked, and
 * breaks the line where a test says. A thread accepts, a thread a connection pumps. */
#pragma once
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROXY_LINES 4096

typedef struct unix_proxy {
    char path[108], to[108];
    int listener;
    pthread_t thread;
    atomic_int open_conns, gone, cuts;
    pthread_mutex_t lock;    /* guards what follows */
    char *seen[PROXY_LINES]; /* first lines of requests */
    size_t seen_count;
    char cut_match[64]; /* "": none */
    int cut_at;
} unix_proxy;

typedef struct proxy_conn {
    unix_proxy *p;
    int down, up;
    int cut_at; /* -1: not this one */
    int passed; /* bytes down since the request that is to be cut */
} proxy_conn;

static inline int proxy_socket(const char *path, bool serve)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    int r = serve ? bind(fd, (const struct sockaddr *)&a, sizeof(a))
                  : connect(fd, (const struct sockaddr *)&a, sizeof(a));
    if (r == 0 && serve)
        r = listen(fd, 128);
    if (r == 0)
        return fd;
    close(fd);
    return -1;
}

static inline bool proxy_begins(const char *data, size_t len)
{
    static const char *const verbs[] = {"GET /", "POST /", "PUT /", "DELETE /"};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (len > strlen(verbs[i]) && memcmp(data, verbs[i], strlen(verbs[i])) == 0)
            return true;
    return false;
}

/* A piece that begins a request: noted, and is it the one to cut? */
static inline void proxy_note(proxy_conn *c, const char *data, size_t len)
{
    unix_proxy *p = c->p;
    char line[512];

    if (!proxy_begins(data, len))
        return;
    snprintf(line, sizeof(line), "%.*s", (int)(len < 500 ? len : 500), data);
    line[strcspn(line, "\r\n")] = '\0';
    pthread_mutex_lock(&p->lock);
    if (p->seen_count < PROXY_LINES)
        p->seen[p->seen_count++] = strdup(line);
    bool cut = p->cut_match[0] && strncmp(line, p->cut_match, strlen(p->cut_match)) == 0;
    c->cut_at = cut ? p->cut_at : -1;
    if (cut)
        p->cut_match[0] = '\0';
    c->passed = 0;
    pthread_mutex_unlock(&p->lock);
}

/* One piece from one side to the other; false: the connection is over. */
static inline bool proxy_pass(proxy_conn *c, bool upward)
{
    char buf[65536];
    int from = upward ? c->down : c->up, to = upward ? c->up : c->down;
    ssize_t n = recv(from, buf, sizeof(buf), 0);

    if (n <= 0) {
        shutdown(to, SHUT_WR);
        return n == 0 && upward; /* a half-closed client still listens */
    }
    if (upward)
        proxy_note(c, buf, (size_t)n);
    else if (c->cut_at >= 0 && c->passed + n > c->cut_at) {
        (void)!send(to, buf, (size_t)(c->cut_at - c->passed), MSG_NOSIGNAL);
        c->p->cuts++;
        return false;
    }
    if (!upward)
        c->passed += (int)n;
    return send(to, buf, (size_t)n, MSG_NOSIGNAL) == n;
}

static inline void *proxy_pump(void *arg)
{
    proxy_conn *c = arg;
    bool going = true, hears = true;

    while (going && !c->p->gone) {
        struct pollfd f[] = {{.fd = hears ? c->down : -1, .events = POLLIN},
                             {.fd = c->up, .events = POLLIN}};
        if (poll(f, 2, 20) <= 0)
            continue;
        if (f[1].revents)
            going = proxy_pass(c, false);
        if (going && f[0].revents) {
            char one;
            hears = recv(c->down, &one, 1, MSG_PEEK) > 0;
            going = proxy_pass(c, true);
        }
    }
    close(c->down);
    close(c->up);
    c->p->open_conns--;
    free(c);
    return NULL;
}

static inline void *proxy_accept(void *arg)
{
    unix_proxy *p = arg;
    int fd;

    while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        proxy_conn *c = calloc(1, sizeof(*c));
        pthread_t t;
        *c = (proxy_conn){.p = p, .down = fd, .up = proxy_socket(p->to, false), .cut_at = -1};
        p->open_conns++;
        if (c->up < 0 || pthread_create(&t, NULL, proxy_pump, c) != 0)
            abort();
        pthread_detach(t);
    }
    return NULL;
}

static inline void unix_proxy_start(unix_proxy *p, const char *path, const char *to)
{
    memset(p, 0, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    snprintf(p->path, sizeof(p->path), "%s", path);
    snprintf(p->to, sizeof(p->to), "%s", to);
    p->listener = proxy_socket(path, true);
    if (p->listener < 0 || pthread_create(&p->thread, NULL, proxy_accept, p) != 0)
        abort();
}

/* As if the engine had been killed. */
static inline void unix_proxy_gone(unix_proxy *p)
{
    if (p->gone)
        return;
    unlink(p->path);
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
    p->gone = 1;
    while (p->open_conns > 0)
        usleep(1000);
}

static inline void unix_proxy_end(unix_proxy *p)
{
    unix_proxy_gone(p);
    for (size_t i = 0; i < p->seen_count; i++)
        free(p->seen[i]);
    pthread_mutex_destroy(&p->lock);
}

/* The next request whose line begins so: the connection closes after `at` bytes of the answer.
 * NULL: none. */
static inline void unix_proxy_cut(unix_proxy *p, const char *match, int at)
{
    pthread_mutex_lock(&p->lock);
    snprintf(p->cut_match, sizeof(p->cut_match), "%s", match ? match : "");
    p->cut_at = at;
    p->cuts = 0;
    pthread_mutex_unlock(&p->lock);
}

static inline int unix_proxy_cuts(unix_proxy *p)
{
    return p->cuts;
}

static inline int unix_proxy_count(unix_proxy *p, const char *part)
{
    int n = 0;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->seen_count; i++)
        n += strstr(p->seen[i], part) != NULL;
    pthread_mutex_unlock(&p->lock);
    return n;
}
