/* http_fixture.h: a small HTTP server for tests of net/, with faults by path.
 *
 * A thread accepts, a thread a connection answers. Requests are counted by path, so that a test
 * can say how often something really arrived. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_ROOM_PATHS 32

typedef struct http_fixture {
    int listener;
    unsigned port;
    pthread_t thread;
    atomic_int stop, open_conns, accepted;
    pthread_mutex_t lock;
    struct {
        char path[64];
        int count;
    } seen[HTTP_ROOM_PATHS];
    char head[4096]; /* of the last request */
    char body[65536];
    size_t body_len;
} http_fixture;

typedef struct http_conn {
    http_fixture *room;
    int fd;
    char buf[8192];
    size_t len;
} http_conn;

static int http_room_count(http_fixture *r, const char *path, int add)
{
    int n = 0;

    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < HTTP_ROOM_PATHS; i++) {
        if (r->seen[i].path[0] && strcmp(r->seen[i].path, path) != 0)
            continue;
        snprintf(r->seen[i].path, sizeof(r->seen[i].path), "%s", path);
        n = r->seen[i].count += add;
        break;
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

static bool http_send(http_conn *c, const char *text, size_t len)
{
    while (len > 0) {
        struct pollfd p = {.fd = c->fd, .events = POLLOUT};
        if (poll(&p, 1, 50) == 0) {
            if (c->room->stop)
                return false;
            continue;
        }
        ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

static bool http_puts(http_conn *c, const char *text)
{
    return http_send(c, text, strlen(text));
}

/* More bytes into c->buf; false at the end or when the room closes. */
static bool http_more(http_conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    while (poll(&p, 1, 50) <= 0)
        if (c->room->stop)
            return false;
    if (c->len == sizeof(c->buf))
        return false;
    ssize_t n = recv(c->fd, c->buf + c->len, sizeof(c->buf) - c->len, 0);
    if (n <= 0)
        return false;
    c->len += (size_t)n;
    return true;
}

static void http_drop(http_conn *c, size_t n)
{
    memmove(c->buf, c->buf + n, c->len - n);
    c->len -= n;
}

static bool http_keep_body(http_conn *c, size_t n)
{
    http_fixture *r = c->room;

    while (n > 0) {
        if (c->len == 0 && !http_more(c))
            return false;
        size_t k = n < c->len ? n : c->len;
        pthread_mutex_lock(&r->lock);
        if (r->body_len + k <= sizeof(r->body)) {
            memcpy(r->body + r->body_len, c->buf, k);
            r->body_len += k;
        }
        pthread_mutex_unlock(&r->lock);
        http_drop(c, k);
        n -= k;
    }
    return true;
}

static bool http_line(http_conn *c, char *line, size_t size)
{
    char *nl;

    while (!(nl = memmem(c->buf, c->len, "\r\n", 2)))
        if (!http_more(c))
            return false;
    size_t n = (size_t)(nl - c->buf);
    snprintf(line, size, "%.*s", (int)n, c->buf);
    http_drop(c, n + 2);
    return true;
}

/* Reads one request; its path goes to `path`. */
static bool http_request(http_conn *c, char *path, size_t size)
{
    char line[2048], all[4096] = "";
    long length = 0;
    bool chunked = false;

    if (!http_line(c, line, sizeof(line)) || sscanf(line, "%*s %63s", path) != 1)
        return false;
    (void)size;
    do {
        strncat(all, line, sizeof(all) - strlen(all) - 2);
        strncat(all, "\n", 2);
        if (strncasecmp(line, "content-length:", 15) == 0)
            length = strtol(line + 15, NULL, 10);
        if (strncasecmp(line, "transfer-encoding: chunked", 26) == 0)
            chunked = true;
        if (!http_line(c, line, sizeof(line)))
            return false;
    } while (line[0]);
    pthread_mutex_lock(&c->room->lock);
    memcpy(c->room->head, all, sizeof(all));
    c->room->body_len = 0;
    pthread_mutex_unlock(&c->room->lock);
    if (!chunked)
        return http_keep_body(c, (size_t)length);
    for (;;) {
        if (!http_line(c, line, sizeof(line)))
            return false;
        size_t n = strtoul(line, NULL, 16);
        if (!http_keep_body(c, n) || !http_line(c, line, sizeof(line)))
            return false;
        if (n == 0)
            return true;
    }
}

static bool http_reply(http_conn *c, const char *status, const char *more, const char *body)
{
    char all[1024];

    /* in one piece: the second would wait for an acknowledgement of the first */
    int n = snprintf(all, sizeof(all),
                     "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     status, more, strlen(body), body);
    return http_send(c, all, (size_t)n);
}

static bool http_chunked(http_conn *c)
{
    return http_puts(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

/* Nothing more from us until the other side has had enough. */
static bool http_hold(http_conn *c)
{
    while (c->len < sizeof(c->buf) && http_more(c))
        continue;
    return false;
}

/* false: close the connection. */
static bool http_answer(http_conn *c, const char *path, int count)
{
    char text[64];

    if (strcmp(path, "/ok") == 0)
        return http_reply(c, "200 OK", "X-Next-Token: more\r\n", "hello");
    if (strcmp(path, "/404") == 0)
        return http_reply(c, "404 Not Found", "", "{\"code\":404,\"message\":\"gone\"}");
    if (strcmp(path, "/redirect") == 0)
        return http_reply(c, "302 Found", "Location: /ok\r\n", "");
    if (strncmp(path, "/slow", 5) == 0)
        return http_hold(c);
    if (strcmp(path, "/stall") == 0)
        return http_chunked(c) && http_puts(c, "3\r\nabc\r\n") && http_hold(c);
    if (strcmp(path, "/cut") == 0)
        return http_puts(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789") &&
               false;
    if (strcmp(path, "/cutchunk") == 0)
        return http_chunked(c) && http_puts(c, "a\r\n0123456789\r\n5\r\n01") && false;
    if (strcmp(path, "/badchunk") == 0)
        return http_chunked(c) && http_puts(c, "zz\r\n0123456789\r\n") && false;
    if (strcmp(path, "/garbage") == 0)
        return http_puts(c, "\x16\x03\x01 what?\r\n\r\n") && false;
    if (strcmp(path, "/short") == 0) /* more comes than was announced */
        return http_reply(c, "200 OK", "Content-Length: 2\r\n", "hello") && false;
    if (strcmp(path, "/drop") == 0)
        return false;
    if (strcmp(path, "/second") == 0) /* the connection dies under the second request */
        return count == 1 && http_reply(c, "200 OK", "", "first");
    if (strcmp(path, "/busy2") == 0)
        return http_reply(c, "429 Too Many Requests", "Retry-After: 19\r\n", "busy");
    if (strncmp(path, "/busy", 5) == 0)
        return count <= 2 ? http_reply(c, "429 Too Many Requests", "Retry-After: 1\r\n", "busy")
                          : http_reply(c, "200 OK", "", "at last");
    if (strcmp(path, "/later") == 0)
        return http_reply(c, "429 Too Many Requests", "Retry-After: 3600\r\n", "busy");
    if (strncmp(path, "/down", 5) == 0)
        return http_reply(c, "503 Service Unavailable", "", "down");
    if (strcmp(path, "/endless") == 0) {
        if (!http_chunked(c))
            return false;
        while (http_puts(c, "400\r\n")) {
            char block[1024];
            memset(block, 'x', sizeof(block));
            if (!http_send(c, block, sizeof(block)) || !http_puts(c, "\r\n"))
                return false;
        }
        return false;
    }
    if (strcmp(path, "/upload") == 0) {
        pthread_mutex_lock(&c->room->lock);
        snprintf(text, sizeof(text), "%zu", c->room->body_len);
        pthread_mutex_unlock(&c->room->lock);
        return http_reply(c, "200 OK", "", text);
    }
    return http_reply(c, "400 Bad Request", "", "what?");
}

static void *http_serve_one(void *arg)
{
    http_conn *c = arg;
    http_fixture *r = c->room;
    char path[64];

    while (!r->stop && http_request(c, path, sizeof(path)))
        if (!http_answer(c, path, http_room_count(r, path, 1)))
            break;
    close(c->fd);
    free(c);
    r->open_conns--;
    return NULL;
}

static void *http_serve(void *arg)
{
    http_fixture *r = arg;

    while (!r->stop) {
        struct pollfd p = {.fd = r->listener, .events = POLLIN};
        pthread_t t;
        if (poll(&p, 1, 50) <= 0)
            continue;
        http_conn *c = calloc(1, sizeof(*c));
        c->fd = accept(r->listener, NULL, NULL);
        c->room = r;
        r->accepted++;
        r->open_conns++;
        if (c->fd < 0 || pthread_create(&t, NULL, http_serve_one, c) != 0)
            abort();
        pthread_detach(t);
    }
    return NULL;
}

static http_fixture *http_room_open(void)
{
    http_fixture *r = calloc(1, sizeof(*r));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);

    if (!r)
        abort();
    pthread_mutex_init(&r->lock, NULL);
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->listener < 0 || bind(r->listener, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(r->listener, 128) != 0 || getsockname(r->listener, (void *)&a, &len) != 0)
        abort();
    r->port = ntohs(a.sin_port);
    if (pthread_create(&r->thread, NULL, http_serve, r) != 0)
        abort();
    return r;
}

static void http_room_close(http_fixture *r)
{
    r->stop = 1;
    pthread_join(r->thread, NULL);
    while (r->open_conns > 0)
        (void)poll(NULL, 0, 5);
    close(r->listener);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
