/* gateway_flows.c: bytes through a real gateway: order, ends, resets, backpressure, limits.
 *
 * The gateway lends a port, so no rule and no resolver is in the way: this process is the
 * program inside, the server on the host, the library and the keeper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "unit/gateway_fixture.h"

typedef struct room {
    gw gw;
    int server; /* the host's listener */
    uint16_t host, inside;
} room;

static void start_with(room *r, csn_gateway_setup_msg *s)
{
    *r = (room){0};
    r->server = gwt_listen(&r->host);
    int inside = gwt_listen(&r->inside);
    s->nhost_ports = 1;
    s->host_ports[0] = (csn_gateway_port){r->inside, r->host};
    gwt_spawn(&r->gw, gwt_program());
    if (!gwt_setup(&r->gw, s, &inside, 1))
        fail_msg("set-up: %s", r->gw.failed);
    close(inside);
}

static int start(void **state)
{
    csn_gateway_setup_msg s = {0};
    room *r = malloc(sizeof(*r));

    start_with(r, &s);
    *state = r;
    return 0;
}

static int stop(void **state)
{
    room *r = *state;

    assert_int_equal(gwt_end(&r->gw), 0);
    close(r->server);
    free(r);
    return 0;
}

/* Both ends of a connection through the gateway. */
static void pair(room *r, int *client, int *server)
{
    *client = gwt_patient(gwt_connect("127.0.0.1", r->inside));
    *server = gwt_accept(r->server);
    assert_true(*client >= 0 && *server >= 0);
}

static void bytes_pass_both_ways_and_are_counted(void **state)
{
    room *r = *state;
    int c, s;
    gwt_seen e;

    pair(r, &c, &s);
    assert_true(gwt_say(c, "question"));
    assert_true(gwt_hears(s, "question"));
    assert_true(gwt_say(s, "an answer"));
    assert_true(gwt_hears(c, "an answer"));
    close(c);
    assert_true(gwt_is_ended(s));
    close(s);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_ALLOW, NULL, &e));
    assert_int_equal(e.e.proto, CSN_GATEWAY_HOST_PORT);
    assert_int_equal(e.e.port, r->host);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, NULL, &e));
    assert_int_equal(e.e.up, 8);
    assert_int_equal(e.e.down, 9);
}

static void an_end_of_the_client_reaches_the_server_and_the_answer_the_client(void **state)
{
    room *r = *state;
    int c, s;

    pair(r, &c, &s);
    assert_true(gwt_say(c, "all of it"));
    shutdown(c, SHUT_WR);
    assert_true(gwt_hears(s, "all of it"));
    assert_true(gwt_is_ended(s));
    assert_true(gwt_say(s, "answer after the end"));
    close(s);
    assert_true(gwt_hears(c, "answer after the end"));
    assert_true(gwt_is_ended(c));
    close(c);
}

static void a_half_closed_server_still_reads_from_the_client(void **state)
{
    room *r = *state;
    int c, s;

    pair(r, &c, &s);
    assert_true(gwt_say(s, "bye"));
    shutdown(s, SHUT_WR);
    assert_true(gwt_hears(c, "bye"));
    assert_true(gwt_is_ended(c));
    assert_true(gwt_say(c, "still here"));
    assert_true(gwt_hears(s, "still here"));
    close(c);
    assert_true(gwt_is_ended(s));
    close(s);
}

static void resets_are_carried(void **state)
{
    room *r = *state;
    int c, s;

    pair(r, &c, &s);
    assert_true(gwt_say(c, "x"));
    assert_true(gwt_hears(s, "x"));
    gwt_reset(c);
    assert_true(gwt_is_reset(s));
    close(s);
    pair(r, &c, &s);
    assert_true(gwt_say(s, "y"));
    assert_true(gwt_hears(c, "y"));
    gwt_reset(s);
    assert_true(gwt_is_reset(c));
    close(c);
    /* also when one direction has ended before; then it shows in writing only */
    pair(r, &c, &s);
    shutdown(s, SHUT_WR);
    assert_true(gwt_is_ended(c));
    gwt_reset(s);
    assert_true(gwt_poll(c, 0, GW_WAIT_MS)); /* POLLERR */
    assert_false(gwt_say(c, "x"));
    assert_int_equal(errno, EPIPE);
    close(c);
}

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
}

/* Writes until nothing more is taken for a while: how much. */
static size_t stuff(int fd, const uint8_t *data, size_t len)
{
    size_t done = 0;

    while (done < len && gwt_poll(fd, POLLOUT, 300)) {
        ssize_t n = send(fd, data + done, len - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* What the reader does not take is not taken from the writer, and nothing of it is lost. */
static void stuffed(int from, int to)
{
    const size_t len = 64u * 1024 * 1024;
    uint8_t *data = malloc(len), *got = malloc(len);

    assert_true(data && got);
    fill(data, len, 7);
    size_t done = stuff(from, data, len);
    assert_in_range(done, 1, len - 1);
    assert_true(gwt_read(to, got, done));
    assert_memory_equal(got, data, done);
    free(data);
    free(got);
}

static void a_slow_reader_is_felt_by_the_writer(void **state)
{
    room *r = *state;
    int c, s;

    pair(r, &c, &s);
    stuffed(c, s);
    stuffed(s, c);
    close(c);
    assert_true(gwt_is_ended(s));
    close(s);
}

/* Both directions at once, in pieces of every size: copying and splicing take turns. */
static void order_holds_under_every_size(void **state)
{
    room *r = *state;
    const size_t len = 8u * 1024 * 1024;
    uint8_t *data = malloc(len), *got = malloc(2 * len);
    size_t out[2] = {0, 0}, in[2] = {0, 0}, step = 1;
    int fd[2];

    pair(r, &fd[0], &fd[1]);
    fill(data, len, 11);
    while (in[0] < len || in[1] < len) {
        for (int i = 0; i < 2; i++) {
            size_t want = step < len - out[i] ? step : len - out[i];
            ssize_t n =
                want ? send(fd[i], data + out[i], want, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
            out[i] += n > 0 ? (size_t)n : 0;
            n = recv(fd[i], got + (size_t)i * len + in[i], len - in[i], MSG_DONTWAIT);
            in[i] += n > 0 ? (size_t)n : 0;
            if (n == 0 && in[i] < len)
                fail_msg("ended after %zu", in[i]);
        }
        step = step * 3 % 400009;
    }
    assert_memory_equal(got, data, len);
    assert_memory_equal(got + len, data, len);
    close(fd[0]);
    assert_true(gwt_is_ended(fd[1]));
    close(fd[1]);
    free(data);
    free(got);
}

static void nobody_there_is_a_reset(void **state)
{
    room *r = *state;
    gwt_seen e;

    close(r->server);
    int c = gwt_patient(gwt_connect("127.0.0.1", r->inside));
    assert_true(c >= 0); /* the redirect cannot know better */
    assert_true(gwt_is_reset(c));
    close(c);
    assert_true(gwt_event(&r->gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_ALLOW, NULL, &e));
    assert_string_equal(e.why, "connection refused");
    r->server = gwt_listen(&r->host);
}

/* ---- limits ----------------------------------------------------------------------------- */

static void one_too_many_is_reset_and_told(void **state)
{
    csn_gateway_setup_msg setup = {.connections_max = 3};
    room r;
    int c[4], s[3];
    gwt_seen e;

    (void)state;
    start_with(&r, &setup);
    for (int i = 0; i < 3; i++)
        pair(&r, &c[i], &s[i]);
    c[3] = gwt_patient(gwt_connect("127.0.0.1", r.inside));
    assert_true(gwt_is_reset(c[3]));
    assert_true(gwt_event(&r.gw, CSN_GATEWAY_CONNECT, CSN_GATEWAY_DENY, NULL, &e));
    assert_string_equal(e.why, "too many connections at once");
    close(c[3]);
    close(c[0]);
    assert_true(gwt_is_ended(s[0]));
    close(s[0]);
    for (int i = 0; i < GW_WAIT_MS / 10;
         i++) { /* its place is free, as soon as it is noticed */
        c[0] = gwt_patient(gwt_connect("127.0.0.1", r.inside));
        s[0] = gwt_poll(r.server, POLLIN, 100) ? gwt_accept(r.server) : -1;
        if (s[0] >= 0)
            break;
        close(c[0]);
    }
    assert_true(s[0] >= 0);
    for (int i = 0; i < 3; i++) {
        close(c[i]);
        close(s[i]);
    }
    assert_int_equal(gwt_end(&r.gw), 0);
    close(r.server);
}

static void the_idle_are_reset(void **state)
{
    csn_gateway_setup_msg setup = {.idle_ms = 200};
    room r;
    int c, s;
    gwt_seen e;

    (void)state;
    start_with(&r, &setup);
    pair(&r, &c, &s);
    assert_true(gwt_is_reset(c));
    assert_true(gwt_is_reset(s));
    assert_true(gwt_event(&r.gw, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, NULL, &e));
    assert_string_equal(e.why, "idle timeout");
    close(c);
    close(s);
    assert_int_equal(gwt_end(&r.gw), 0);
    close(r.server);
}

/* A pair as soon as the one before is gone; what is accepted may be the late other end of one
 * that was given up. */
static bool pair_at_last(const room *r, int *c, int *s)
{
    for (int again = 0; again < GW_WAIT_MS / 50; again++) {
        *c = gwt_patient(gwt_connect("127.0.0.1", r->inside));
        *s = gwt_poll(r->server, POLLIN, 50) ? gwt_accept(r->server) : -1;
        if (*s >= 0 && gwt_say(*c, "x") && gwt_hears(*s, "x"))
            return true;
        close(*c);
        if (*s >= 0)
            close(*s);
    }
    return false;
}

/* With so few descriptors a leak of one in a connection would be felt soon. */
static void connections_leave_nothing_behind(void **state)
{
    struct rlimit before, few;
    csn_gateway_setup_msg setup = {.connections_max = 1};
    room r;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_max = few.rlim_cur = 64;
    pid_t pid = fork();
    if (pid == 0) {
        if (setrlimit(RLIMIT_NOFILE, &few) < 0)
            _exit(9);
        start_with(&r, &setup);
        for (int i = 0; i < 400; i++) {
            int c = -1, s = -1;
            if (!pair_at_last(&r, &c, &s))
                _exit(1);
            if (i % 3 == 0)
                gwt_reset(c);
            else
                close(c);
            close(s);
        }
        _exit(gwt_end(&r.gw) == 0 ? 0 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- life ------------------------------------------------------------------------------- */

static pid_t sleeper(int *pidfd)
{
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

static void it_ends_with_its_keeper(void **state)
{
    csn_gateway_setup_msg s = {.flags = CSN_GATEWAY_FD_KEEPER};
    int pidfd;
    gw g;

    (void)state;
    pid_t keeper = sleeper(&pidfd);
    gwt_spawn(&g, gwt_program());
    assert_true(gwt_setup(&g, &s, &pidfd, 1));
    kill(keeper, SIGKILL);
    (void)waitpid(keeper, NULL, 0);
    int hung_up = g.control;
    assert_true(gwt_poll(hung_up, POLLHUP, GW_WAIT_MS));
    assert_int_equal(gwt_end(&g), 0);
    close(pidfd);
}

static void a_detached_one_outlives_its_maker_and_is_found_again(void **state)
{
    char dir[] = "/tmp/caisson-gateway-XXXXXX";
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    csn_gateway_setup_msg s = {.flags = CSN_GATEWAY_FD_KEEPER | CSN_GATEWAY_FD_SOCKET |
                                        CSN_GATEWAY_DETACHED};
    csn_gateway_batch b;
    gwt_seen v[4];
    int fds[2];
    gw g;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/net.sock", dir);
    pid_t keeper = sleeper(&fds[0]);
    fds[1] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fds[1], (void *)&un, sizeof(un)), 0);
    assert_int_equal(listen(fds[1], 8), 0);
    gwt_spawn(&g, gwt_program());
    assert_true(gwt_setup(&g, &s, fds, 2));
    close(g.control);
    g.control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(g.control, (void *)&un, sizeof(un)), 0);
    assert_int_equal(gwt_events(&g, 0, v, 4, &b), 0);
    kill(keeper, SIGKILL);
    (void)waitpid(keeper, NULL, 0);
    assert_int_equal(gwt_end(&g), 0);
    close(fds[0]);
    close(fds[1]);
    unlink(un.sun_path);
    rmdir(dir);
}

static void what_cannot_be_set_up_is_refused(void **state)
{
    static const char *const bad[] = {"not a rule!", NULL};
    csn_gateway_setup_msg s = {.rules.allow = (const char **)(uintptr_t)bad};
    gwt_seen v[1];
    csn_gateway_batch b;
    gw g;

    (void)state;
    gwt_spawn(&g, gwt_program());
    assert_int_equal(gwt_events(&g, 0, v, 1, &b), -1); /* nothing before SETUP */
    assert_string_equal(g.failed, "not set up yet");
    assert_false(gwt_setup(&g, &s, NULL, 0));
    assert_non_null(strstr(g.failed, "not a rule!"));
    assert_int_equal(gwt_end(&g), 0);
    s = (csn_gateway_setup_msg){.flags = CSN_GATEWAY_DETACHED};
    gwt_spawn(&g, gwt_program());
    assert_false(gwt_setup(&g, &s, NULL, 0));
    assert_int_equal(gwt_end(&g), 0);
    s = (csn_gateway_setup_msg){.flags = CSN_GATEWAY_FD_LINK}; /* and no descriptor */
    gwt_spawn(&g, gwt_program());
    assert_false(gwt_setup(&g, &s, NULL, 0));
    assert_int_equal(gwt_end(&g), 0);
}

/* A line of /proc/PID/status. */
static void status_line(pid_t pid, const char *field, char *ret, size_t size)
{
    char path[64], line[256];
    size_t n = strlen(field);

    ret[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, n) == 0)
            snprintf(ret, size, "%s", line + n);
    if (f)
        fclose(f);
    ret[strcspn(ret, "\n")] = '\0';
}

static void what_it_does_not_need_is_given_up(void **state)
{
    bool root = geteuid() == 0;
    csn_gateway_setup_msg s = {.uid = root ? 1999999999u : 0, .gid = root ? 1999999998u : 0};
    char line[256];
    room r;
    int c, server;

    (void)state;
    start_with(&r, &s);
    status_line(r.gw.pid, "CapEff:", line, sizeof(line));
    assert_string_equal(line, "\t0000000000000000");
    status_line(r.gw.pid, "CapPrm:", line, sizeof(line));
    assert_string_equal(line, "\t0000000000000000");
    status_line(r.gw.pid, "NoNewPrivs:", line, sizeof(line));
    assert_string_equal(line, "\t1");
    status_line(r.gw.pid, "Uid:", line, sizeof(line));
    if (root)
        assert_string_equal(line, "\t1999999999\t1999999999\t1999999999\t1999999999");
    status_line(r.gw.pid, "Groups:", line, sizeof(line));
    if (root)
        assert_string_equal(line, "\t ");
    pair(&r, &c, &server); /* and it still serves */
    close(c);
    close(server);
    assert_int_equal(gwt_end(&r.gw), 0);
    close(r.server);
}

/* ---- published -------------------------------------------------------------------------- */

/* Plays the keeper: answers one question with a socket, or an errno. The family asked for. */
static int keeper_answers(int link, int error)
{
    uint8_t asked = 0, code = (uint8_t)error;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    struct iovec iov = {&code, 1};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

    if (!gwt_poll(link, POLLIN, GW_WAIT_MS) || recv(link, &asked, 1, 0) != 1)
        return -1;
    int fd =
        socket(asked == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (error == 0) {
        mh.msg_control = ctl.bytes;
        mh.msg_controllen = sizeof(ctl.bytes);
        struct cmsghdr *h = CMSG_FIRSTHDR(&mh);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &fd, sizeof(fd));
    }
    if (sendmsg(link, &mh, 0) != 1)
        return -1;
    close(fd);
    return asked;
}

static void a_published_port_leads_inside(void **state)
{
    csn_gateway_setup_msg s = {.flags = CSN_GATEWAY_FD_LINK, .npublish = 1};
    uint16_t inside = 0;
    int link[2];
    gwt_seen e;
    gw g;

    (void)state;
    int server = gwt_listen(&inside);
    s.publish[0] = (csn_gateway_port){inside, 0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link), 0);
    gwt_spawn(&g, gwt_program());
    assert_true(gwt_setup(&g, &s, &link[1], 1));
    assert_int_equal(g.ready.n, 1);
    int c = gwt_patient(gwt_connect("127.0.0.1", (uint16_t)g.ready.port[0]));
    assert_true(c >= 0);
    assert_int_equal(keeper_answers(link[0], 0), 4);
    int in = gwt_accept(server);
    assert_true(gwt_say(c, "from outside"));
    assert_true(gwt_hears(in, "from outside"));
    assert_true(gwt_say(in, "hello"));
    assert_true(gwt_hears(c, "hello"));
    close(in);
    close(c);
    assert_true(gwt_event(&g, CSN_GATEWAY_CLOSE, CSN_GATEWAY_ALLOW, NULL, &e));
    assert_int_equal(e.e.proto, CSN_GATEWAY_PUBLISHED);
    assert_int_equal(e.e.up, 5); /* out of the sandbox */
    assert_int_equal(e.e.down, 12);
    /* Nobody listens any more: v4 is refused, v6 is tried, then the caller is told. */
    close(server);
    c = gwt_patient(gwt_connect("127.0.0.1", (uint16_t)g.ready.port[0]));
    assert_int_equal(keeper_answers(link[0], 0), 4);
    assert_int_equal(keeper_answers(link[0], 0), 6);
    assert_true(gwt_is_reset(c));
    close(c);
    c = gwt_patient(gwt_connect("127.0.0.1", (uint16_t)g.ready.port[0]));
    assert_int_equal(keeper_answers(link[0], EMFILE), 4);
    assert_true(gwt_is_reset(c));
    close(c);
    /* A caller that left before the answer came takes nobody else's. */
    c = gwt_connect("127.0.0.1", (uint16_t)g.ready.port[0]);
    int c2 = gwt_patient(gwt_connect("127.0.0.1", (uint16_t)g.ready.port[0]));
    gwt_reset(c);
    server = gwt_listen(&inside);
    assert_int_equal(keeper_answers(link[0], 0), 4);
    assert_int_equal(keeper_answers(link[0], 0), 4);
    in = gwt_accept(server);
    assert_true(gwt_say(c2, "second"));
    assert_true(gwt_hears(in, "second"));
    close(in);
    close(c2);
    close(server);
    close(link[0]);
    close(link[1]);
    assert_int_equal(gwt_end(&g), 0);
}

static void a_port_that_is_taken_is_named(void **state)
{
    csn_gateway_setup_msg s = {.flags = CSN_GATEWAY_FD_LINK, .npublish = 1};
    uint16_t taken = 0;
    int link[2];
    char want[64];
    gw g;

    (void)state;
    int other = gwt_listen(&taken);
    s.publish[0] = (csn_gateway_port){8080, taken};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link), 0);
    gwt_spawn(&g, gwt_program());
    assert_false(gwt_setup(&g, &s, &link[1], 1));
    snprintf(want, sizeof(want), "port %u of 127.0.0.1", taken);
    assert_non_null(strstr(g.failed, want));
    assert_int_equal(gwt_end(&g), 0);
    close(other);
    close(link[0]);
    close(link[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_pass_both_ways_and_are_counted, start, stop),
        cmocka_unit_test_setup_teardown(
            an_end_of_the_client_reaches_the_server_and_the_answer_the_client, start, stop),
        cmocka_unit_test_setup_teardown(a_half_closed_server_still_reads_from_the_client, start,
                                        stop),
        cmocka_unit_test_setup_teardown(resets_are_carried, start, stop),
        cmocka_unit_test_setup_teardown(a_slow_reader_is_felt_by_the_writer, start, stop),
        cmocka_unit_test_setup_teardown(order_holds_under_every_size, start, stop),
        cmocka_unit_test_setup_teardown(nobody_there_is_a_reset, start, stop),
        cmocka_unit_test(one_too_many_is_reset_and_told),
        cmocka_unit_test(the_idle_are_reset),
        cmocka_unit_test(connections_leave_nothing_behind),
        cmocka_unit_test(it_ends_with_its_keeper),
        cmocka_unit_test(a_detached_one_outlives_its_maker_and_is_found_again),
        cmocka_unit_test(what_cannot_be_set_up_is_refused),
        cmocka_unit_test(what_it_does_not_need_is_given_up),
        cmocka_unit_test(a_published_port_leads_inside),
        cmocka_unit_test(a_port_that_is_taken_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
