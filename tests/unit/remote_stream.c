/* remote_stream.c: the stream decoders: every way to cut the bytes gives the same messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "remote/stream.h"

typedef struct heard {
    char text[4096];
    int count, stop_at;
} heard;

static int hear(void *ctx, const csn_message *m)
{
    heard *h = ctx;
    size_t len = strlen(h->text);

    assert_int_equal(m->data[m->len], '\0');
    snprintf(h->text + len, sizeof(h->text) - len, "[%02x:%.*s]", m->flags, (int)m->len,
             m->data);
    return ++h->count == h->stop_at;
}

static csn_status feed_in(csn_stream_format format, const char *in, size_t len, size_t piece,
                          size_t max, heard *h)
{
    csn_stream_parser s;
    csn_status st = CSN_OK;

    csn_stream_parser_init(&s, format, max, hear, h);
    for (size_t at = 0; at < len && st == CSN_OK; at += piece)
        st = csn_stream_parser_feed(&s, in + at, len - at < piece ? len - at : piece, NULL);
    if (st == CSN_OK)
        st = csn_stream_parser_finish(&s, NULL);
    csn_stream_parser_release(&s);
    return st;
}

static void gives(csn_stream_format format, const char *in, size_t len, const char *want)
{
    for (size_t piece = 1; piece <= len; piece++) {
        heard h = {.count = 0};
        assert_int_equal(feed_in(format, in, len, piece, 1000, &h), CSN_OK);
        assert_string_equal(h.text, want);
    }
}

#define GIVES(kind, in, want) gives(kind, in, sizeof(in) - 1, want)

static void test_lines(void **state)
{
    (void)state;
    GIVES(CSN_STREAM_LINES, "{\"a\":1}\n\n{}\r\n  \n[2]", "[00:{\"a\":1}][00:{}][00:[2]]");
    GIVES(CSN_STREAM_LINES, "\n\n\n", "");
}

static void test_connect(void **state)
{
    (void)state;
    GIVES(CSN_STREAM_CONNECT, "\0\0\0\0\2hi\0\0\0\0\0\2\0\0\0\2{}", "[00:hi][00:][02:{}]");
}

/* The output of docker and podman exec. */
static void test_docker(void **state)
{
    (void)state;
    GIVES(CSN_STREAM_DOCKER, "\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\4err\n\1\0\0\0\0\0\0\0",
          "[01:out][02:err\n][01:]");
}

static void test_docker_broken(void **state)
{
    static const char frames[] = "\1\0\0\0\0\0\0\2hi\2\0\0\0\0\0\0\2yo";
    heard h = {.count = 0};
    (void)state;

    for (size_t len = 1; len < sizeof(frames) - 1; len++) {
        csn_status st = feed_in(CSN_STREAM_DOCKER, frames, len, len, 1000, &h);
        assert_int_equal(st, len == 10 ? CSN_OK : CSN_IO);
    }
    /* text where a head should be: a terminal's output, or another protocol */
    assert_int_equal(feed_in(CSN_STREAM_DOCKER, "plain text", 10, 3, 1000, &h), CSN_IO);
    assert_int_equal(feed_in(CSN_STREAM_DOCKER, "\1\0\1\0\0\0\0\2hi", 10, 10, 1000, &h),
                     CSN_IO);
    assert_int_equal(feed_in(CSN_STREAM_DOCKER, "\1\0\0\0\xff\xff\xff\xff", 8, 8, 100, &h),
                     CSN_TOO_LARGE);
}

static void test_cut(void **state)
{
    static const char frame[] = "\0\0\0\0\2hi\2\0\0\0\2{}";
    (void)state;

    for (size_t len = 1; len < sizeof(frame) - 1; len++) {
        heard h = {.count = 0};
        csn_status st = feed_in(CSN_STREAM_CONNECT, frame, len, len, 1000, &h);
        assert_int_equal(st, len == 7 ? CSN_OK : CSN_IO);
    }
}

static void test_ceilings(void **state)
{
    heard h = {.count = 0};
    (void)state;

    /* a length that is only announced costs nothing */
    assert_int_equal(feed_in(CSN_STREAM_CONNECT, "\0\xff\xff\xff\xff", 5, 5, 100, &h),
                     CSN_TOO_LARGE);
    assert_int_equal(feed_in(CSN_STREAM_LINES, "0123456789a", 11, 3, 10, &h), CSN_TOO_LARGE);
    assert_int_equal(feed_in(CSN_STREAM_LINES, "0123456789\n", 11, 3, 10, &h), CSN_OK);
}

static void test_stop(void **state)
{
    heard h = {.stop_at = 2};
    (void)state;

    assert_int_equal(feed_in(CSN_STREAM_LINES, "a\nb\nc\nd\n", 8, 8, 10, &h), CSN_OK);
    assert_int_equal(h.count, 2);
}

static void test_frame(void **state)
{
    csn_autobuf b;
    (void)state;

    csn_buf_init(&b, 100);
    assert_int_equal(csn_connect_frame(&b, 0, "hi", 2), 0);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "\0\0\0\0\2hi", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_connect),
        cmocka_unit_test(test_cut),    cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_stop),   cmocka_unit_test(test_frame),
        cmocka_unit_test(test_docker), cmocka_unit_test(test_docker_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
