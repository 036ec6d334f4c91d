/* runtime_deadline.c: the keeper ends a command at its deadline while the library does not run:
 * it is blocked in the sink, or a test speaks the protocol in its place. */
#include "keeper_fixture.h"

/* A caller that is blocked by its reader until the command's process is gone. */
typedef struct blocked {
    out o;
    bool saw_the_end;
} blocked;

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

/* The command has written its pid. */
static int block_until_gone(void *ctx, int stream, const void *data, size_t len)
{
    blocked *b = ctx;
    uint64_t deadline = csn_deadline_in(DEN_SOON_MS);

    (void)den_sink(&b->o, stream, data, len);
    pid_t pid = (pid_t)strtol(b->o.text[0], NULL, 10);
    while (pid > 0 && !is_gone(pid) && csn_deadline_poll_ms(deadline) > 0)
        (void)poll(NULL, 0, 5);
    b->saw_the_end = pid > 0 && is_gone(pid);
    return CSN_SINK_MORE;
}

static void run_blocked(den *d, csn_exec_req *req, blocked *b)
{
    csn_sink sink = {block_until_gone, b};
    csn_error *err = NULL;

    memset(b, 0, sizeof(*b));
    req->size = sizeof(*req);
    if (d->ops->exec(d->state, req, &sink, &b->o.end, &err) != CSN_OK)
        fail_msg("exec: %s", csn_error_message(err));
}

static void blocked_caller_does_not_extend_the_deadline(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1000; done", NULL};
    csn_exec_req req = den_req(argv);
    blocked b;
    den d;

    (void)state;
    den_make(&d);
    for (uint64_t ms = 100; ms <= DEN_SOON_MS; ms *= 2) {
        req.deadline_ns = csn_deadline_in(ms);
        run_blocked(&d, &req, &b);
        if (b.o.text[0][0] != '\0')
            break; /* it was not ended before it had begun */
    }
    assert_true(b.saw_the_end);
    assert_int_equal(b.o.end.how, CSN_END_TIMEOUT);
    assert_int_equal(b.o.end.signal, SIGKILL);
    den_sh(&d, "echo next", 0, &b.o);
    assert_string_equal(b.o.text[0], "next\n");
    den_clean(&d);
}

static void blocked_caller_does_not_extend_the_deadline_of_a_session(void **state)
{
    static const char *const argv[] = {"bash", "-c", "unused", NULL};
    csn_exec_req req = den_req(argv);
    blocked b;
    den d;

    (void)state;
    den_make(&d);
    req.session = "s";
    req.command = "echo $$; sleep 1000; touch after";
    for (uint64_t ms = 200; ms <= DEN_SOON_MS; ms *= 2) {
        req.deadline_ns = csn_deadline_in(ms);
        run_blocked(&d, &req, &b);
        if (b.o.text[0][0] != '\0')
            break;
    }
    assert_true(b.saw_the_end);
    assert_int_equal(b.o.end.how, CSN_END_TIMEOUT);
    req.command = "ls after";
    req.deadline_ns = 0;
    memset(&b, 0, sizeof(b));
    den_run(&d, &req, &b.o);
    assert_int_not_equal(b.o.end.exit_code, 0);
    den_clean(&d);
}

/* ---- as the keeper sees it ---- */

typedef struct lease {
    int channel, script, status;
    uint64_t deadline_ns;
} lease;

/* Leases session "s" as the library does, with a deadline that is soon. */
static lease take_lease(den *d)
{
    csn_runtime *rt = d->state;
    lease l = {.deadline_ns = csn_deadline_in(300)};
    const csn_session_msg ask = {.flags = CSN_SPAWN_CWD_FD,
                                 .deadline_ns = l.deadline_ns,
                                 .name = "s",
                                 .env = (const char *[]){"PATH=/usr/bin:/bin", NULL}};
    int cwd = open(d->base, O_PATH | O_CLOEXEC);
    uint8_t buf[512];
    csn_msg m;

    assert_int_equal(csn_link_ask(rt, CSN_MSG_SESSION, &ask, &cwd, 1, &l.channel, NULL),
                     CSN_OK);
    close(cwd);
    assert_int_equal(csn_link_answer(rt, l.channel, 0, buf, sizeof(buf), &m, NULL), CSN_OK);
    assert_int_equal(m.type, CSN_MSG_SESSION_REPLY);
    l.script = csn_msg_take_fd(&m, 0);
    l.status = csn_msg_take_fd(&m, 1);
    csn_msg_release(&m);
    return l;
}

static void close_lease(const lease *l)
{
    close(l->script);
    close(l->status);
    close(l->channel);
}

static void say(const lease *l, const char *script)
{
    assert_int_equal(write(l->script, script, strlen(script)), strlen(script));
}

static void await_status(const lease *l)
{
    struct pollfd pf = {.fd = l->status, .events = POLLIN};

    assert_int_equal(poll(&pf, 1, DEN_SOON_MS), 1);
    assert_true(pf.revents & POLLIN);
}

/* A keeper that answers after the deadline has handled it before. */
static void pass_the_deadline(den *d, const lease *l)
{
    csn_hello_reply_msg reply;
    int e = 0;

    while (csn_deadline_poll_ms(l->deadline_ns) > 0)
        (void)poll(NULL, 0, csn_deadline_poll_ms(l->deadline_ns));
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            csn_link_call(d->state, CSN_MSG_HELLO, NULL, CSN_MSG_HELLO_REPLY, &reply, &e, NULL),
            CSN_OK);
}

/* The answer to RELEASE: false if it was EXIT, because the keeper has killed the session. */
static bool is_released(const lease *l, uint32_t *ret_killed)
{
    uint8_t buf[512];
    csn_exit_msg b;
    csn_msg m;

    (void)csn_proto_send(l->channel, CSN_MSG_RELEASE, NULL, NULL, 0, 1);
    int rc = csn_msg_await(l->channel, csn_deadline_in(DEN_SOON_MS), buf, sizeof(buf), &m);
    if (rc == 0)
        return true;
    assert_int_equal(rc, 1);
    assert_int_equal(csn_proto_decode(&m, CSN_MSG_EXIT, &b), 0);
    csn_msg_release(&m);
    *ret_killed = b.killed;
    return false;
}

static void session_is_killed_at_the_deadline_of_its_command(void **state)
{
    uint32_t killed = 0;
    den d;

    (void)state;
    den_make(&d);
    lease l = take_lease(&d);
    say(&l, "sleep 1000\n");
    pass_the_deadline(&d, &l);
    assert_false(is_released(&l, &killed));
    assert_true(killed & CSN_KILLED_DEADLINE);
    close_lease(&l);
    den_clean(&d);
}

/* The status that the shell writes after SIGTERM ended its command does not count. */
static void release_of_a_session_that_is_being_killed_is_answered_by_exit(void **state)
{
    uint32_t killed = 0;
    den d;

    (void)state;
    den_make(&d);
    lease l = take_lease(&d);
    say(&l, "trap '' TERM; (trap - TERM; exec sleep 1000); echo $? >&9\n");
    await_status(&l);
    assert_false(is_released(&l, &killed));
    assert_true(killed & CSN_KILLED_DEADLINE);
    close_lease(&l);
    den_clean(&d);
}

static void status_that_was_not_read_yet_keeps_the_session(void **state)
{
    uint32_t killed = 0;
    den d;

    (void)state;
    den_make(&d);
    lease l = take_lease(&d);
    say(&l, "echo 0 >&9\n");
    await_status(&l);
    pass_the_deadline(&d, &l);
    assert_true(is_released(&l, &killed));
    close_lease(&l);
    den_clean(&d);
}

static void ended_keeps_the_session(void **state)
{
    uint32_t killed = 0;
    den d;

    (void)state;
    den_make(&d);
    lease l = take_lease(&d);
    assert_int_equal(csn_proto_send(l.channel, CSN_MSG_ENDED, NULL, NULL, 0, 1), 0);
    pass_the_deadline(&d, &l);
    say(&l, "echo 0 >&9\n");
    await_status(&l);
    assert_true(is_released(&l, &killed));
    close_lease(&l);
    den_clean(&d);
}

/* The deadline is that of one lease. */
static void released_session_outlives_the_deadline(void **state)
{
    uint32_t killed = 0;
    den d;
    out o;

    (void)state;
    den_make(&d);
    lease l = take_lease(&d);
    say(&l, "X=5; echo 0 >&9\n");
    await_status(&l);
    char status[64];
    assert_true(read(l.status, status, sizeof(status)) > 0);
    assert_true(is_released(&l, &killed));
    pass_the_deadline(&d, &l);
    close_lease(&l);
    static const char *const argv[] = {"bash", "-c", "unused", NULL};
    csn_exec_req req = den_req(argv);
    req.session = "s";
    req.command = "echo $X";
    memset(&o, 0, sizeof(o));
    den_run(&d, &req, &o);
    assert_string_equal(o.text[0], "5\n");
    den_clean(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_caller_does_not_extend_the_deadline),
        cmocka_unit_test(blocked_caller_does_not_extend_the_deadline_of_a_session),
        cmocka_unit_test(session_is_killed_at_the_deadline_of_its_command),
        cmocka_unit_test(release_of_a_session_that_is_being_killed_is_answered_by_exit),
        cmocka_unit_test(status_that_was_not_read_yet_keeps_the_session),
        cmocka_unit_test(ended_keeps_the_session),
        cmocka_unit_test(released_session_outlives_the_deadline),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
