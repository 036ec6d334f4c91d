/* remote_hijack.c: the request that becomes a stream: every way a server can answer it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "remote/hijack.h"

#define YES "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n\r\n"

/* One connection: hears the request, says its lines, and then what `then` says. */
typedef enum { CLOSE, ECHO, HANG } then_what;
typedef struct server {
    char dir[64], path[96];
    int listener;
    pthread_t thread;
    const char *says[4];
    then_what then;
    char request[4096];
    bool saw_end; /* of what the client sends */
} server;

static void read_request(server *s, int fd)
{
    size_t len = 0;

    while (len < sizeof(s->request) - 1 && !strstr(s->request, "}")) {
        ssize_t n = read(fd, s->request + len, sizeof(s->request) - 1 - len);
        if (n <= 0)
            return;
        len += (size_t)n;
        s->request[len] = '\0';
    }
}

static void *serve(void *arg)
{
    server *s = arg;
    char buf[4096];
    ssize_t n = 0;
    csn_autofd int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return NULL;
    read_request(s, fd);
    for (size_t i = 0; i < 4 && s->says[i]; i++) {
        (void)!send(fd, s->says[i], strlen(s->says[i]), MSG_NOSIGNAL);
        usleep(2000); /* so that they come in pieces */
    }
    while (s->then != CLOSE && (n = read(fd, buf, sizeof(buf))) > 0)
        if (s->then == ECHO)
            (void)!send(fd, buf, (size_t)n, MSG_NOSIGNAL);
    s->saw_end = n == 0;
    if (s->then == ECHO)
        (void)!send(fd, "bye", 3, MSG_NOSIGNAL);
    return NULL;
}

static void server_start(server *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(s->dir, sizeof(s->dir), "/tmp/csn-hijack-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/s", s->dir);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listener, 4), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    unlink(s->path);
    rmdir(s->dir);
}

typedef struct heard {
    char text[4096];
    size_t stop_at; /* bytes */
    int alarms;
    uint64_t grant_ms;
    csn_status why;
    int wake; /* written at the alarm, or -1 */
} heard;

static int hear(void *ctx, const void *data, size_t len)
{
    heard *h = ctx;
    size_t have = strlen(h->text);

    snprintf(h->text + have, sizeof(h->text) - have, "%.*s", (int)len, (const char *)data);
    return h->stop_at && strlen(h->text) >= h->stop_at;
}

static uint64_t raised(void *ctx, csn_status why)
{
    heard *h = ctx;

    h->alarms++;
    h->why = why;
    if (h->wake >= 0)
        close(csn_steal_fd(&h->wake));
    return h->grant_ms ? csn_deadline_in(h->grant_ms) : 0;
}

static csn_hijack_req request(const server *s, heard *h)
{
    return (csn_hijack_req){.unix_path = s->path,
                            .path = "/exec/1/start",
                            .body = "{}",
                            .body_len = 2,
                            .input_fd = -1,
                            .deadline_ns = csn_deadline_in(30000),
                            .on_body = hear,
                            .on_interrupt = raised,
                            .ctx = h};
}

static void test_both_ways(void **state)
{
    server s = {.says = {"HTTP/1.1 101 Switch", "ing\r\nX: y\r\n\r", "\nfirst,"}, .then = ECHO};
    heard h = {.wake = -1};
    csn_autores res = {0};
    int in[2];
    (void)state;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(write(in[1], "second,", 7), 7);
    close(in[1]);
    server_start(&s);
    csn_hijack_req q = request(&s, &h);
    q.input_fd = in[0];
    assert_int_equal(csn_hijack_do(&q, &res, NULL), CSN_OK);
    close(in[0]);
    server_end(&s);
    assert_string_equal(h.text, "first,second,bye");
    assert_int_equal(res.status, 101);
    assert_true(res.sent && !res.stopped && s.saw_end);
    assert_non_null(strstr(s.request, "POST /exec/1/start HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request, "Content-Length: 2\r\n"));
}

static void test_stop(void **state)
{
    server s = {.says = {YES, "enough", "more"}, .then = HANG};
    heard h = {.wake = -1, .stop_at = 6};
    csn_autores res = {0};
    (void)state;

    server_start(&s);
    const csn_hijack_req q = request(&s, &h);
    assert_int_equal(csn_hijack_do(&q, &res, NULL), CSN_OK);
    server_end(&s);
    assert_true(res.stopped);
}

/* A refusal ends where it says; the server keeps the connection. */
static void test_refusal(void **state)
{
    server s = {.says = {"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n", "no", "pe!"},
                .then = HANG};
    heard h = {.wake = -1};
    csn_autores res = {0};
    (void)state;

    server_start(&s);
    const csn_hijack_req q = request(&s, &h);
    assert_int_equal(csn_hijack_do(&q, &res, NULL), CSN_OK);
    server_end(&s);
    assert_int_equal(res.status, 404);
    assert_string_equal(res.body.data, "nope!");
    assert_string_equal(h.text, "");
}

static csn_status answer_is(const char *text, then_what then, csn_http_res *res)
{
    server s = {.says = {text}, .then = then};
    heard h = {.wake = -1};

    server_start(&s);
    const csn_hijack_req q = request(&s, &h);
    csn_status st = csn_hijack_do(&q, res, NULL);
    server_end(&s);
    return st;
}

static void test_nonsense(void **state)
{
    static char endless[20000];
    csn_autores none = {0}, noise = {0}, lasting = {0};
    (void)state;

    memset(endless, 'x', sizeof(endless) - 1);
    assert_int_equal(answer_is("", CLOSE, &none), CSN_UNAVAILABLE);
    assert_true(none.sent);
    assert_int_equal(answer_is("SSH-2.0\r\n\r\n", HANG, &noise), CSN_IO);
    assert_int_equal(answer_is(endless, HANG, &lasting), CSN_IO);
}

static void test_nobody(void **state)
{
    csn_autores res = {0};
    csn_error *err = NULL;
    const csn_hijack_req q = {.unix_path = "/nonexistent/s", .path = "/x", .input_fd = -1};
    (void)state;

    assert_int_equal(csn_hijack_do(&q, &res, &err), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), "/nonexistent/s"));
    assert_false(res.sent);
    csn_error_free(err);
}

static void test_deadline(void **state)
{
    server s = {.says = {YES}, .then = HANG};
    heard h = {.wake = -1};
    csn_autores res = {0};
    (void)state;

    server_start(&s);
    csn_hijack_req q = request(&s, &h);
    q.deadline_ns = csn_deadline_in(50);
    assert_int_equal(csn_hijack_do(&q, &res, NULL), CSN_TIMEOUT);
    server_end(&s);
    assert_int_equal(h.alarms, 1);
    assert_int_equal(h.why, CSN_TIMEOUT);
}

/* Cancelled, but listened to until the end. */
static void test_cancel(void **state)
{
    server s = {.says = {YES}, .then = ECHO};
    csn_autofd int cancel = eventfd(1, EFD_CLOEXEC);
    const int32_t fds[] = {-1, cancel};
    heard h = {.grant_ms = 30000};
    csn_autores res = {0};
    int in[2];
    (void)state;

    assert_int_equal(pipe(in), 0);
    h.wake = in[1]; /* the alarm lets stdin end, and so the stream */
    server_start(&s);
    csn_hijack_req q = request(&s, &h);
    q.input_fd = in[0];
    q.cancel_fds = fds;
    q.cancel_count = 2;
    assert_int_equal(csn_hijack_do(&q, &res, NULL), CSN_OK);
    close(in[0]);
    server_end(&s);
    assert_int_equal(h.alarms, 1);
    assert_int_equal(h.why, CSN_CANCELLED);
    assert_string_equal(h.text, "bye");
}

static void test_kept_open(void **state)
{
    server s = {.says = {YES}, .then = HANG};
    heard h = {.wake = -1};
    csn_autores res = {0};
    int fd = -1;
    (void)state;

    server_start(&s);
    const csn_hijack_req q = request(&s, &h);
    assert_int_equal(csn_hijack_open(&q, &res, &fd, NULL), CSN_OK);
    assert_true(fd >= 0);
    close(fd);
    server_end(&s);
    assert_true(s.saw_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_refusal),   cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_nobody),    cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_cancel),    cmocka_unit_test(test_kept_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
