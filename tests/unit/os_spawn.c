/* os_spawn.c: os/spawn: programs started from a host with threads, handlers and children. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/spawn.h"

static ssize_t read_all(int fd, char *buf, size_t size)
{
    size_t at = 0;
    ssize_t n;

    while ((n = read(fd, buf + at, size - 1 - at)) > 0)
        at += (size_t)n;
    buf[at] = '\0';
    return (ssize_t)at;
}

static void orphan_gets_what_is_listed_and_nothing_else(void **state)
{
    const char *argv[] = {"sh", "-c", "pwd; echo $HOME$LANG; cd /proc/self/fd; echo *; cat <&3",
                          NULL};
    int out[2], in[2], pidfd = -1;
    char text[512];
    pid_t pid = 0;

    (void)state;
    setenv("HOME", "/somewhere", 1);
    int leak = fcntl(0, F_DUPFD, 100);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], "through 3", 9), 9);
    close(in[1]);
    csn_spawn_opts o = {
        .path = "/bin/sh", .argv = argv, .fds = {-1, out[1], -1, in[0]}, .nfds = 4};
    assert_int_equal(csn_spawn(&o, &pid, &pidfd, NULL), 0);
    assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
    close(out[1]);
    close(in[0]);
    read_all(out[0], text, sizeof(text));
    assert_true(strcmp(text, "/\n\n0 1 2 3 4\nthrough 3") == 0 ||
                strcmp(text, "/\n\n0 1 2 3\nthrough 3") == 0);
    assert_int_equal(csn_spawn_wait(pidfd, 60000), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* never our child */
    assert_int_equal(errno, ECHILD);
    close(out[0]);
    close(pidfd);
    close(leak);
}

static void orphan_that_cannot_be_run_is_an_error(void **state)
{
    const char *argv[] = {"x", NULL};
    csn_spawn_opts o = {
        .path = "/no/such/program", .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
    int pidfd = -7;
    pid_t pid = -7;

    (void)state;
    assert_int_equal(csn_spawn(&o, &pid, &pidfd, NULL), -ENOENT);
    assert_int_equal(pid, -7);
    assert_int_equal(pidfd, -7);
}

/* Two steps: the host goes on in between, may close what it hands over, and finds its errno and
 * its signals as they were. */
static void orphan_is_on_its_way_while_the_host_goes_on(void **state)
{
    const char *argv[] = {"sh", "-c", "grep Cpus_allowed_list: /proc/self/status", NULL};
    char text[256], line[256] = "";
    csn_spawn_pending *birth = NULL;
    int out[2], pidfd = -1;
    pid_t pid = 0;

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    csn_spawn_opts o = {.path = "/bin/sh", .argv = argv, .fds = {-1, out[1], -1}, .nfds = 3};
    assert_int_equal(csn_spawn_begin(&o, &birth), 0);
    close(out[1]);
    for (int i = 0; i < 2000; i++) { /* enough to get into its way */
        errno = 0;
        assert_int_equal(open("/no/such/file", O_RDONLY), -1);
        assert_int_equal(errno, ENOENT);
    }
    assert_int_equal(csn_spawn_finish(birth, &pid, &pidfd, NULL), 0);
    read_all(out[0], text, sizeof(text));
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f) && strncmp(line, "Cpus_allowed_list:", 18) != 0)
        continue;
    assert_non_null(f);
    fclose(f);
    assert_string_equal(text, line); /* where it was born is not where it must stay */
    assert_int_equal(csn_spawn_wait(pidfd, 60000), 0);
    close(pidfd);
    close(out[0]);
}

__attribute__((noinline)) static unsigned calls_below(volatile unsigned *at, unsigned depth)
{
    unsigned n = depth == 0 ? 0 : calls_below(at, depth - 1) + 1;

    *at = n;
    return n;
}

static void *start_and_go_on(void *unused)
{
    const char *argv[] = {"true", NULL};
    csn_spawn_namespaces w = {.become = geteuid() == 0, .uid = 54321, .gid = 54321};
    csn_spawn_opts o = {
        .path = "/bin/true", .namespaces = &w, .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
    csn_spawn_pending *birth = NULL;
    volatile unsigned at = 0;
    int pidfd = -1;
    pid_t pid = 0;

    (void)unused;
    assert_int_equal(csn_spawn_begin(&o, &birth), 0);
    for (int i = 0; i < 500; i++)
        assert_int_equal(calls_below(&at, 20), 20);
    assert_int_equal(csn_spawn_finish(birth, &pid, &pidfd, NULL), 0);
    assert_int_equal(csn_spawn_wait(pidfd, 60000), 0);
    close(pidfd);
    return NULL;
}

/* For the thread sanitizer: it counts calls per thread, down to none at its end, and what a
 * child does in our memory must not be counted with them. */
static void host_that_goes_on_stays_in_order(void **state)
{
    pthread_t thread;

    (void)state;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(pthread_create(&thread, NULL, start_and_go_on, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

static void orphan_that_is_not_born_says_so_in_the_end(void **state)
{
    const char *argv[] = {"x", NULL};
    csn_spawn_opts o = {
        .path = "/no/such/program", .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
    enum csn_spawn_stage stage = CSN_SPAWN_AT_CLONE;
    csn_spawn_pending *birth = NULL;
    int pidfd = -7;
    pid_t pid = -7;

    (void)state;
    assert_int_equal(csn_spawn_begin(&o, &birth), 0);
    assert_int_equal(csn_spawn_finish(birth, &pid, &pidfd, &stage), -ENOENT);
    assert_int_equal(stage, CSN_SPAWN_AT_EXEC);
    assert_int_equal(pid, -7);
    assert_int_equal(pidfd, -7);
}

static volatile sig_atomic_t chld_count;

static void on_chld(int signo)
{
    (void)signo;
    chld_count++;
}

/* Both share one errno: neither takes the other's for its own. */
static void start_that_fails_keeps_to_its_own_error(void **state)
{
    const char *argv[] = {"true", NULL};
    const csn_spawn_namespaces never = {.namespaces = CLONE_NEWNS | CLONE_FS}; /* EINVAL */
    csn_spawn_opts o = {.path = "/bin/true",
                        .namespaces = &never,
                        .argv = argv,
                        .fds = {-1, -1, -1},
                        .nfds = 3};

    (void)state;
    for (int i = 0; i < 500; i++) {
        enum csn_spawn_stage stage = CSN_SPAWN_AT_EXEC;
        csn_spawn_pending *birth = NULL;
        int pidfd = -1;
        pid_t pid = 0;

        assert_int_equal(csn_spawn_begin(&o, &birth), 0);
        for (int k = 0; k < 100; k++) {
            errno = 0;
            assert_int_equal(open("/no/such/file", O_RDONLY), -1);
            assert_int_equal(errno, ENOENT);
        }
        assert_int_equal(csn_spawn_finish(birth, &pid, &pidfd, &stage), -EINVAL);
        assert_int_equal(stage, CSN_SPAWN_AT_CLONE);
    }
}

static void orphan_raises_no_sigchld(void **state)
{
    const char *argv[] = {"true", NULL};
    csn_spawn_opts o = {.path = "/bin/true", .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
    struct sigaction sa = {.sa_handler = on_chld}, old;
    int pidfd;
    pid_t pid;

    (void)state;
    sigaction(SIGCHLD, &sa, &old);
    chld_count = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(csn_spawn(&o, &pid, &pidfd, NULL), 0);
        assert_int_equal(csn_spawn_wait(pidfd, 60000), 0);
        close(pidfd);
    }
    assert_int_equal(chld_count, 0);
    sigaction(SIGCHLD, &old, NULL);
}

/* One orphan that echoes a word of its starter's through its own pipe. */
static void *start_some(void *arg)
{
    char word[32], text[512];
    int out[2], pidfd;
    pid_t pid;

    for (int i = 0; i < 20; i++) {
        snprintf(word, sizeof(word), "%s%d", (const char *)arg, i);
        const char *argv[] = {"echo", word, NULL};
        csn_spawn_opts o = {.path = "/bin/echo", .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
        if (pipe2(out, O_CLOEXEC) != 0)
            return "no pipe";
        o.fds[1] = out[1];
        if (csn_spawn(&o, &pid, &pidfd, NULL) != 0)
            return "no start";
        close(out[1]);
        read_all(out[0], text, sizeof(text));
        close(out[0]);
        (void)csn_spawn_wait(pidfd, 60000);
        close(pidfd);
        if (strncmp(text, word, strlen(word)) != 0 || text[strlen(word)] != '\n')
            return "another's descriptor";
    }
    return NULL;
}

static void orphans_of_many_threads_get_their_own(void **state)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    void *trouble;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_some, names[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &trouble);
        assert_null(trouble);
    }
}

/* A daemon closes all it does not know, and opens files of its own where ours were. */
static void a_host_that_closes_everything_keeps_what_it_opens(void **state)
{
    struct stat st;
    int fds[16];

    (void)state;
    assert_null(start_some("before"));
    assert_int_equal(syscall(SYS_close_range, 3, ~0u, 0), 0);
    for (size_t i = 0; i < 16; i++)
        fds[i] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_null(start_some("after"));
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(fstat(fds[i], &st), 0);
        assert_int_equal(st.st_rdev, makedev(1, 5));
        close(fds[i]);
    }
}

static void a_forked_host_starts_its_own(void **state)
{
    int status = 0;

    (void)state;
    assert_null(start_some("parent"));
    pid_t child = fork();
    if (child == 0)
        _exit(start_some("child") == NULL ? 0 : 1);
    assert_null(start_some("meanwhile"));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void wait_for_an_orphan_can_time_out(void **state)
{
    const char *argv[] = {"sleep", "600", NULL};
    csn_spawn_opts o = {.path = "/bin/sleep", .argv = argv, .fds = {-1, -1, -1}, .nfds = 3};
    int pidfd;
    pid_t pid;

    (void)state;
    assert_int_equal(csn_spawn(&o, &pid, &pidfd, NULL), 0);
    assert_int_equal(csn_spawn_wait(pidfd, 20), -ETIMEDOUT);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(csn_spawn_wait(pidfd, 60000), 0);
    close(pidfd);
}

static void quiet_write_raises_no_sigpipe(void **state)
{
    sigset_t pending;
    int p[2];

    (void)state;
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(csn_write_quietly(p[1], "x", 1), 1);
    close(p[0]);
    assert_int_equal(csn_write_quietly(p[1], "x", 1), -EPIPE);
    sigpending(&pending);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    close(p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orphan_gets_what_is_listed_and_nothing_else),
        cmocka_unit_test(orphan_that_cannot_be_run_is_an_error),
        cmocka_unit_test(orphan_is_on_its_way_while_the_host_goes_on),
        cmocka_unit_test(host_that_goes_on_stays_in_order),
        cmocka_unit_test(orphan_that_is_not_born_says_so_in_the_end),
        cmocka_unit_test(start_that_fails_keeps_to_its_own_error),
        cmocka_unit_test(orphan_raises_no_sigchld),
        cmocka_unit_test(orphans_of_many_threads_get_their_own),
        cmocka_unit_test(a_host_that_closes_everything_keeps_what_it_opens),
        cmocka_unit_test(a_forked_host_starts_its_own),
        cmocka_unit_test(wait_for_an_orphan_can_time_out),
        cmocka_unit_test(quiet_write_raises_no_sigpipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
