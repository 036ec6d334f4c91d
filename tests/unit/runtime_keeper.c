/* runtime_keeper.c: the life of a keeper: how it starts, is found again and ends. */
#include <elf.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "keeper_fixture.h"

#include "child.h"
#include "keeper/spec.h"

static void host_keeps_its_signals_and_children(void **state)
{
    den d;
    out o;
    sigset_t before = {0}, after = {0};

    (void)state;
    signal(SIGCHLD, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    den_make(&d);
    den_sh(&d, "true & true", 0, &o);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 65; i++)
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    den_clean(&d);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static void keeper_that_is_killed_is_noticed_and_swept(void **state)
{
    den d;
    out o;
    char text[128];
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    const char *mark = den_mark();
    snprintf(text, sizeof(text), "setsid sh -c 'sleep 600; : %s' >/dev/null 2>&1 & exit 0",
             mark);
    den_sh(&d, text, 0, &o);
    assert_true(den_alive_soon(mark, 1) >= 1);
    kill(den_keeper(&d), SIGKILL);
    assert_int_equal(d.ops->exec(d.state, &req, &sink, &o.end, &err), CSN_UNAVAILABLE);
    csn_error_free(err);
    assert_int_equal(den_left_at_last(mark), 0);
    den_clean(&d);
}

/* A keeper that was born ahead of its orders. owner: a process, to be closed; ours: the other
 * end of its connection. */
static int unordered_keeper_pid(int owner, int *ret_ours, pid_t *ret_pid)
{
    const char *argv[] = {"caisson-keeper", "unordered", NULL};
    int pair[2], pidfd = -1;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    csn_spawn_opts o = {.path = getenv("CSN_TEST_KEEPER"),
                        .argv = argv,
                        .fds = {-1, -1, -1, pair[1], owner},
                        .nfds = CSN_KEEPER_FD_OWNER + 1};
    assert_int_equal(csn_spawn(&o, ret_pid, &pidfd, NULL), 0);
    close(pair[1]);
    close(owner);
    *ret_ours = pair[0];
    return pidfd;
}

static int unordered_keeper(int owner, int *ret_ours)
{
    pid_t pid;

    return unordered_keeper_pid(owner, ret_ours, &pid);
}

static int pidfd_of(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    assert_true(fd >= 0);
    return fd;
}

static void keeper_without_orders_ends_with_whoever_made_it(void **state)
{
    int ours, keeper = unordered_keeper(pidfd_of(getpid()), &ours);

    (void)state;
    assert_int_equal(csn_spawn_wait(keeper, 50), -ETIMEDOUT); /* it waits for them */
    close(ours);
    assert_int_equal(csn_spawn_wait(keeper, 30000), 0);
    close(keeper);

    pid_t owner = fork(); /* it dies, and somebody has a copy of its end */
    if (owner == 0) {
        pause();
        _exit(0);
    }
    keeper = unordered_keeper(pidfd_of(owner), &ours);
    assert_int_equal(csn_spawn_wait(keeper, 50), -ETIMEDOUT);
    kill(owner, SIGKILL);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    assert_int_equal(csn_spawn_wait(keeper, 30000), 0);
    close(keeper);
    close(ours);
}

/* Is it in poll, without an end? From what the kernel tells of its system call. */
static bool waits_for_ever(pid_t pid)
{
    uint64_t deadline = csn_deadline_in(DEN_SOON_MS);
    unsigned long number = 0, fds, count, until;
    char path[64], text[256];

    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    while (csn_deadline_poll_ms(deadline) > 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
            close(fd);
        if (n <= 0) { /* Yama: not its parent; or a kernel without this file */
            print_message("# skipped: %s cannot be read here\n", path);
            skip();
        }
        text[n] = '\0';
        bool asleep = sscanf(text, "%lu %lx %lx %lx", &number, &fds, &count, &until) == 4;
#ifdef SYS_poll
        if (asleep && number == SYS_poll)
            return (int)until < 0;
#endif
        if (asleep && number == SYS_ppoll)
            return until == 0;
        (void)poll(NULL, 0, 5);
    }
    return false;
}

/* Its owner may be stopped between two messages, for as long as somebody likes. */
static void keeper_waits_as_long_as_its_owner_lives(void **state)
{
    const csn_keeper_spec spec = {
        .tag_base = csn_spec_tag_base("x"),
        .id = "x",
        .confinement = {.on = CSN_CONFINE_BIT(CSN_CONFINE_LIMITS), .given = 1}};
    uint8_t buf[4096];
    csn_packer o;
    pid_t pid;
    int ours, keeper = unordered_keeper_pid(pidfd_of(getpid()), &ours, &pid);

    (void)state;
    assert_true(waits_for_ever(pid));
    csn_packer_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, &spec);
    assert_int_equal(csn_msg_send(ours, CSN_MSG_SPEC, o.data, o.len, NULL, 0, 0), 0);
    csn_packer_release(&o);
    for (int left = 1; left > 0;) /* it has taken them */
        assert_int_equal(ioctl(ours, SIOCOUTQ, &left), 0);
    assert_true(waits_for_ever(pid)); /* now for its mounts */
    close(ours);
    assert_int_equal(csn_spawn_wait(keeper, 30000), 0);
    close(keeper);
}

static void keeper_takes_nothing_else_for_its_orders(void **state)
{
    static const uint8_t none[8] = {0};
    int ours, keeper;

    (void)state;
    for (int i = 0; i < 3; i++) {
        keeper = unordered_keeper(pidfd_of(getpid()), &ours);
        if (i == 0) /* another message */
            assert_int_equal(csn_msg_send(ours, CSN_MSG_HELLO, none, 8, NULL, 0, 0), 0);
        else if (i == 1) /* with something in it that is none */
            assert_int_equal(csn_msg_send(ours, CSN_MSG_SPEC, none, 8, NULL, 0, 0), 0);
        else
            assert_int_equal(write(ours, "?", 1), 1);
        assert_int_equal(csn_spawn_wait(keeper, 30000), 0);
        close(keeper);
        close(ours);
    }
}

static int listener_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* A detached keeper with this record, which it checks all the time, and this socket. */
static int recorded_keeper(const char *record, const char *sock, int *ret_ours)
{
    const csn_keeper_spec spec = {.flags = CSN_SPEC_DETACHED,
                                  .tag_base = csn_spec_tag_base("x"),
                                  .id = "x",
                                  .record_check_ms = 5};
    uint8_t buf[4096];
    csn_packer o;
    csn_msg m;
    int channel, keeper = unordered_keeper(listener_at(sock), ret_ours);

    const int fds[] = {open(record, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
                       open(sock, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    assert_true(fds[0] >= 0 && fds[1] >= 0);
    assert_int_equal(flock(fds[0], LOCK_EX | LOCK_NB), 0);
    csn_packer_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, &spec);
    assert_int_equal(csn_msg_send(*ret_ours, CSN_MSG_SPEC, o.data, o.len, NULL, 0, 0), 0);
    csn_packer_release(&o);
    assert_int_equal(csn_msg_request(*ret_ours, CSN_MSG_COMMIT, NULL, 0, fds, 2, 0, &channel),
                     0);
    assert_int_equal(csn_msg_await(channel, 0, buf, sizeof(buf), &m), 1);
    assert_int_equal(m.type, CSN_MSG_DONE);
    csn_msg_release(&m);
    close(channel);
    close(fds[0]);
    close(fds[1]);
    return keeper;
}

/* It holds the lock of its record while it lives, and a removed socket does not end it. */
static void detached_keeper_ends_with_its_record(void **state)
{
    char top[] = "/tmp/csn-record-XXXXXX", record[64], sock[64];

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(record, sizeof(record), "%s/keeper", top);
    snprintf(sock, sizeof(sock), "%s/sock", top);
    int ours, keeper = recorded_keeper(record, sock, &ours);
    int probe = open(record, O_RDONLY | O_CLOEXEC);
    close(ours); /* its creator has ended */
    assert_int_equal(unlink(sock), 0);
    assert_int_equal(csn_spawn_wait(keeper, 50), -ETIMEDOUT);
    assert_int_equal(flock(probe, LOCK_SH | LOCK_NB), -1);
    assert_int_equal(unlink(record), 0);
    assert_int_equal(csn_spawn_wait(keeper, 30000), 0);
    assert_int_equal(flock(probe, LOCK_SH | LOCK_NB), 0);
    close(probe);
    close(keeper);
    assert_int_equal(rmdir(top), 0);
}

static void missing_keeper_says_where_it_looked(void **state)
{
    den d;
    out o = {0};
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_req req = den_req(argv);
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};

    (void)state;
    den_make(&d);
    csn_keeper_path_set(NULL);
    csn_status st = d.ops->exec(d.state, &req, &sink, &o.end, &err);
    if (st == CSN_UNAVAILABLE) { /* else there is an installed one */
        assert_non_null(strstr(csn_error_message(err), CSN_LIBEXEC_DIR "/caisson-keeper"));
        csn_error_free(err);
    }
    den_clean(&d);
}

/* Forks a process that runs a command, and kills it. */
static void nothing_survives_a_caller_that_is_killed(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        den d;
        out *o = calloc(1, sizeof(*o));
        char text[320];
        const char *mark = den_mark();

        den_dirs(&d);
        snprintf(text, sizeof(text),
                 "trap '' TERM; setsid sh -c 'sleep 600; : %s' & (sh -c 'sleep 600; : %s' &); "
                 "sh -c 'sleep 600; : %s'",
                 mark, mark, mark);
        pid_t pid = fork();
        if (pid == 0) {
            den_open(&d);
            den_sh(&d, text, 0, o);
            _exit(0);
        }
        assert_true(den_alive_soon(mark, 4) >= 4);
        kill(pid, SIGKILL);
        assert_int_equal(den_left_at_last(mark), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        den_wipe(&d);
        free(o);
    }
}

/* Long runtime directories do not fit into a socket address. */
static void detached_sandbox_is_found_again_and_destroyed(void **state)
{
    den d;
    out o;
    char deep[300];
    void *again = NULL;
    csn_error *err = NULL;

    (void)state;
    for (int round = 0; round < 2; round++) {
        den_dirs(&d);
        if (round == 1) {
            snprintf(deep, sizeof(deep), "%s/%0120d", d.top, 7);
            assert_int_equal(mkdir(deep, 0700), 0);
            setenv("XDG_RUNTIME_DIR", deep, 1);
        }
        d.config.flags = CSN_OPEN_DETACHED;
        d.config.lifetime_ms = 600000; /* should the test fail */
        d.config.home = NULL;          /* a private one, in the runtime directory */
        den_open(&d);
        csn_runtime *l = d.state;
        assert_int_equal(csn_runtime_commit(l, &err), CSN_OK);
        char *id = strdup(l->id), *run = strdup(l->run_path);
        pid_t keeper = den_keeper(&d);
        den_sh(&d, "(sleep 600; : detached) & echo $HOME", 0, &o);
        d.ops->close(d.state);
        assert_true(den_pid_alive(keeper));
        if (d.ops->connect(&d.config, id, NULL, &again, &err) != CSN_OK)
            fail_msg("connect: %s", csn_error_message(err));
        d.state = again;
        assert_int_equal(den_keeper(&d), keeper);
        den_sh(&d, "echo there", 0, &o);
        assert_string_equal(o.text[0], "there\n");
        assert_int_equal(d.ops->extend(d.state, 600000, NULL), CSN_OK);
        assert_int_equal(d.ops->destroy(d.state, NULL), CSN_OK);
        assert_int_equal(access(run, F_OK), -1);
        assert_false(den_pid_alive(keeper));
        d.ops->close(d.state);
        assert_int_equal(d.ops->connect(&d.config, id, NULL, &d.state, &err), CSN_GONE);
        csn_error_free(err);
        err = NULL;
        free(id);
        free(run);
        den_wipe(&d);
    }
}

/* Somebody listens and does not take what comes, because it is stopped, for example. */
static int connect_in_vain(void *ctx)
{
    den d;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int waiting[8], n = 0;

    (void)ctx;
    den_make(&d);
    csn_runtime *l = d.state;
    bool made = csn_runtime_run_dir(l, NULL) == CSN_OK;
    int listener = made ? csn_runtime_run_listen(l, "full", 0) : -1;
    snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/full", l->run_path);
    for (; n < 8; n++) {
        waiting[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(waiting[n], (struct sockaddr *)&a, sizeof(a)) < 0)
            break;
    }
    bool full = listener >= 0 && n < 8 && errno == EAGAIN;
    int rc = full ? csn_runtime_run_connect(l, "full") : 0;
    for (; n >= 0; n--)
        close(waiting[n]);
    close(listener);
    den_clean(&d);
    return rc == -ETIMEDOUT ? 0 : 1;
}

static void a_connection_that_nobody_takes_is_given_up(void **state)
{
    (void)state;
    csn_child_end end = csn_child_run(connect_in_vain, NULL, -1, DEN_SOON_MS);
    assert_false(end.hung);
    assert_int_equal(end.exit_code, 0);
}

/* True when the command was seen at work before the end of so short a life. */
static bool lived_and_ended(uint64_t lifetime_ms)
{
    den d;
    out o = {0};
    char text[128];
    csn_error *err = NULL;
    csn_sink sink = {den_sink, &o};
    const char *mark = den_mark();
    const char *argv[] = {"/bin/sh", "-c", text, NULL};
    csn_exec_req req = den_req(argv);

    snprintf(text, sizeof(text), "sh -c 'sleep 600; : %s' >/dev/null 2>&1 & exit 0", mark);
    den_dirs(&d);
    d.config.lifetime_ms = lifetime_ms;
    den_open(&d);
    bool seen =
        d.ops->exec(d.state, &req, &sink, &o.end, &err) == CSN_OK && den_alive(mark) >= 1;
    csn_error_free(err);
    err = NULL;
    assert_int_equal(den_left_at_last(mark), 0);
    if (seen)
        assert_int_equal(d.ops->exec(d.state, &req, &sink, &o.end, &err), CSN_GONE);
    csn_error_free(err);
    den_clean(&d);
    return seen;
}

static void lifetime_ends_the_sandbox(void **state)
{
    uint64_t ms = 400;

    (void)state;
    while (!lived_and_ended(ms) && ms <= DEN_SOON_MS / 4)
        ms *= 2;
    assert_true(ms <= DEN_SOON_MS / 4);
}

static void keeper_inherits_no_descriptor(void **state)
{
    den d;
    out o;

    (void)state;
    int far = fcntl(0, F_DUPFD, 300);
    den_make(&d);
    den_sh(&d, "true", 0, &o);
    /* null x3, control, owner, epoll, signalfd, a resting channel, . .. of the listing */
    if (geteuid() == 0) /* it is not dumpable: others may not look */
        assert_int_equal(den_fds_settled(den_keeper(&d), 8 + 2), 8 + 2);
    close(far);
    den_clean(&d);
}

/* ---- how small it is ---- */

/* What a static program can write to from its start, in KB; 0: it is not a static one. */
static long writable_kb(const char *program)
{
    const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    csn_autofd int fd = open(program, O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr eh = {0};
    long kb = 0;

    assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
    for (unsigned i = 0; i < eh.e_phnum; i++) {
        Elf64_Phdr ph = {0};
        off_t at = (off_t)(eh.e_phoff + i * sizeof(ph));
        assert_int_equal(pread(fd, &ph, sizeof(ph), at), sizeof(ph));
        if (ph.p_type == PT_INTERP)
            return 0;
        unsigned long first = ph.p_vaddr / page;
        unsigned long end = (ph.p_vaddr + ph.p_memsz + page - 1) / page;
        if (ph.p_type == PT_LOAD && (ph.p_flags & PF_W))
            kb += (long)((end - first) * page / 1024);
    }
    return kb;
}

static long data_kb(pid_t pid)
{
    char path[64], line[256];
    long kb = -1;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (kb < 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmData: %ld", &kb);
    fclose(f);
    return kb;
}

/* There may be thousands of keepers. A heap, however little is in it, is a page, a page for its
 * accounts, and tables to find both. */
static void keeper_runs_a_command_without_a_heap(void **state)
{
    den d;
    out o;
    long own = writable_kb(getenv("CSN_TEST_KEEPER"));

    (void)state;
    if (own == 0) {
        print_message("the keeper is not a static program\n");
        skip();
    }
    den_make(&d);
    den_sh(&d, "exit 3", 0, &o);
    den_sh(&d, "true", 0, &o);
    assert_int_equal(data_kb(den_keeper(&d)), own);
    den_clean(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_keeps_its_signals_and_children),
        cmocka_unit_test(keeper_that_is_killed_is_noticed_and_swept),
        cmocka_unit_test(keeper_without_orders_ends_with_whoever_made_it),
        cmocka_unit_test(keeper_waits_as_long_as_its_owner_lives),
        cmocka_unit_test(keeper_takes_nothing_else_for_its_orders),
        cmocka_unit_test(detached_keeper_ends_with_its_record),
        cmocka_unit_test(missing_keeper_says_where_it_looked),
        cmocka_unit_test(nothing_survives_a_caller_that_is_killed),
        cmocka_unit_test(detached_sandbox_is_found_again_and_destroyed),
        cmocka_unit_test(a_connection_that_nobody_takes_is_given_up),
        cmocka_unit_test(lifetime_ends_the_sandbox),
        cmocka_unit_test(keeper_inherits_no_descriptor),
        cmocka_unit_test(keeper_runs_a_command_without_a_heap),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
