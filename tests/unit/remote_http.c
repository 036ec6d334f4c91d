/* remote_http.c: the HTTP client against a server that behaves, and against one that does not.
 *
 * Times are only ever compared with limits far above what a busy machine needs: a request that
 * ends by its own deadline must not take the minutes that the server would. What must have
 * happened by a short deadline is tried with longer ones until it has. Requests that follow
 * each other are few: on a busy machine each waits for its turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/un.h>

#include "base/clock.h"
#include "http_fixture.h"
#include "remote/http.h"

static http_fixture *room;
static csn_http *http;
static csn_error *err;
static char url[128];

#define E (csn_error_free(err), err = NULL, &err)

static const char *at(const char *path)
{
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", room->port, path);
    return url;
}

static int setup(void **state)
{
    (void)state;
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    room = http_room_open();
    return csn_http_new("caisson-test", NULL, &http, NULL) == CSN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    csn_http_free(http);
    http_room_close(room);
    csn_error_free(err);
    err = NULL;
    return 0;
}

#define GET(path, ...) ((csn_http_req){.method = "GET", .url = at(path), __VA_ARGS__})
#define POST(path, ...)                                                                        \
    ((csn_http_req){                                                                           \
        .method = "POST", .url = at(path), .body = "{}", .body_len = 2, __VA_ARGS__})

static csn_status run(csn_http_req q, csn_http_res *r)
{
    return csn_http_do(http, &q, r, E);
}

static void test_plain(void **state)
{
    static const char *const headers[] = {"X-Key: secret", "Content-Type: application/json",
                                          NULL};
    (void)state;
    {
        csn_autores r = {0};
        assert_int_equal(run(GET("/ok", .response_header = "x-next-token"), &r), CSN_OK);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body.data, "hello");
        assert_string_equal(r.content_type, "text/plain");
        assert_string_equal(r.header, "more");
    }
    {
        csn_autores r = {0};
        assert_int_equal(run(POST("/ok", .headers = headers), &r), CSN_OK);
        assert_non_null(strstr(room->head, "X-Key: secret"));
        assert_non_null(strstr(room->head, "User-Agent: caisson-test"));
        assert_null(strstr(room->head, "Expect"));
        assert_int_equal(room->body_len, 2);
    }
    {
        csn_autores r = {0};
        csn_http_req q = {.method = "DELETE", .url = at("/ok")};
        assert_int_equal(csn_http_do(http, &q, &r, E), CSN_OK);
        assert_int_equal(strncmp(room->head, "DELETE /ok", 10), 0);
    }
    assert_int_equal(room->accepted, 1); /* the connection was kept */
}

static void test_statuses_are_answers(void **state)
{
    csn_autores r = {0}, s = {0};

    (void)state;
    assert_int_equal(run(GET("/404"), &r), CSN_OK);
    assert_int_equal(r.status, 404);
    assert_non_null(strstr(r.body.data, "gone"));
    /* a redirect is not followed: credentials stay where they were meant to go */
    assert_int_equal(run(GET("/redirect"), &s), CSN_OK);
    assert_int_equal(s.status, 302);
    assert_int_equal(http_room_count(room, "/ok", 0), 0);
}

static int64_t give(void *ctx, void *buf, size_t len)
{
    size_t *left = ctx;
    size_t n = len < *left ? len : *left;

    n = n < 777 ? n : 777;
    memset(buf, 'u', n);
    *left -= n;
    return (int64_t)n;
}

static int64_t give_up(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    (void)buf;
    (void)len;
    return -1;
}

static void test_upload(void **state)
{
    size_t left = 50000, again = 50000;
    csn_autores r = {0}, s = {0}, t = {0};
    csn_http_req q = {.method = "POST",
                      .url = at("/upload"),
                      .upload = give,
                      .upload_ctx = &left,
                      .upload_len = -1};

    (void)state;
    assert_int_equal(csn_http_do(http, &q, &r, E), CSN_OK);
    assert_string_equal(r.body.data, "50000");
    assert_non_null(strstr(room->head, "chunked"));
    q.upload_ctx = &again;
    q.upload_len = 50000;
    assert_int_equal(csn_http_do(http, &q, &s, E), CSN_OK);
    assert_string_equal(s.body.data, "50000");
    assert_non_null(strstr(room->head, "Content-Length: 50000"));
    q.upload = give_up;
    assert_int_equal(csn_http_do(http, &q, &t, E), CSN_IO);
}

/* The shortest of ever longer deadlines within which the request gets this far. */
static csn_status run_until(const char *path, bool (*far)(const csn_http_res *),
                            csn_http_res *r)
{
    csn_status st = CSN_INTERNAL;

    for (uint64_t ms = 100; ms <= 51200; ms *= 2) {
        csn_http_res_release(r);
        *r = (csn_http_res){0};
        st = run(GET(path, .deadline_ns = csn_deadline_in(ms)), r);
        if (far(r))
            break;
    }
    return st;
}

static bool was_sent(const csn_http_res *r)
{
    return r->sent;
}

static bool has_part(const csn_http_res *r)
{
    return r->body.len > 0;
}

static void test_deadline_and_silence(void **state)
{
    csn_autores r = {0}, s = {0}, t = {0};

    (void)state;
    assert_int_equal(run_until("/slow", was_sent, &r), CSN_TIMEOUT);
    assert_true(r.sent);
    assert_int_equal(r.status, 0);
    assert_int_equal(r.attempts, 1);
    assert_int_equal(run(POST("/slow2", .idle_ms = 200), &s), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), "127.0.0.1"));
    assert_true(http_room_count(room, "/slow2", 0) <= 1); /* it was not repeated */
    assert_int_equal(run_until("/stall", has_part, &t), CSN_TIMEOUT);
    assert_int_equal(t.status, 200);
    assert_int_equal(t.body.len, 3);
}

typedef struct firing {
    int fd;
} firing;

static void *fire(void *arg)
{
    firing *f = arg;
    uint64_t one = 1;

    (void)poll(NULL, 0, 100);
    (void)!write(f->fd, &one, sizeof(one));
    return NULL;
}

static void test_cancel(void **state)
{
    firing f = {.fd = eventfd(0, EFD_CLOEXEC)};
    const int32_t fds[] = {-1, f.fd};
    csn_autores r = {0}, s = {0};
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, fire, &f), 0);
    assert_int_equal(run(GET("/slow", .cancel_fds = fds, .cancel_count = 2), &r),
                     CSN_CANCELLED);
    pthread_join(t, NULL);
    /* cancelled before it began, and while it waits to try again */
    assert_int_equal(run(GET("/slow", .cancel_fds = fds, .cancel_count = 2), &s),
                     CSN_CANCELLED);
    close(f.fd);
}

static void test_broken_answers(void **state)
{
    static const char *const paths[] = {"/cut", "/cutchunk", "/badchunk"};
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        csn_autores r = {0};
        assert_int_equal(run(POST(paths[i]), &r), CSN_IO);
        assert_int_equal(r.status, 200);
        assert_int_equal(http_room_count(room, paths[i], 0), 1);
    }
    csn_autores r = {0}, s = {0};
    assert_true(run(POST("/garbage"), &r) < 0);
    assert_int_equal(http_room_count(room, "/garbage", 0), 1);
    assert_true(run(POST("/short"), &s) == CSN_OK || err != NULL);
}

/* What may have been acted on is not asked again. */
static void test_no_second_time(void **state)
{
    csn_autores r = {0}, s = {0}, t = {0}, u = {0}, v = {0};

    (void)state;
    assert_int_equal(run(POST("/drop"), &r), CSN_UNAVAILABLE);
    assert_true(r.sent);
    assert_int_equal(http_room_count(room, "/drop", 0), 1);
    assert_int_equal(run(POST("/down"), &s), CSN_OK);
    assert_int_equal(s.status, 503);
    assert_int_equal(http_room_count(room, "/down", 0), 1);
    /* a kept connection that dies under a request: libcurl alone would send it again */
    assert_int_equal(run(POST("/second"), &t), CSN_OK);
    assert_int_equal(run(POST("/second"), &u), CSN_UNAVAILABLE);
    assert_int_equal(http_room_count(room, "/second", 0), 2);
    assert_int_equal(run(GET("/down2", .retry = CSN_HTTP_IDEMPOTENT), &v), CSN_OK);
    assert_int_equal(v.status, 503);
    assert_int_equal(v.attempts, CSN_HTTP_ATTEMPTS);
    assert_int_equal(http_room_count(room, "/down2", 0), CSN_HTTP_ATTEMPTS);
}

static void test_too_many(void **state)
{
    uint64_t start = csn_now_ns();
    csn_autores r = {0}, s = {0}, t = {0};

    (void)state;
    /* 429 says that nothing was done, so even what must happen once is asked again */
    assert_int_equal(run(POST("/busy"), &r), CSN_OK);
    assert_int_equal(r.status, 200);
    assert_int_equal(http_room_count(room, "/busy", 0), 3);
    assert_true(csn_now_ns() - start >= 1900000000ull); /* Retry-After: 1, twice */
    /* but not when the wait is longer than there is time */
    assert_int_equal(run(POST("/busy2", .deadline_ns = csn_deadline_in(18000)), &s), CSN_OK);
    assert_int_equal(s.status, 429);
    assert_int_equal(http_room_count(room, "/busy2", 0), 1);
    assert_int_equal(run(POST("/later"), &t), CSN_OK);
    assert_int_equal(t.status, 429);
    assert_int_equal(http_room_count(room, "/later", 0), 1);
}

static int count_body(void *ctx, const void *data, size_t len)
{
    size_t *n = ctx;

    (void)data;
    *n += len;
    return *n > 200000;
}

static void test_endless(void **state)
{
    size_t n = 0;
    csn_autores r = {0}, s = {0};

    (void)state;
    assert_int_equal(run(GET("/endless", .body_max = 100000), &r), CSN_TOO_LARGE);
    assert_true(r.body.len <= 100000);
    assert_int_equal(run(GET("/endless", .on_body = count_body, .ctx = &n), &s), CSN_OK);
    assert_true(s.stopped);
    assert_true(n > 200000 && n < 10000000);
}

static void test_nobody_there(void **state)
{
    csn_autores r = {0}, s = {0}, t = {0};
    csn_http_req q = {
        .method = "POST", .url = "http://127.0.0.1:1/x", .body = "x", .body_len = 1};

    (void)state;
    assert_int_equal(csn_http_do(http, &q, &r, E), CSN_UNAVAILABLE);
    assert_false(r.sent);
    assert_non_null(strstr(csn_error_message(err), "cannot connect to 127.0.0.1:1"));
    q.url = "file:///etc/passwd";
    assert_int_equal(csn_http_do(http, &q, &s, E), CSN_INVALID);
    char with_user[64]; /* who we are is never shown */
    csn_url_host("http://me:secret@host:80/x", with_user, sizeof(with_user));
    assert_string_equal(with_user, "host:80");
    /* plain text where TLS is wanted */
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/ok", room->port);
    q.url = url;
    q.deadline_ns = csn_deadline_in(300);
    csn_status st = csn_http_do(http, &q, &t, E);
    assert_true(st == CSN_TIMEOUT ||
                st == CSN_UNAVAILABLE); /* it waits for the end of a line */
    assert_false(t.sent);
    assert_int_equal(http_room_count(room, "/ok", 0), 0);
}

static void test_proxy_variable(void **state)
{
    char proxy[64];
    csn_autores r = {0};
    csn_http_req q = {.method = "GET", .url = "http://somewhere.invalid/x"};

    (void)state;
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", room->port);
    setenv("http_proxy", proxy, 1);
    assert_int_equal(csn_http_do(http, &q, &r, E), CSN_OK);
    unsetenv("http_proxy");
    assert_int_equal(strncmp(room->head, "GET http://somewhere.invalid/x", 30), 0);
}

#define THREADS 16
#define EACH    20

static void *many(void *arg)
{
    size_t *good = arg;
    char own[128];

    snprintf(own, sizeof(own), "http://127.0.0.1:%u/ok", room->port);
    for (int i = 0; i < EACH; i++) {
        csn_autores r = {0};
        csn_http_req q = {.method = "GET", .url = own};
        *good +=
            csn_http_do(http, &q, &r, NULL) == CSN_OK && r.status == 200 && r.body.len == 5;
    }
    return NULL;
}

static void test_threads(void **state)
{
    size_t good[THREADS] = {0};
    pthread_t t[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, many, &good[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(good[i], EACH);
    }
    assert_true(room->accepted <= THREADS);
}

#define FLAT_STEP 200

static void *one_by_one(void *arg)
{
    size_t *good = arg;
    char own[128];

    snprintf(own, sizeof(own), "http://127.0.0.1:%u/ok", room->port);
    for (int i = 0; i < FLAT_STEP; i++) {
        csn_autores r = {0};
        csn_http_req q = {.method = "POST", .url = own, .body = "{}", .body_len = 2};
        *good += csn_http_do(http, &q, &r, NULL) == CSN_OK && r.status == 200;
    }
    return NULL;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Neither memory, nor descriptors, nor connections grow; ten thousand are in tools/stress. */
static void test_flat(void **state)
{
    size_t good = 0;

    (void)state;
    one_by_one(&good);
    size_t heap = heap_bytes();
    int accepted = room->accepted, fd = dup(0);
    close(fd);
    for (int i = 0; i < 5; i++)
        one_by_one(&good);
    assert_int_equal(good, 6 * FLAT_STEP);
    assert_int_equal(room->accepted, accepted);
    assert_true(heap_bytes() <= heap + 65536);
    int now = dup(0); /* the lowest free number is what it was */
    close(now);
    assert_int_equal(now, fd);
}

static void test_escape(void **state)
{
    csn_autobuf b;

    (void)state;
    csn_buf_init(&b, 1000);
    assert_int_equal(csn_url_escape(&b, "a b/\xff?~%"), 0);
    assert_string_equal(b.data, "a%20b%2F%FF%3F~%25");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_plain),          T(test_statuses_are_answers),
        T(test_upload),         T(test_deadline_and_silence),
        T(test_cancel),         T(test_broken_answers),
        T(test_no_second_time), T(test_too_many),
        T(test_endless),        T(test_nobody_there),
        T(test_proxy_variable), T(test_threads),
        T(test_flat),           T(test_escape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
