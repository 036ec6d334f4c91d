/* runtime_keeper_hostile.c: what happens when a keeper, or the program that speaks to it, was
 * taken over, and when a keeper does not run. */
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "keeper_fixture.h"

#include "child.h"
#include "keeper/spec.h"

/* ---- a keeper that was taken over
 * ------------------------------------------------------------ */

typedef struct impostor {
    int sock;
    int how; /* which nonsense it answers */
} impostor;

/* Takes requests and answers each with something a keeper would never say. */
static void *lie(void *arg)
{
    impostor *im = arg;
    static uint8_t packet[CSN_KEEPER_MSG_MAX];
    struct pollfd pf = {.fd = im->sock, .events = POLLIN};

    while (poll(&pf, 1, DEN_SOON_MS) == 1) {
        csn_msg m;
        if (csn_msg_recv(im->sock, packet, sizeof(packet), &m) != 1)
            break;
        int chan = csn_msg_take_fd(&m, 0);
        switch (im->how) {
        case 0: /* no message at all */
            (void)!send(chan, "garbage", 7, MSG_NOSIGNAL);
            break;
        case 1: /* an answer to another question */
            (void)csn_msg_send(chan, CSN_MSG_FEED_REPLY, NULL, 0, &chan, 1, 1);
            break;
        case 2: /* the right answer, cut short */
            (void)csn_msg_send(chan, CSN_MSG_EXIT, "abc", 3, NULL, 0, 1);
            break;
        case 3: /* more descriptors than anybody asked for */
            (void)csn_msg_send(chan, CSN_MSG_EXIT, NULL, 0, (int[]){0, 0, 0, 0}, 4, 1);
            break;
        case 4: /* more refused names than a command can have */
            for (uint32_t i = 0; i <= CSN_KEEPER_REFUSED_MAX; i++)
                (void)csn_proto_send(chan, CSN_MSG_REFUSED, &(csn_refused_msg){.name = "a"},
                                     NULL, 0, 1);
            break;
        default: /* a body far over what was asked, in a memfd */
            (void)csn_msg_send(chan, CSN_MSG_PROCESS_LIST, packet, sizeof(packet), NULL, 0, 1);
            break;
        }
        close(chan);
        csn_msg_release(&m);
    }
    return NULL;
}

static pid_t start_sleeper(int *ret_pidfd)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

/* Unlike the sleeper it is scheduled all the time. */
static pid_t start_waker(int *ret_pidfd)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            usleep(10000);
    }
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

static void keeper_that_lies_is_killed(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        den d;
        out o = {0};
        const char *argv[] = {"/bin/true", NULL};
        csn_exec_req req = den_req(argv);
        csn_sink sink = {den_sink, &o};
        csn_error *err = NULL;
        int sv[2], status = 0;
        pthread_t t;

        den_make(&d);
        csn_runtime *l = d.state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
        impostor im = {.sock = sv[1], .how = how};
        pid_t pid = start_sleeper(&l->keeper_pidfd);
        l->keeper_fd = sv[0];
        l->keeper_pid = pid;
        pthread_create(&t, NULL, lie, &im);
        size_t before = den_fds(getpid());
        csn_status st = how < 5 ? d.ops->exec(d.state, &req, &sink, &o.end, &err)
                                : d.ops->extend(d.state, 1000, &err);
        assert_int_equal(st, CSN_UNAVAILABLE);
        assert_non_null(strstr(csn_error_message(err), "was killed"));
        csn_error_free(err);
        (void)waitpid(pid, &status,
                      WNOHANG); /* the library may have reaped it: it was a child */
        assert_false(den_pid_alive(pid));
        shutdown(sv[0], SHUT_RDWR);
        pthread_join(t, NULL);
        assert_int_equal(den_fds_settled(getpid(), before), before);
        close(sv[1]);
        den_clean(&d);
    }
}

/* Tells the end of a command only after it was asked whether it still lives. */
static void *dawdle(void *arg)
{
    const impostor *im = arg;
    uint8_t packet[CSN_KEEPER_MSG_MAX];
    struct pollfd pf = {.fd = im->sock, .events = POLLIN};
    csn_msg m;
    int command = -1;

    while (poll(&pf, 1, DEN_SOON_MS) == 1 &&
           csn_msg_recv(im->sock, packet, sizeof(packet), &m) == 1) {
        int chan = csn_msg_take_fd(&m, 0);
        if (m.type == CSN_MSG_SPAWN) {
            command = chan;
        } else {
            (void)csn_proto_send(
                chan, CSN_MSG_HELLO_REPLY,
                &(csn_hello_reply_msg){.pid = im->how, .version = CSN_KEEPER_VERSION}, NULL, 0,
                1);
            close(chan);
            (void)csn_proto_send(command, CSN_MSG_EXIT,
                                 &(csn_exit_msg){.status = SIGTERM, .killed = CSN_KILLED_ASKED},
                                 NULL, 0, 1);
        }
        csn_msg_release(&m);
    }
    close(command);
    return NULL;
}

/* A machine that is very busy, or stood still: the end is late, and it is waited for. */
static void keeper_that_is_slow_to_kill_is_waited_for(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_req req = den_req(argv);
    int sv[2];
    pthread_t t;

    (void)state;
    den_make(&d);
    csn_runtime *l = d.state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    l->keeper_fd = sv[0];
    l->keeper_pid = start_waker(&l->keeper_pidfd);
    impostor im = {.sock = sv[1], .how = (int)l->keeper_pid};
    pthread_create(&t, NULL, dawdle, &im);
    req.deadline_ns = csn_deadline_in(1);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    assert_int_equal(o.end.signal, SIGTERM);
    shutdown(sv[0], SHUT_RDWR);
    pthread_join(t, NULL);
    close(sv[1]);
    den_clean(&d);
}

/* It takes the request and never answers: the wait has an end. It may only be slow. */
static void keeper_that_is_silent_survives_a_question(void **state)
{
    den d;
    int sv[2];
    csn_error *err = NULL;

    (void)state;
    den_make(&d);
    csn_runtime *l = d.state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    pid_t pid = start_sleeper(&l->keeper_pidfd);
    l->keeper_fd = sv[0];
    l->keeper_pid = pid;
    assert_int_equal(d.ops->extend(d.state, 1000, &err), CSN_UNAVAILABLE);
    assert_non_null(strstr(csn_error_message(err), "is not answering"));
    csn_error_free(err);
    assert_true(den_pid_alive(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    close(sv[1]);
    den_clean(&d);
}

/* It takes a command, does not run, and does not end the command at its deadline. */
static void keeper_that_does_not_run_is_killed_at_the_deadline(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_req req = den_req(argv);
    int sv[2];

    (void)state;
    den_make(&d);
    csn_runtime *l = d.state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
    pid_t pid = start_sleeper(&l->keeper_pidfd);
    l->keeper_fd = sv[0];
    l->keeper_pid = pid;
    req.deadline_ns = csn_deadline_in(1);
    den_run(&d, &req, &o);
    assert_int_equal(o.end.how, CSN_END_TIMEOUT);
    assert_false(den_pid_alive(pid));
    close(sv[1]);
    den_clean(&d);
}

/* ---- a caller that was taken over
 * -------------------------------------------------------------- */

/* What a keeper gets on its control socket is checked too: it ends rather than guess. */
static void keeper_refuses_nonsense(void **state)
{
    static uint8_t packet[4096];

    (void)state;
    for (int how = 0; how < 4; how++) {
        den d;
        out o;
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        den_make(&d);
        den_sh(&d, "true", 0, &o);
        csn_runtime *l = d.state;
        if (how == 0)
            assert_int_equal(send(l->keeper_fd, "garbage", 7, MSG_NOSIGNAL), 7);
        else if (how == 1) /* a request without a channel */
            assert_int_equal(csn_msg_send(l->keeper_fd, CSN_MSG_HELLO, NULL, 0, NULL, 0, 0), 0);
        else if (how == 2) /* no such request */
            assert_int_equal(csn_msg_send(l->keeper_fd, 9999, NULL, 0, &fd, 1, 0), 0);
        else /* an empty packet with nothing in it */
            assert_int_equal(send(l->keeper_fd, packet, sizeof(packet), MSG_NOSIGNAL),
                             (ssize_t)sizeof(packet));
        struct pollfd pf = {.fd = l->keeper_pidfd, .events = POLLIN};
        assert_int_equal(poll(&pf, 1, DEN_SOON_MS),
                         1); /* attached: it ends with its connection */
        close(fd);
        den_clean(&d);
    }
}

/* A body that does not parse is an answer, not an end: one caller cannot end it for others. */
static void keeper_answers_bad_bodies_with_an_error(void **state)
{
    static const uint16_t types[] = {CSN_MSG_SPAWN,  CSN_MSG_PROCESSES, CSN_MSG_LOGS,
                                     CSN_MSG_SIGNAL, CSN_MSG_FEED,      CSN_MSG_RESIZE,
                                     CSN_MSG_EXTEND, CSN_MSG_SESSION};
    den d;
    out o;
    csn_error *err = NULL;

    (void)state;
    den_make(&d);
    den_sh(&d, "true", 0, &o);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        uint8_t buf[512], junk[3] = {1, 2, 3};
        csn_msg m;
        int chan = -1;
        assert_int_equal(csn_msg_request(((csn_runtime *)d.state)->keeper_fd, types[i], junk,
                                         sizeof(junk), NULL, 0, csn_deadline_in(DEN_SOON_MS),
                                         &chan),
                         0);
        assert_int_equal(csn_link_answer(d.state, chan, 0, buf, sizeof(buf), &m, &err), CSN_OK);
        assert_int_equal(m.type, CSN_MSG_ERROR);
        csn_msg_release(&m);
        close(chan);
    }
    den_sh(&d, "echo alive", 0, &o);
    assert_string_equal(o.text[0], "alive\n");
    den_clean(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeper_that_lies_is_killed),
        cmocka_unit_test(keeper_that_is_slow_to_kill_is_waited_for),
        cmocka_unit_test(keeper_that_is_silent_survives_a_question),
        cmocka_unit_test(keeper_that_does_not_run_is_killed_at_the_deadline),
        cmocka_unit_test(keeper_refuses_nonsense),
        cmocka_unit_test(keeper_answers_bad_bodies_with_an_error),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
