/* os_process.c: os/pump, os/proctree and the timeouts of os/msg. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "os/msg.h"
#include "os/proctree.h"
#include "os/pty.h"
#include "os/pump.h"
#include "os/spawn.h"

/* ---- pump ---------------------------------------------------------------------------------
 */

typedef struct heard {
    char text[64];
    uint64_t kept, counted;
    uint64_t count_from, stop_from; /* 0: never */
} heard;

static int hear(void *ctx, int stream, const void *data, size_t len)
{
    heard *h = ctx;

    assert_true(stream == 1 || stream == 2);
    if (data) {
        if (h->kept + len < sizeof(h->text))
            memcpy(h->text + h->kept, data, len);
        h->kept += len;
    } else {
        h->counted += len;
    }
    if (h->stop_from && h->kept >= h->stop_from)
        return CSN_PUMP_SINK_STOP;
    return h->count_from && h->kept >= h->count_from ? CSN_PUMP_SINK_COUNT : CSN_PUMP_SINK_MORE;
}

static void pump_on(csn_pump *p, heard *h, int fd)
{
    csn_pump_init(p);
    p->sink = hear;
    p->sink_ctx = h;
    p->out[0] = (csn_pump_out){.fd = fd, .stream = 1};
}

static void pump_moves_bytes_to_the_end(void **state)
{
    heard h = {0};
    csn_pump p;
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pump_on(&p, &h, fds[0]);
    assert_int_equal(write(fds[1], "some text", 9), 9);
    close(fds[1]);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_CLOSED);
    assert_string_equal(h.text, "some text");
    assert_int_equal(p.out[0].fd, -1);
    csn_pump_release(&p);
}

/* The end of an output and a failure to read it are two things. */
static void pump_reports_a_failed_read(void **state)
{
    heard h = {0};
    csn_pump p;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* always ready, never read */

    (void)state;
    assert_true(fd >= 0);
    pump_on(&p, &h, fd);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_ERROR);
    assert_int_equal(h.kept + h.counted, 0);
    csn_pump_release(&p);
}

static void *flood(void *arg)
{
    static char block[65536];

    for (int i = 0; i < 256; i++)
        if (write(*(int *)arg, block, sizeof(block)) != (ssize_t)sizeof(block))
            break;
    close(*(int *)arg);
    return NULL;
}

static void pump_counts_what_the_sink_does_not_want(void **state)
{
    heard h = {.count_from = 100000};
    csn_pump p;
    int fds[2];
    pthread_t t;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pump_on(&p, &h, fds[0]);
    pthread_create(&t, NULL, flood, &fds[1]);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_CLOSED);
    pthread_join(t, NULL);
    assert_int_equal(h.kept + h.counted, 256 * 65536);
    assert_true(h.kept < 300000);
    assert_int_equal(p.out[0].total, 256 * 65536);
    csn_pump_release(&p);
}

static void pump_reports_stop_once_and_discards_the_rest(void **state)
{
    heard h = {.stop_from = 1};
    csn_pump p;
    int fds[2];
    pthread_t t;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pump_on(&p, &h, fds[0]);
    pthread_create(&t, NULL, flood, &fds[1]);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_STOP);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_CLOSED); /* the writer was never blocked */
    pthread_join(t, NULL);
    csn_pump_release(&p);
}

static void pump_ends_at_deadline_and_cancel(void **state)
{
    heard h = {0};
    csn_pump p;
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pump_on(&p, &h, fds[0]);
    uint64_t from = csn_now_ns();
    p.deadline_ns = csn_deadline_in(50);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_DEADLINE);
    assert_true(csn_now_ns() - from >= 50000000);
    p.deadline_ns = 0;
    int ev = p.cancel_fds[1] = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_CANCEL);
    close(ev);
    close(fds[1]);
    csn_pump_release(&p);
}

static int64_t endless(void *ctx, void *buf, size_t len)
{
    *(uint64_t *)ctx += len;
    memset(buf, 'f', len);
    return (int64_t)len;
}

static int64_t failing(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    (void)buf;
    (void)len;
    return -1;
}

static void pump_survives_a_reader_that_goes_away(void **state)
{
    heard h = {0};
    uint64_t fed = 0;
    csn_pump p;
    int in[2], out[2];

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pump_on(&p, &h, out[0]);
    p.feed_fd = in[1];
    p.feed = endless;
    p.feed_ctx = &fed;
    p.deadline_ns = csn_deadline_in(50);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_DEADLINE); /* nobody reads: no busy loop */
    assert_true(fed < 1 << 20);
    close(in[0]);
    close(out[1]);
    p.deadline_ns = csn_deadline_in(60000);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_CLOSED);
    csn_pump_release(&p);
    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pump_on(&p, &h, out[0]);
    p.feed_fd = in[1];
    p.feed = failing;
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_FEED);
    csn_pump_release(&p);
    close(in[0]);
    close(out[1]);
}

/* Feeds what `fd` provides to a pipe; *ret: what came out of it. */
static csn_pump_event feed_from(int fd, char *text, size_t size)
{
    heard h = {0};
    csn_pump p;
    int in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pump_on(&p, &h, out[0]);
    p.feed_fd = in[1];
    assert_int_equal(csn_input_open(&p.input, fd), 0);
    csn_pump_event ev = CSN_PUMP_DEADLINE;
    while (ev == CSN_PUMP_DEADLINE && p.feed_fd >= 0) { /* until the end was passed on */
        p.deadline_ns = csn_deadline_in(20);
        ev = csn_pump_wait(&p);
    }
    ssize_t n = read(in[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    csn_pump_release(&p);
    close(in[0]);
    close(out[1]);
    return ev;
}

static void pump_forwards_every_kind_of_descriptor(void **state)
{
    char text[64], path[] = "/tmp/csn-input.XXXXXX";
    int p[2], file = mkostemp(path, O_CLOEXEC);

    (void)state;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "pipe", 4), 4);
    close(p[1]);
    assert_int_equal(feed_from(p[0], text, sizeof(text)), CSN_PUMP_DEADLINE);
    assert_string_equal(text, "pipe");
    assert_int_equal(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0); /* other programs share it */
    close(p[0]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
    assert_int_equal(write(p[1], "socket", 6), 6);
    assert_int_equal(shutdown(p[1], SHUT_WR), 0);
    assert_int_equal(feed_from(p[0], text, sizeof(text)), CSN_PUMP_DEADLINE);
    assert_string_equal(text, "socket");
    close(p[0]);
    close(p[1]);
    assert_int_equal(write(file, "file", 4), 4);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_int_equal(feed_from(file, text, sizeof(text)), CSN_PUMP_DEADLINE);
    assert_string_equal(text, "file");
    close(file);
    unlink(path);
    file = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(feed_from(file, text, sizeof(text)), CSN_PUMP_FEED);
    close(file);
}

static void input_that_cannot_be_read_is_refused(void **state)
{
    csn_input in;
    int p[2];

    (void)state;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(csn_input_open(&in, p[1]),
                     -EBADF); /* only written: poll never reports it */
    close(p[0]);
    close(p[1]);
    assert_int_equal(csn_input_open(&in, p[0]), -EBADF);
}

/* A pipe that is full on both sides must neither spin nor lose bytes, and a reader that goes
 * away must not raise SIGPIPE here. */
static void pump_splices_only_as_much_as_is_read(void **state)
{
    static char bytes[65536];
    heard h = {0};
    csn_pump p;
    int from[2], in[2], out[2];
    uint64_t sent = 0;

    (void)state;
    assert_int_equal(pipe2(from, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pump_on(&p, &h, out[0]);
    p.feed_fd = in[1];
    assert_int_equal(csn_input_open(&p.input, from[0]), 0);
    for (int i = 0; i < 4; i++) {
        ssize_t n;
        while ((n = write(from[1], bytes, sizeof(bytes))) > 0)
            sent += (uint64_t)n;
        p.deadline_ns = csn_deadline_in(20);
        assert_int_equal(csn_pump_wait(&p), CSN_PUMP_DEADLINE);
    }
    assert_int_equal(sent, 2 * sizeof(bytes));
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    close(in[0]);
    p.deadline_ns = csn_deadline_in(20);
    assert_int_equal(csn_pump_wait(&p), CSN_PUMP_DEADLINE);
    assert_int_equal(p.feed_fd, -1);
    csn_pump_release(&p);
    close(from[0]);
    close(from[1]);
    close(out[1]);
}

static void drain_moves_only_what_is_in_the_pipe(void **state)
{
    heard h = {0};
    csn_pump p;
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pump_on(&p, &h, fds[0]);
    assert_int_equal(write(fds[1], "now", 3), 3);
    csn_pump_drain_now(&p);
    assert_string_equal(h.text, "now");
    csn_pump_drain_now(&p); /* returns although the writer lives */
    close(fds[1]);
    csn_pump_release(&p);
}

/* ---- proctree -------------------------------------------------------------------------------
 */

#define TAG ((1ull << 62) | (uint64_t)getpid() << 24) /* nobody else's */

/* Should the test fail, nobody stays behind for long. */
static void sit(void)
{
    alarm(30);
    for (;;)
        pause();
}

/* A process that marks itself and leaves three others behind, each in its own way. */
static pid_t start_tree(void)
{
    int ready[2];
    char c;

    uint64_t tag = TAG;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (csn_proctree_mark(tag + 7) != 0)
            _exit(1);
        signal(SIGCHLD, SIG_IGN); /* no zombies: one with the tag leaves everything open */
        if (fork() == 0) {
            setsid();
            if (fork() == 0 || fork() == 0)
                sit();
            (void)!write(ready[1], "x", 1);
            _exit(0); /* these two are orphans now */
        }
        sit();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void tree_is_found_by_tag_and_killed(void **state)
{
    csn_proctree_query by_tag = {.tag_lo = TAG, .tag_hi = TAG + 100};
    csn_proctree_query other = {.tag_lo = TAG + 1000, .tag_hi = TAG + 2000};
    csn_proctree t = {0};
    size_t fresh = 0;

    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    pid_t pid = start_tree();
    assert_int_equal(csn_proctree_tag(pid), TAG + 7);
    ssize_t n = 1; /* so long as processes vanish while it looks, a pass does not say 0 */
    for (int i = 0; i < 10000 && n != 0; i++)
        n = csn_proctree_scan(&t, &other, SIGKILL, false, NULL);
    assert_int_equal(n, 0);
    for (int i = 0; i < 10000 && n != 3;
         i++) /* the middle one may still be there, as a zombie */
        n = csn_proctree_scan(&t, &by_tag, 0, false, &fresh);
    assert_int_equal(n, 3);
    fresh = 1; /* and who vanished counts as one that is new */
    for (int i = 0; i < 10000 && fresh != 0; i++)
        assert_int_equal(csn_proctree_scan(&t, &by_tag, 0, false, &fresh), 3);
    assert_int_equal(fresh, 0);
    assert_int_equal(csn_proctree_scan_tagged(&t, &by_tag, 0, &fresh), 3);
    n = 1; /* here too */
    for (int i = 0; i < 10000 && n != 0; i++)
        n = csn_proctree_scan_tagged(&t, &other, SIGKILL, &fresh);
    assert_int_equal(n, 0);
    n = 3;
    for (int i = 0; i < 10000 && n != 0; i++) {
        n = csn_proctree_scan(&t, &by_tag, SIGKILL, false, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    assert_int_equal(n, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0L, 0L, 0L, 0L);
    csn_proctree_release(&t);
}

static void tree_is_found_by_ancestry(void **state)
{
    csn_proctree t = {0};
    csn_proctree_query below_me = {.root = getpid()};

    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        (void)!fork();
        sit();
    }
    ssize_t n = 0;
    for (int i = 0; i < 10000 && n != 2; i++)
        n = csn_proctree_scan(&t, &below_me, 0, false, NULL);
    assert_int_equal(n, 2); /* and not ourselves */
    csn_proctree_query with_root = {.root = pid, .include_root = true};
    /* Stopped first: once the parent is dead nothing tells whose child the other was. */
    assert_int_equal(csn_proctree_scan(&t, &with_root, SIGSTOP, false, NULL), 2);
    assert_int_equal(csn_proctree_scan(&t, &with_root, SIGKILL, false, NULL), 2);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 10000 && n != 0; i++)
        n = csn_proctree_scan(&t, &below_me, 0, false, NULL);
    assert_int_equal(n, 0);
    csn_proctree_release(&t);
}

/* It dies of the signal while the scan goes on, and a zombie gets none. */
static void signalled_processes_are_counted(void **state)
{
    csn_proctree t = {0};
    csn_proctree_query w = {.tag_lo = TAG + 5000, .tag_hi = TAG + 5000};

    (void)state;
    for (int i = 0; i < 100; i++) {
        int ready[2];
        char c;
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            (void)csn_proctree_mark(w.tag_lo);
            (void)!write(ready[1], "x", 1);
            sit();
        }
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_true(csn_proctree_scan(&t, &w, SIGKILL, false, NULL) > 0);
        assert_int_equal(t.hit, 1);
        siginfo_t info;
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        (void)csn_proctree_scan(&t, &w, SIGKILL, false, NULL);
        assert_int_equal(t.hit, 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(ready[0]);
        close(ready[1]);
    }
    csn_proctree_release(&t);
}

static void *stay(void *arg)
{
    (void)arg;
    sit();
    return NULL;
}

/* Its first thread is a zombie, but it is alive. */
static void process_without_its_first_thread_counts_as_alive(void **state)
{
    csn_proctree t = {0};
    int ready[2];
    char c;

    (void)state;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t th;
        pthread_create(&th, NULL, stay, NULL);
        (void)!write(ready[1], "x", 1);
        pthread_exit(NULL);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    poll(NULL, 0, 50);
    csn_proctree_query w = {.root = pid, .include_root = true};
    assert_int_equal(csn_proctree_scan(&t, &w, SIGKILL, false, NULL), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    ssize_t n = 1; /* see tree_is_found_by_tag_and_killed */
    for (int i = 0; i < 10000 && n != 0; i++)
        n = csn_proctree_scan(&t, &w, 0, false, NULL);
    assert_int_equal(n, 0);
    csn_proctree_release(&t);
    close(ready[0]);
    close(ready[1]);
}

static void terminal_opens_with_a_size(void **state)
{
    int master = -1, slave = -1;

    (void)state;
    assert_int_equal(csn_pty_open(0, 0, &master, &slave), 0);
    assert_int_equal(isatty(slave), 1);
    assert_true(fcntl(slave, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(csn_pty_resize(master, 10, 20), 0);
    close(slave);
    close(master);
    assert_true(csn_pty_resize(0, 1, 1) < 0 || isatty(0));
}

/* ---- messages -----------------------------------------------------------------------------
 */

static int peer;

/* In the very thread that waits: it comes before that can go on, however late both are. */
static void peer_answers(int signo)
{
    (void)signo;
    (void)csn_msg_send(peer, 7, NULL, 0, NULL, 0, 1);
}

/* Everything was stopped for longer than the deadline, and we are the first to go on. */
static void await_allows_grace_after_suspension(void **state)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    struct sigaction answer = {.sa_handler = peer_answers}, old;
    uint8_t buf[64];
    csn_msg m;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    peer = pair[1];
    sigaction(SIGALRM, &answer, &old);
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_int_equal(csn_msg_await(pair[0], csn_now_ns() - 1, buf, sizeof(buf), &m), 1);
    sigaction(SIGALRM, &old, NULL);
    assert_int_equal(m.type, 7);
    csn_msg_release(&m);
    close(pair[0]);
    close(pair[1]);
}

static void await_times_out(void **state)
{
    uint8_t buf[64];
    csn_msg m;
    int pair[2], rc = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(csn_msg_await(pair[0], csn_now_ns() - 1, buf, sizeof(buf), &m),
                     -ETIMEDOUT);
    for (int i = 0; rc == 0 && i < 100000; i++)
        rc = csn_msg_send(pair[0], 7, NULL, 0, NULL, 0, 1);
    assert_int_equal(rc, -EAGAIN);
    assert_int_equal(csn_msg_send(pair[0], 7, NULL, 0, NULL, 0, csn_now_ns() - 1), -ETIMEDOUT);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pump_moves_bytes_to_the_end),
        cmocka_unit_test(pump_reports_a_failed_read),
        cmocka_unit_test(pump_counts_what_the_sink_does_not_want),
        cmocka_unit_test(pump_reports_stop_once_and_discards_the_rest),
        cmocka_unit_test(pump_ends_at_deadline_and_cancel),
        cmocka_unit_test(pump_survives_a_reader_that_goes_away),
        cmocka_unit_test(pump_forwards_every_kind_of_descriptor),
        cmocka_unit_test(input_that_cannot_be_read_is_refused),
        cmocka_unit_test(pump_splices_only_as_much_as_is_read),
        cmocka_unit_test(drain_moves_only_what_is_in_the_pipe),
        cmocka_unit_test(tree_is_found_by_tag_and_killed),
        cmocka_unit_test(tree_is_found_by_ancestry),
        cmocka_unit_test(signalled_processes_are_counted),
        cmocka_unit_test(process_without_its_first_thread_counts_as_alive),
        cmocka_unit_test(terminal_opens_with_a_size),
        cmocka_unit_test(await_allows_grace_after_suspension),
        cmocka_unit_test(await_times_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
