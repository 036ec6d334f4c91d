/* keeper_proto.c: the wire between library and keeper, without a keeper. */
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

#include "keeper/proto.h"
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

static void put_sample_spawn(csn_packer *o)
{
    const char *argv[] = {"prog", "", "a b", NULL}, *env[] = {"A=1", NULL};

    csn_put_spawn(o, &(csn_spawn_body){.flags = CSN_SPAWN_CWD_FD | CSN_SPAWN_STDOUT_FD,
                                       .rows = 3,
                                       .memory_max = 5,
                                       .deadline_ns = 9,
                                       .command = "text",
                                       .argv = argv,
                                       .env = env});
}

static void spawn_comes_back_and_no_part_of_it_is_taken(void **state)
{
    csn_packer o;
    csn_spawn_body b;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    put_sample_spawn(&o);
    assert_int_equal(csn_get_spawn(o.data, o.len, &b), 0);
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
    assert_int_equal(csn_spawn_fd_count(b.flags), 2);
    csn_spawn_body_release(&b);
    for (size_t n = 0; n < o.len; n++) {
        uint8_t *cut = malloc(n ? n : 1); /* exact, so that a sanitizer sees an overrun */
        memcpy(cut, o.data, n);
        assert_true(csn_get_spawn(cut, n, &b) < 0);
        free(cut);
    }
    csn_put_u32(&o, 0); /* nor with something after it */
    assert_true(csn_get_spawn(o.data, o.len, &b) < 0);
    csn_packer_release(&o);
}

/* A few lie in the struct itself, more than that on the heap: at the seam, and far beyond it.
 */
static void spawn_has_room_for_any_number_of_arguments(void **state)
{
    static const size_t counts[] = {0, 1, CSN_SPAWN_FEW - 5, CSN_SPAWN_FEW - 4, 1000};
    const char *argv[1001], *env[] = {"A=1", "B=2", NULL};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        csn_packer o;
        csn_spawn_body b;
        for (size_t i = 0; i < counts[c]; i++)
            argv[i] = i % 2 ? "odd" : "even";
        argv[counts[c]] = NULL;
        csn_packer_init(&o, NULL, 0);
        csn_put_spawn(&o, &(csn_spawn_body){.argv = argv, .env = env});
        assert_int_equal(csn_get_spawn(o.data, o.len, &b), 0);
        assert_int_equal(b.heap == NULL, counts[c] + 2 + 3 <= CSN_SPAWN_FEW);
        for (size_t i = 0; i < counts[c]; i++)
            assert_string_equal(b.argv[i], argv[i]);
        assert_null(b.argv[counts[c]]);
        assert_null(b.argv[-1]); /* the spare slot */
        assert_string_equal(b.env[0], "A=1");
        assert_string_equal(b.env[1], "B=2");
        assert_null(b.env[2]);
        csn_spawn_body_release(&b);
        csn_packer_release(&o);
    }
}

static void unknown_spawn_flags_are_refused(void **state)
{
    csn_packer o;
    csn_spawn_body b;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_put_spawn(&o, &(csn_spawn_body){.flags = 1u << 20});
    assert_int_equal(csn_get_spawn(o.data, o.len, &b), -EPROTO);
    csn_packer_release(&o);
}

static void small_bodies_come_back(void **state)
{
    csn_packer o;
    csn_exit_body e = {.stage = CSN_STAGE_EXEC, .errnum = 2, .status = 256, .cpu_ns = 4}, e2;
    csn_ask_body a = {.pid = -1, .a = 2, .b = 3, .c = 4}, a2;
    csn_log_body l = {
        .offset = 5, .total = 9, .end = 1, .len = 4, .data = (const uint8_t *)"abcd"};
    csn_log_body l2;

    (void)state;
    csn_packer_init(&o, NULL, 0);
    csn_put_exit(&o, &e);
    assert_int_equal(csn_get_exit(o.data, o.len, &e2), 0);
    assert_memory_equal(&e, &e2, sizeof(e));
    assert_true(csn_get_exit(o.data, o.len - 1, &e2) < 0);
    o.len = 0;
    e.after = CSN_AFTER_ALL + 1;
    csn_put_exit(&o, &e);
    assert_int_equal(csn_get_exit(o.data, o.len, &e2), -EPROTO);
    o.len = 0;
    csn_put_ask(&o, &a);
    assert_int_equal(csn_get_ask(o.data, o.len, &a2), 0);
    assert_memory_equal(&a, &a2, sizeof(a));
    o.len = 0;
    csn_put_log(&o, &l);
    assert_int_equal(csn_get_log(o.data, o.len, &l2), 0);
    assert_memory_equal(l2.data, "abcd", 4);
    o.len = 0;
    l.total = 8; /* more bytes than the stream ever had */
    csn_put_log(&o, &l);
    assert_true(csn_get_log(o.data, o.len, &l2) < 0);
    csn_packer_release(&o);
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
    s.user = UINT32_MAX;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sample_spec();
    s.flags |= CSN_SPEC_TAGGED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void memory_is_only_watched_in_a_pid_namespace(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.walls = (csn_confinement){.on = CSN_CONFINE_ALL, .memory_max = 1};
    assert_int_equal(through_the_wire(&s, &r), 0);
    csn_spec_release(&r);
    s.walls.on = CSN_CONFINE_BIT(CSN_CONFINE_LANDLOCK) | CSN_CONFINE_BIT(CSN_CONFINE_SECCOMP);
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s.walls.memory_max = 0;
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
    s.walls.on = CSN_CONFINE_ALL; /* it has none */
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void only_who_has_walls_enters_groups(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.walls = (csn_confinement){.on = CSN_CONFINE_ALL};
    s.flags |= CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.flags, s.flags);
    csn_spec_release(&r);
    s.walls.on = 0;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sweeper_spec();
    s.flags |= CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
    s = sample_spec();
    s.walls = (csn_confinement){.on = CSN_CONFINE_ALL};
    s.flags = CSN_SPEC_SOCKETS | CSN_SPEC_GROUPED;
    assert_int_equal(through_the_wire(&s, &r), -EPROTO);
}

static void limits_of_walls_come_back(void **state)
{
    csn_keeper_spec s = sample_spec(), r;

    (void)state;
    s.walls = (csn_confinement){.on = CSN_CONFINE_ALL,
                                .pids_max = 5,
                                .nofile_max = 6,
                                .data_max = 1ull << 33,
                                .memory_max = 1ull << 32};
    assert_int_equal(through_the_wire(&s, &r), 0);
    assert_int_equal(r.walls.pids_max, 5);
    assert_int_equal(r.walls.nofile_max, 6);
    assert_int_equal(r.walls.data_max, 1ull << 33);
    assert_int_equal(r.walls.memory_max, 1ull << 32);
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

static void what_a_network_became_travels_in_one_number(void **state)
{
    const csn_net_body bodies[] = {
        {.mode = CSN_GATEWAY_NET_NONE},
        {.mode = CSN_GATEWAY_NET_TRANSPARENT, .sockets = CSN_GATEWAY_NET_ALL4},
        {.mode = CSN_GATEWAY_NET_TRANSPARENT, .sockets = 0x3f},
        {.mode = CSN_GATEWAY_NET_PROXY, .sockets = 0x40, .lacking = 93, .proxy_port = 65535},
    };
    /* a mode nobody can become, sockets that are missing, one too many, a proxy without port,
     * and what nothing means */
    const int64_t bad[] = {CSN_GATEWAY_NET_EITHER,
                           CSN_GATEWAY_NET_TRANSPARENT | 0x14 << 4,
                           CSN_GATEWAY_NET_NONE | 0x1 << 4,
                           CSN_GATEWAY_NET_TRANSPARENT | 0xff << 4,
                           CSN_GATEWAY_NET_PROXY | 0x40 << 4,
                           1LL << 40,
                           -1};
    csn_net_body got;

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(csn_net_unpack(csn_net_pack(&bodies[i]), &got), 0);
        assert_memory_equal(&got, &bodies[i], sizeof(got));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(csn_net_unpack(bad[i], &got), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_strings_come_back),
        cmocka_unit_test(strings_that_lie_are_refused),
        cmocka_unit_test(body_over_the_ceiling_is_refused),
        cmocka_unit_test(spawn_comes_back_and_no_part_of_it_is_taken),
        cmocka_unit_test(spawn_has_room_for_any_number_of_arguments),
        cmocka_unit_test(unknown_spawn_flags_are_refused),
        cmocka_unit_test(small_bodies_come_back),
        cmocka_unit_test(message_with_descriptors_crosses_a_socket),
        cmocka_unit_test(large_body_travels_in_a_memfd),
        cmocka_unit_test(malformed_messages_are_refused_and_their_descriptors_closed),
        cmocka_unit_test(send_gives_up_at_its_deadline),
        cmocka_unit_test(spec_comes_back_and_no_part_of_it_is_taken),
        cmocka_unit_test(spec_refuses_what_must_not_be_removed),
        cmocka_unit_test(spec_of_a_sweeper_comes_back),
        cmocka_unit_test(only_a_sweeper_removes_groups_and_only_ours),
        cmocka_unit_test(only_a_sweeper_ends_processes_and_never_those_of_an_account),
        cmocka_unit_test(memory_is_only_watched_in_a_pid_namespace),
        cmocka_unit_test(only_who_has_walls_enters_groups),
        cmocka_unit_test(limits_of_walls_come_back),
        cmocka_unit_test(tags_of_two_sandboxes_differ),
        cmocka_unit_test(what_a_network_became_travels_in_one_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
