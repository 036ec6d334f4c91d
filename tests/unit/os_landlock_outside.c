/* os_landlock_outside.c: network and signals to processes outside a ruleset, and older
 * kernels.
 *
 * The outside is this test program: it listens on a TCP port and an abstract socket and counts
 * a signal. Older kernels are imitated by asking for less: the ruleset of ABI n is the same on
 * every newer one. */
#include <arpa/inet.h>
#include <signal.h>

#include "landlock_fixture.h"

static struct sockaddr_in tcp_at;
static struct sockaddr_un abstract_at;
static int tcp_fd, abstract_fd;
static volatile sig_atomic_t signals_seen;

static void on_signal(int sig)
{
    (void)sig;
    signals_seen++;
}

static int setup_outside(void **state)
{
    static unsigned round; /* a child of the last one may not have let go of its name yet */
    socklen_t len = sizeof(tcp_at);

    tcp_at =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(tcp_fd, (struct sockaddr *)&tcp_at, len) == 0 && listen(tcp_fd, 64) == 0 &&
             getsockname(tcp_fd, (struct sockaddr *)&tcp_at, &len) == 0,
         "a listener on loopback");
    abstract_at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(abstract_at.sun_path + 1, sizeof(abstract_at.sun_path) - 1, "csn-landlock-%d-%u",
             (int)getpid(), round++);
    abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(abstract_fd, (struct sockaddr *)&abstract_at, sizeof(abstract_at)) == 0 &&
             listen(abstract_fd, 64) == 0,
         "an abstract socket");
    signals_seen = 0;
    must(signal(SIGUSR1, on_signal) != SIG_ERR, "signal");
    return setup(state);
}

static int teardown_outside(void **state)
{
    close(tcp_fd);
    close(abstract_fd);
    must(signal(SIGUSR1, SIG_DFL) != SIG_ERR, "signal");
    return teardown(state);
}

static int connects(int family, const void *at, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = result(connect(fd, at, len));

    close(fd);
    return rc;
}

static int connects_tcp(void)
{
    return connects(AF_INET, &tcp_at, sizeof(tcp_at));
}

static int connects_abstract(void)
{
    return connects(AF_UNIX, &abstract_at, sizeof(abstract_at));
}

static int binds_tcp(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = result(bind(fd, (struct sockaddr *)&any, sizeof(any)));

    close(fd);
    return rc;
}

static int signals_outside(void)
{
    return result(kill(getppid(), SIGUSR1));
}

static void reach_all_body(void)
{
    CHECK(connects_tcp(), 0);
    CHECK(binds_tcp(), 0);
    CHECK(connects_abstract(), 0);
    CHECK(signals_outside(), 0);
}

/* The control of the two tests below. */
static void network_and_signals_are_unrestricted_by_default(void **state)
{
    NEED_ABI(1);
    run_restricted((restricted){.body = reach_all_body});
    assert_int_equal(signals_seen, 1);
}

static void no_tcp_body(void)
{
    CHECK(connects_tcp(), -EACCES);
    CHECK(binds_tcp(), -EACCES);
    CHECK(connects_abstract(), 0);
    CHECK(signals_outside(), 0);
}

static void no_tcp_refuses_bind_and_connect(void **state)
{
    NEED_ABI(4);
    run_restricted((restricted){.spec = {.no_tcp = true}, .body = no_tcp_body});
}

static void scope_body(void)
{
    pid_t own = fork();

    if (own == 0) {
        alarm(DEADLINE_MS / 1000);
        pause();
        _exit(0);
    }
    CHECK(result(kill(own, SIGKILL)), 0); /* a process under the same ruleset can be reached */
    CHECK(connects_abstract(), -EPERM);
    CHECK(signals_outside(), -EPERM);
    CHECK(connects_tcp(), 0);
}

static void scope_ends_signals_and_abstract_sockets(void **state)
{
    NEED_ABI(6);
    run_restricted((restricted){.spec = {.scope = true}, .body = scope_body});
    assert_int_equal(signals_seen, 0);
}

/* --- older kernels --- */

static void any_abi_body(void)
{
    CHECK(opens("out/file", O_RDONLY), -EACCES);
    CHECK(opens("ro/file", O_RDONLY), 0);
    CHECK(opens("ro/file", O_WRONLY), -EACCES);
    CHECK(result(rename("in/file", "two/file")), child_abi >= 2 ? 0 : -EXDEV);
    CHECK(result(truncate("ro/file", 0)), child_abi >= 3 ? -EACCES : 0);
    CHECK(connects_tcp(), child_abi >= 4 ? -EACCES : 0);
    CHECK(asks_device(), child_abi >= 5 ? -EACCES : -ENOTTY);
    CHECK(connects_abstract(), child_abi >= 6 ? -EPERM : 0);
    CHECK(signals_outside(), child_abi >= 6 ? -EPERM : 0);
}

static void try_abi(int abi)
{
    static const csn_landlock_rule rules[] = {
        {.path = "in", .access = READ | WRITE},
        {.path = "two", .access = READ | WRITE},
        {.path = "ro", .access = READ},
        {.path = "/dev/null", .access = READ | WRITE},
    };

    put_file(top_fd, "in/file", "again\n");
    run_restricted(
        (restricted){.spec = {.rules = rules, .count = 4, .no_tcp = true, .scope = true},
                     .abi = abi,
                     .body = any_abi_body});
}

static void each_abi_enforces_what_it_knows(void **state)
{
    int newest = csn_landlock_abi();

    NEED_ABI(1);
    put_dir(top_fd, "ro");
    put_file(top_fd, "ro/file", "text\n");
    for (int abi = 1; abi <= newest; abi++)
        try_abi(abi);
    if (newest >= 6) /* a kernel of the future: what we know is still asked for */
        try_abi(newest + 50);
}

#define OUTSIDE(name) cmocka_unit_test_setup_teardown(name, setup_outside, teardown_outside)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTSIDE(network_and_signals_are_unrestricted_by_default),
        OUTSIDE(no_tcp_refuses_bind_and_connect),
        OUTSIDE(scope_ends_signals_and_abstract_sockets),
        OUTSIDE(each_abi_enforces_what_it_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
