/* keeper_protocol.c: the messages between library and keeper, without a keeper. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/protocol.h"
#include "keeper/spec.h"
#include "os/gateway_net.h"

static size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void numbers_and_strings_come_back(void **state)
{
    uint8_t buf[8]; /* so small that it must grow */
    csn_packer o;
    csn_unpacker in;

    (void)state;
    csn_packer_init(&o, buf, sizeof(buf));
    csn_put_u32(&o, 7);
    csn_put_i64(&o, -5);
    csn_put_str(&o, "");
    csn_put_str(&o, NULL);
    csn_put_str(&o, "text");
    assert_int_equal(o.error, 0);
    csn_unpacker_init(&in, o.data, o.len);
    assert_int_equal(csn_get_u32(&in), 7);
    assert_int_equal(csn_get_i64(&in), -5);
    assert_string_equal(csn_get_str(&in, 10, true), "");
    assert_null(csn_get_str(&in, 10, true));
    assert_string_equal(csn_get_str(&in, 4, false), "text");
    assert_int_equal(csn_unpacker_end(&in), 0);
    csn_packer_release(&o);
}

static void strings_that_lie_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, max;
    } rows[] = {
        {"\x04\0\0\0text", 8, 10},            /* no NUL */
        {"\x04\0\0\0te\0t\0", 9, 10},         /* a NUL inside */
        {"\x04\0\0\0text\0", 9, 3},           /* longer than allowed */
        {"\xff\xff\xff\xff", 4, 10},          /* NULL where there must be one */
        {"\xfe\xff\xff\xff", 4, 0xffffffffu}, /* a length that wraps */
        {"\x04\0\0", 3, 10},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        csn_unpacker in;
        csn_unpacker_init(&in, rows[i].bytes, rows[i].len);
        assert_null(csn_get_str(&in, rows[i].max, false));
        assert_true(csn_unpacker_end(&in) < 0);
        assert_int_equal(csn_get_u64(&in), 0); /* and it stays so */
    }
}

static void body_over_the_ceiling_is_refused(void **state)
{
    csn_packer o;
    char *big = malloc(CSN_KEEPER_BODY_MAX + 1);

    (void)state;
    memset(big, 'a', CSN_KEEPER_BODY_MAX);
    big[CSN_KEEPER_BODY_MAX] = '\0';
    csn_packer_init(&o, NULL, 0);
    csn_put_str(&o, big);
    assert_int_equal(o.error, E2BIG);
    csn_packer_release(&o);
    free(big);
}

/* Encodes without a check of what is sent, so that the decoder's own check is tested. */
static int decode_bytes(csn_msg_type type, const void *body, size_t len, size_t nfds, void *ret)
{
    csn_msg m = {.type = type, .body = body, .len = len, .nfds = nfds};

    return csn_proto_decode(&m, type, ret);
}

static csn_spawn_msg sample_spawn(const char **argv, const char **env)
{
    return (csn_spawn_msg){.flags = CSN_SPAWN_CWD_FD | CSN_SPAWN_STDOUT_FD,
                           .rows = 3,
                           .memory_max = 5,
                           .deadline_ns = 9,
                           .command = "text",
                           .argv = argv,
                           .env = env};
}

static void spawn_comes_back_and_no_part_of_it_is_taken(void **state)
{
    const char *argv[] = {"prog", "", "a b", NULL}, *env[] = {"A=1", NULL};
    const csn_spawn_msg s = sample_spawn(argv, env);
    csn_spawn_msg b;
    csn_packer o;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_proto_encode(&o, CSN_MSG_SPAWN, &s, 2);
    assert_int_equal(o.error, 0);
    assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, 2, &b), 0);
    assert_string_equal(b.argv[0], "prog");
    assert_string_equal(b.argv[1], "");
    assert_string_equal(b.argv[2], "a b");
    assert_null(b.argv[3]);
    assert_string_equal(b.env[0], "A=1");
    assert_null(b.env[1]);
    assert_null(b.cwd);
    assert_string_equal(b.command, "text");
    assert_int_equal(b.rows, 3);
    assert_int_equal(b.deadline_ns, 9);
    csn_proto_release(CSN_MSG_SPAWN, &b);
    for (size_t n = 0; n < o.len; n++) {
        uint8_t *cut = malloc(n ? n : 1); /* exact, so that a sanitizer sees an overrun */
        memcpy(cut, o.data, n);
        assert_int_equal(decode_bytes(CSN_MSG_SPAWN, cut, n, 2, &b), -EPROTO);
        free(cut);
    }
    assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, 1, &b), -EPROTO);
    assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, 3, &b), -EPROTO);
    csn_put_u32(&o, 0); /* nor with something after it */
    assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, 2, &b), -EPROTO);
    csn_packer_release(&o);
}

/* A few lie in the struct itself, more than that on the heap: at the seam, and far beyond it.
 */
static void spawn_has_room_for_any_number_of_arguments(void **state)
{
    static const size_t counts[] = {1, CSN_STRINGS_FEW - 6, CSN_STRINGS_FEW - 5, 1000};
    const char *argv[1001], *env[] = {"A=1", "B=2", NULL};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        csn_packer o;
        csn_spawn_msg b;
        for (size_t i = 0; i < counts[c]; i++)
            argv[i] = i % 2 ? "odd" : "even";
        argv[counts[c]] = NULL;
        csn_packer_init(&o, NULL, 0);
        csn_proto_encode(&o, CSN_MSG_SPAWN, &(csn_spawn_msg){.argv = argv, .env = env}, 0);
        assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, 0, &b), 0);
        assert_int_equal(b.strings.heap == NULL, counts[c] + 2 + 4 <= CSN_STRINGS_FEW);
        for (size_t i = 0; i < counts[c]; i++)
            assert_string_equal(b.argv[i], argv[i]);
        assert_null(b.argv[counts[c]]);
        assert_null(b.argv[-1]); /* the spare slot */
        assert_string_equal(b.env[0], "A=1");
        assert_string_equal(b.env[1], "B=2");
        assert_null(b.env[2]);
        csn_proto_release(CSN_MSG_SPAWN, &b);
        csn_packer_release(&o);
    }
}

/* Both sides refuse it: the encoder with EINVAL, the decoder when the bytes come all the same.
 */
static void assert_spawn_refused(csn_spawn_msg s, size_t nfds)
{
    const char *argv[] = {"prog", NULL};
    csn_spawn_msg good = {.argv = argv}, b;
    csn_packer o;

    s.argv = argv;
    csn_packer_init(&o, NULL, 0);
    csn_proto_encode(&o, CSN_MSG_SPAWN, &s, nfds);
    assert_int_equal(o.error, EINVAL);
    csn_packer_release(&o);
    csn_packer_init(&o, NULL, 0);
    csn_proto_encode(&o, CSN_MSG_SPAWN, &good, 0);
    memcpy(o.data, &s.flags, sizeof(s.flags)); /* the first three fields */
    memcpy(o.data + 4, &s.rows, sizeof(s.rows));
    memcpy(o.data + 36, &s.ring_max, sizeof(s.ring_max));
    assert_int_equal(decode_bytes(CSN_MSG_SPAWN, o.data, o.len, nfds, &b), -EPROTO);
    csn_packer_release(&o);
}

static void spawn_flags_that_contradict_one_another_are_refused(void **state)
{
    const uint32_t bg = CSN_SPAWN_BACKGROUND;

    (void)state;
    assert_spawn_refused((csn_spawn_msg){.flags = 1u << 20}, 0);
    assert_spawn_refused((csn_spawn_msg){.flags = CSN_SPAWN_RESTART}, 0);
    assert_spawn_refused((csn_spawn_msg){.rows = 65536}, 0);
    assert_spawn_refused((csn_spawn_msg){.flags = CSN_SPAWN_PTY}, 0);
    assert_spawn_refused((csn_spawn_msg){.flags = CSN_SPAWN_PTY | CSN_SPAWN_STDIN_FD}, 1);
    assert_spawn_refused((csn_spawn_msg){.flags = CSN_SPAWN_TIED}, 0);
    assert_spawn_refused((csn_spawn_msg){.flags = bg}, 0); /* no room for its output */
    assert_spawn_refused((csn_spawn_msg){.flags = bg | CSN_SPAWN_KEEP_CHANNEL, .ring_max = 1},
                         0);
    assert_spawn_refused((csn_spawn_msg){.flags = bg | CSN_SPAWN_STDOUT_FD, .ring_max = 1}, 1);
    assert_spawn_refused((csn_spawn_msg){.flags = bg | CSN_SPAWN_SOCKETS_FD, .ring_max = 1}, 1);
    assert_spawn_refused(
        (csn_spawn_msg){.flags = bg | CSN_SPAWN_PTY | CSN_SPAWN_STDIN_FD, .ring_max = 1}, 1);
}

/* Every step at which starting a command can fail reaches the library. */
static void exit_of_every_stage_comes_back(void **state)
{
    (void)state;
    for (uint32_t stage = 0; stage < CSN_STAGES; stage++) {
        csn_exit_msg e = {.stage = stage,
                          .errnum = stage ? EACCES : 0,
                          .status = 256,
                          .killed = CSN_KILLED_ASKED | CSN_KILLED_MEMORY,
                          .cpu_ns = 4,
                          .peak_memory = 5,
                          .after = CSN_AFTER_ALL},
                     r;
        csn_packer o;
        csn_packer_init(&o, NULL, 0);
        csn_proto_encode(&o, CSN_MSG_EXIT, &e, 0);
        assert_int_equal(decode_bytes(CSN_MSG_EXIT, o.data, o.len, 0, &r), 0);
        assert_int_equal(r.stage, stage);
        assert_int_equal(r.status, 256);
        assert_int_equal(r.killed, 3);
        assert_int_equal(r.peak_memory, 5);
        assert_int_equal(r.after, 7);
        assert_int_equal(decode_bytes(CSN_MSG_EXIT, o.data, o.len - 1, 0, &r), -EPROTO);
        assert_int_equal(decode_bytes(CSN_MSG_EXIT, o.data, o.len, 1, &r), -EPROTO);
        o.data[o.len - 4] = 8; /* an unknown flag of `after` */
        assert_int_equal(decode_bytes(CSN_MSG_EXIT, o.data, o.len, 0, &r), -EPROTO);
        o.data[o.len - 4] = 0;
        o.data[0] = CSN_STAGES;
        assert_int_equal(decode_bytes(CSN_MSG_EXIT, o.data, o.len, 0, &r), -EPROTO);
        csn_packer_release(&o);
    }
}

static void refused_name_has_a_ceiling(void **state)
{
    char name[CSN_DNS_NAME_MAX + 2];
    csn_refused_msg r;

    (void)state;
    memset(name, 'a', sizeof(name));
    for (size_t len = 0; len < sizeof(name); len++) {
        csn_packer o;
        name[len] = '\0';
        csn_packer_init(&o, NULL, 0);
        csn_proto_encode(&o, CSN_MSG_REFUSED, &(csn_refused_msg){.name = name}, 0);
        bool fits = len >= 1 && len <= CSN_DNS_NAME_MAX;
        assert_int_equal(o.error == 0, fits);
        if (fits) {
            assert_int_equal(decode_bytes(CSN_MSG_REFUSED, o.data, o.len, 0, &r), 0);
            assert_string_equal(r.name, name);
        }
        name[len] = 'a';
        csn_packer_release(&o);
    }
}

static void log_holds_no_more_than_its_stream(void **state)
{
    csn_log_msg l = {.offset = 5, .total = 9, .end = 1, .bytes = {(const uint8_t *)"abcd", 4}},
                r;
    csn_packer o;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_proto_encode(&o, CSN_MSG_LOG, &l, 0);
    assert_int_equal(decode_bytes(CSN_MSG_LOG, o.data, o.len, 0, &r), 0);
    assert_int_equal(r.bytes.len, 4);
    assert_memory_equal(r.bytes.data, "abcd", 4);
    o.data[16] = 8; /* the total: more bytes than the stream ever had */
    assert_int_equal(decode_bytes(CSN_MSG_LOG, o.data, o.len, 0, &r), -EPROTO);
    csn_packer_release(&o);
}

static void numbers_out_of_range_are_refused(void **state)
{
    static const struct {
        csn_msg_type type;
        size_t at; /* of a four-byte number */
        uint32_t value;
        union {
            csn_logs_msg logs;
            csn_signal_msg signal;
            csn_feed_msg feed;
            csn_port_msg port;
            csn_error_msg error;
            csn_failed_msg failed;
        } good;
    } rows[] = {
        {CSN_MSG_LOGS, 8, 0, {.logs = {.stream = 1}}},
        {CSN_MSG_LOGS, 8, 3, {.logs = {.stream = 1}}},
        {CSN_MSG_SIGNAL, 8, 0, {.signal = {.signo = 9}}},
        {CSN_MSG_SIGNAL, 8, 65, {.signal = {.signo = 9}}},
        {CSN_MSG_FEED, 8, 2, {.feed = {.close = 1}}},
        {CSN_MSG_PORT, 0, 0, {.port = {.port = 80}}},
        {CSN_MSG_PORT, 0, 65536, {.port = {.port = 80}}},
        {CSN_MSG_ERROR, 0, 0, {.error = {.errnum = 1}}},
        {CSN_MSG_ERROR, 0, 4096, {.error = {.errnum = 1}}},
        {CSN_MSG_ERROR, 4, CSN_STAGES, {.error = {.errnum = 1}}},
        {CSN_MSG_FAILED, 4, CSN_CONFINE_STEPS, {.failed = {.errnum = 1}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t buf[CSN_SMALL_BODY];
        csn_any_request any;
        csn_packer o;
        csn_packer_init(&o, buf, sizeof(buf));
        csn_proto_encode(&o, rows[i].type, &rows[i].good, 0);
        assert_int_equal(o.error, 0);
        assert_int_equal(decode_bytes(rows[i].type, o.data, o.len, 0, &any), 0);
        memcpy(o.data + rows[i].at, &rows[i].value, 4);
        assert_int_equal(decode_bytes(rows[i].type, o.data, o.len, 0, &any), -EPROTO);
    }
}

static void message_of_another_type_is_refused(void **state)
{
    csn_msg m = {.type = CSN_MSG_DONE};

    (void)state;
    assert_int_equal(csn_proto_decode(&m, CSN_MSG_DONE, NULL), 0);
    assert_int_equal(csn_proto_decode(&m, CSN_MSG_RELEASE, NULL), -EPROTO);
    m.type = 9999;
    assert_int_equal(csn_proto_decode(&m, 9999, NULL), -EPROTO);
    m = (csn_msg){.type = CSN_MSG_SPEC, .len = CSN_SPEC_MAX + 1};
    assert_int_equal(csn_proto_decode(&m, CSN_MSG_SPEC, NULL), -EPROTO);
}

static void channel_is_taken_out_of_the_descriptors(void **state)
{
    csn_msg m = {.fds = {7, 8, 9}, .nfds = 3}, none = {0};

    (void)state;
    assert_int_equal(csn_proto_take_channel(&m), 7);
    assert_int_equal(m.nfds, 2);
    assert_int_equal(m.fds[0], 8);
    assert_int_equal(m.fds[1], 9);
    assert_int_equal(csn_proto_take_channel(&none), -1);
    assert_int_equal(none.nfds, 0);
}

static void message_with_descriptors_crosses_a_socket(void **state)
{
    uint8_t buf[512];
    int sv[2];
    csn_msg m;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    size_t before = open_fds();
    assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), -EAGAIN);
    assert_int_equal(csn_msg_send(sv[0], CSN_MSG_HELLO, "body", 4, (int[]){0, 1}, 2, 0), 0);
    assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), 1);
    assert_int_equal(m.type, CSN_MSG_HELLO);
    assert_int_equal(m.len, 4);
    assert_memory_equal(m.body, "body", 4);
    assert_int_equal(m.nfds, 2);
    assert_true(fcntl(m.fds[0], F_GETFD) & FD_CLOEXEC);
    int fd = csn_msg_take_fd(&m, 0);
    assert_int_equal(csn_msg_take_fd(&m, 5), -1);
    csn_msg_release(&m);
    close(fd);
    assert_int_equal(open_fds(), before);
    close(sv[0]);
    assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), 0);
    close(sv[1]);
}

static void large_body_travels_in_a_memfd(void **state)
{
    uint8_t buf[512];
    size_t len = 1000000;
    char *big = malloc(len);
    int sv[2];
    csn_msg m;

    (void)state;
    memset(big, 'z', len);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    size_t before = open_fds();
    assert_int_equal(csn_msg_send(sv[0], CSN_MSG_SPAWN, big, len, (int[]){0}, 1, 0), 0);
    assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), 1);
    assert_int_equal(m.len, len);
    assert_memory_equal(m.body, big, len);
    assert_int_equal(m.nfds, 1); /* the body's own is not shown */
    csn_msg_release(&m);
    assert_int_equal(open_fds(), before);
    close(sv[0]);
    close(sv[1]);
    free(big);
}

/* Sends bytes as they are, with one descriptor. */
static void send_raw(int sock, const void *data, size_t len, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {(void *)(uintptr_t)data, len};
    struct msghdr mh = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.bytes,
                        .msg_controllen = sizeof(ctl.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    assert_int_equal(sendmsg(sock, &mh, 0), (ssize_t)len);
}

static void malformed_messages_are_refused_and_their_descriptors_closed(void **state)
{
    csn_msg_head good = {CSN_MSG_MAGIC, CSN_KEEPER_VERSION, CSN_MSG_HELLO, 0, 0}, h;
    uint8_t buf[512];
    int sv[2];
    csn_msg m;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    int open_memfd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(open_memfd, 100), 0);
    size_t before = open_fds();
    for (int i = 0; i < 7; i++) {
        size_t len = sizeof(h);
        int fd = 0;
        h = good;
        if (i == 0)
            h.magic++;
        else if (i == 1)
            h.version++;
        else if (i == 2)
            h.flags = 0x80;
        else if (i == 3)
            h.length = 1;
        else if (i == 4)
            len = 3;
        else if (i == 5) /* a body in a memfd that could still be changed */
            h.flags = CSN_MSG_BODY_FD, h.length = 100, fd = open_memfd;
        else /* a body in something that is no memfd */
            h.flags = CSN_MSG_BODY_FD, h.length = 10;
        send_raw(sv[0], &h, len, fd);
        assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), -EPROTO);
        assert_int_equal(open_fds(), before);
    }
    static char large[1000];
    h = good;
    h.length = sizeof(large) - sizeof(h);
    memcpy(large, &h, sizeof(h));
    send_raw(sv[0], large, sizeof(large), 0); /* larger than our buffer */
    assert_int_equal(csn_msg_recv(sv[1], buf, sizeof(buf), &m), -EPROTO);
    assert_int_equal(open_fds(), before);
    close(open_memfd);
    close(sv[0]);
    close(sv[1]);
}

static void send_gives_up_at_its_deadline(void **state)
{
    int sv[2], rc = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    for (int i = 0; i < 100000 && rc == 0; i++)
        rc = csn_msg_send(sv[0], CSN_MSG_HELLO, NULL, 0, NULL, 0, 1);
    assert_int_equal(rc, -EAGAIN);
    assert_int_equal(csn_msg_send(sv[0], CSN_MSG_HELLO, NULL, 0, NULL, 0, 2), -ETIMEDOUT);
    close(sv[1]);
    assert_true(csn_msg_send(sv[0], CSN_MSG_HELLO, NULL, 0, NULL, 0, 1) < 0); /* no SIGPIPE */
    close(sv[0]);
}

/* ---- spec -------------------------------------------------------------------------------- */

static csn_keeper_spec sample_spec(void)
{
    return (csn_keeper_spec){.flags = CSN_SPEC_DETACHED,
                             .lifetime_ms = 77,
                             .tag_base = csn_spec_tag_base("local-1-a"),
                             .id = "local-1-a",
                             .socket = "/run/x/sock",
                             .remove = {"/run/x", "/run/y"}};
}

static void spec_comes_back_and_no_part_of_it_is_taken(void **state)
{
    csn_keeper_spec s = sample_spec(), r;
    csn_packer o;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_spec_put(&o, &s);
    assert_int_equal(csn_spec_get(o.data, o.len, NULL, &r), 0);
    assert_string_equal(r.id, s.id);
    assert_string_equal(r.socket, s.socket);
    assert_string_equal(r.remove[1], "/run/y");
    assert_null(r.remove[2]);
    assert_int_equal(r.lifetime_ms, 77);
    assert_int_equal(r.tag_base, s.tag_base);
    for (size_t n = 0; n < o.len; n++) {
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, o.data, n);
        assert_true(csn_spec_get(cut, n, NULL, &r) < 0);
        free(cut);
    }
    csn_packer_release(&o);
}

static void spec_refuses_what_must_not_be_removed(void **state)
{
    static const char *const bad[] = {"/", "//", "relative", "", "/a/../b", "/a/.."};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        csn_keeper_spec s = sample_spec(), r;
        csn_packer o;
        s.remove[1] = bad[i];
        csn_packer_init(&o, NULL, 0);
        csn_spec_put(&o, &s);
        assert_int_equal(csn_spec_get(o.data, o.len, NULL, &r), -EPROTO);
        csn_packer_release(&o);
    }
}

static csn_keeper_spec sweeper_spec(void)
{
    return (csn_keeper_spec){
        .flags = CSN_SPEC_SWEEP,
        .tag_base = csn_spec_tag_base("jail-1-a"),
        .id = "jail-1-a",
        .remove = {"/run/x"},
        .groups = {"/sys/fs/cgroup/memory/caisson-jail-1-a", "/sys/fs/cgroup/cpu/caisson-x"}};
}

static int through_the_wire(const csn_keeper_spec *s, csn_keeper_spec *r)
{
    static uint8_t kept[CSN_SPEC_MAX]; /* what r points to */
    csn_packer o;

    csn_packer_init(&o, NULL, 0);
    csn_spec_put(&o, s);
    assert_true(o.len <= sizeof(kept));
    memcpy(kept, o.data, o.len);
    int rc = csn_spec_get(kept, o.len, NULL, r);
    csn_packer_release(&o);
    return rc;
}

static void spec_of_a_sweeper_comes_back(void **state)
{
    csn_keeper_spec s = sweeper_spec(), r;

    (void)state;
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.flags, CSN_SPEC_SWEEP);
    assert_string_equal(r.groups[0], s.groups[0]);
    assert_string_equal(r.groups[1], s.groups[1]);
    assert_null(r.groups[2]);
}

static void only_a_sweeper_ends_processes_and_never_those_of_an_account(void **state)
{
    csn_keeper_spec r, s = sweeper_spec();

    (void)state;
    s.flags |= CSN_SPEC_TAGGED;
    s.user = 0x70000001u;
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.user, s.user);
    s.user = 1000;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s.user = 0;
    s.tags_as = 1000;
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.tags_as, 1000);
    s.user = UINT32_MAX;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sample_spec();
    s.flags |= CSN_SPEC_TAGGED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void memory_and_disk_are_only_watched_in_a_pid_namespace(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.confinement = (csn_confinement){.on = CSN_CONFINE_ALL, .memory_max = 1, .disk_max = 1};
    assert_int_equal(through_the_wire(&s, &r), 0);
    csn_spec_release(&r);
    s.confinement.on =
        CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK) | CSN_CONFINE_BIT(CSN_CONFINE_SECCOMP);
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s.confinement.memory_max = 0;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s.confinement.disk_max = 0;
    assert_int_equal(through_the_wire(&s, &r), 0);
    csn_spec_release(&r);
}

static void only_a_sweeper_removes_groups_and_only_ours(void **state)
{
    static const char *const bad[] = {"/",
                                      "/sys/fs/cgroup/memory",
                                      "caisson-x",
                                      "/sys/fs/cgroup/caisson-a/other",
                                      "/sys/fs/cgroup/caisson-a/..",
                                      "/a/../caisson-x"};
    csn_keeper_spec r, s = sweeper_spec();

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        s.groups[1] = bad[i];
        assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    }
    s = sweeper_spec();
    s.flags = 0;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s.flags = CSN_SPEC_SWEEP | CSN_SPEC_DETACHED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sweeper_spec();
    s.confinement.on = CSN_CONFINE_ALL; /* it has none */
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void only_who_has_walls_enters_groups(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.confinement = (csn_confinement){.on = CSN_CONFINE_ALL};
    s.flags |= CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.flags, s.flags);
    csn_spec_release(&r);
    s.confinement.on = 0;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sweeper_spec();
    s.flags |= CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sample_spec();
    s.confinement = (csn_confinement){.on = CSN_CONFINE_ALL};
    s.flags = CSN_SPEC_SOCKETS | CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void limits_of_walls_come_back(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.confinement = (csn_confinement){.on = CSN_CONFINE_ALL,
                                      .pids_max = 5,
                                      .nofile_max = 6,
                                      .data_max = 1ull << 33,
                                      .memory_max = 1ull << 32,
                                      .disk_max = 1ull << 34,
                                      .disk_files = 7,
                                      .disk_dir = "/p"};
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.confinement.pids_max, 5);
    assert_int_equal(r.confinement.nofile_max, 6);
    assert_int_equal(r.confinement.data_max, 1ull << 33);
    assert_int_equal(r.confinement.memory_max, 1ull << 32);
    assert_int_equal(r.confinement.disk_max, 1ull << 34);
    assert_int_equal(r.confinement.disk_files, 7);
    assert_string_equal(r.confinement.disk_dir, "/p");
    csn_spec_release(&r);
}

static void tags_of_two_sandboxes_differ(void **state)
{
    uint64_t a = csn_spec_tag_base("local-1-a"), b = csn_spec_tag_base("local-1-b");

    (void)state;
    assert_true(a != b);
    assert_true(a >= CSN_TAG_MARK && a < 2 * CSN_TAG_MARK);
    assert_int_equal(a & CSN_TAG_SEQ_MASK, 0);
}

static int ready_through_the_wire(const csn_ready_msg *in, csn_ready_msg *ret)
{
    csn_packer o;

    csn_packer_init(&o, NULL, 0);
    csn_put_u32(&o, in->steps);
    csn_put_u32(&o, in->landlock_abi);
    csn_put_u32(&o, in->nesting_errnum);
    csn_put_u32(&o, in->pid_max_errnum);
    csn_put_u32(&o, in->net_mode);
    csn_put_u32(&o, in->net_sockets);
    csn_put_u32(&o, in->net_lacking);
    csn_put_u32(&o, in->proxy_port);
    int rc = decode_bytes(CSN_MSG_READY, o.data, o.len, 1, ret);
    csn_packer_release(&o);
    return rc;
}

static void network_in_ready_has_the_sockets_of_its_mode(void **state)
{
    const csn_ready_msg good[] = {
        {.steps = CSN_CONFINE_ALL, .net_mode = CSN_GATEWAY_NET_NONE},
        {.net_mode = CSN_GATEWAY_NET_TRANSPARENT, .net_sockets = CSN_GATEWAY_NET_ALL4},
        {.net_mode = CSN_GATEWAY_NET_TRANSPARENT, .net_sockets = 0x3f},
        {.net_mode = CSN_GATEWAY_NET_PROXY,
         .net_sockets = 0x40,
         .net_lacking = 93,
         .proxy_port = 65535},
    };
    /* a mode that is only an order, sockets that are missing, one without a network, an unknown
     * one, a proxy without port, a port out of range, an unknown step */
    const csn_ready_msg bad[] = {
        {.net_mode = CSN_GATEWAY_NET_EITHER, .net_sockets = CSN_GATEWAY_NET_ALL4},
        {.net_mode = CSN_GATEWAY_NET_TRANSPARENT, .net_sockets = 0x14},
        {.net_mode = CSN_GATEWAY_NET_NONE, .net_sockets = 1},
        {.net_mode = CSN_GATEWAY_NET_TRANSPARENT, .net_sockets = 0xff},
        {.net_mode = CSN_GATEWAY_NET_PROXY, .net_sockets = 0x40},
        {.net_mode = CSN_GATEWAY_NET_PROXY, .net_sockets = 0x40, .proxy_port = 65536},
        {.steps = CSN_CONFINE_ALL + 1},
    };
    csn_ready_msg got;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(ready_through_the_wire(&good[i], &got), 0);
        assert_memory_equal(&got, &good[i], sizeof(got));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(ready_through_the_wire(&bad[i], &got), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_strings_come_back),
        cmocka_unit_test(strings_that_lie_are_refused),
        cmocka_unit_test(body_over_the_ceiling_is_refused),
        cmocka_unit_test(spawn_comes_back_and_no_part_of_it_is_taken),
        cmocka_unit_test(spawn_has_room_for_any_number_of_arguments),
        cmocka_unit_test(spawn_flags_that_contradict_one_another_are_refused),
        cmocka_unit_test(exit_of_every_stage_comes_back),
        cmocka_unit_test(refused_name_has_a_ceiling),
        cmocka_unit_test(log_holds_no_more_than_its_stream),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(message_of_another_type_is_refused),
        cmocka_unit_test(channel_is_taken_out_of_the_descriptors),
        cmocka_unit_test(message_with_descriptors_crosses_a_socket),
        cmocka_unit_test(large_body_travels_in_a_memfd),
        cmocka_unit_test(malformed_messages_are_refused_and_their_descriptors_closed),
        cmocka_unit_test(send_gives_up_at_its_deadline),
        cmocka_unit_test(spec_comes_back_and_no_part_of_it_is_taken),
        cmocka_unit_test(spec_refuses_what_must_not_be_removed),
        cmocka_unit_test(spec_of_a_sweeper_comes_back),
        cmocka_unit_test(only_a_sweeper_removes_groups_and_only_ours),
        cmocka_unit_test(only_a_sweeper_ends_processes_and_never_those_of_an_account),
        cmocka_unit_test(memory_and_disk_are_only_watched_in_a_pid_namespace),
        cmocka_unit_test(only_who_has_walls_enters_groups),
        cmocka_unit_test(limits_of_walls_come_back),
        cmocka_unit_test(tags_of_two_sandboxes_differ),
        cmocka_unit_test(network_in_ready_has_the_sockets_of_its_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
