/* keeper_sweep.c: the other life of the keeper's program: when it removes what a sandbox
 * leaves.
 *
 * It is started as the library starts it, with an owner and a keeper that are children of ours
 * and do nothing. Where it matters what comes first it is stopped meanwhile. */
#include "keeper/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "corpus.h"
#include "os/cgroup.h"
#include "os/msg.h"
#include "os/spawn.h"

#define ID      "jail-1-sweep"
#define LONG_MS 60000

typedef struct scene {
    char dir[64]; /* what is to be removed */
    pid_t owner, keeper, sweeper;
    int owner_fd, keeper_fd, sweeper_fd;
    int control; /* to the sweeper */
} scene;

/* Somebody who lives until he is killed. */
static pid_t sleeper(int *ret_pidfd)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    assert_true(pid > 0);
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(*ret_pidfd >= 0);
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void begin(scene *s, const csn_cgroup *g)
{
    uint8_t buf[1024];
    csn_packer o;
    csn_keeper_spec spec = {
        .flags = CSN_SPEC_SWEEP, .tag_base = csn_spec_tag_base(ID), .id = ID};
    const char *argv[] = {"caisson-sweeper", ID, NULL};
    int pair[2];

    snprintf(s->dir, sizeof(s->dir), "/tmp/csn-sweep-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    spec.remove[0] = s->dir;
    for (uint32_t i = 0; g && i < g->count; i++)
        spec.groups[i] = g->dirs[i].path;
    s->owner = sleeper(&s->owner_fd);
    s->keeper = sleeper(&s->keeper_fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    csn_spawn_opts who = {.path = getenv("CSN_TEST_KEEPER"),
                          .argv = argv,
                          .fds = {-1, -1, -1, pair[1], s->owner_fd},
                          .nfds = CSN_KEEPER_FD_OWNER + 1};
    assert_non_null(who.path);
    assert_int_equal(csn_spawn(&who, &s->sweeper, &s->sweeper_fd, NULL), 0);
    close(pair[1]);
    s->control = pair[0];
    csn_packer_init(&o, buf, sizeof(buf));
    csn_spec_put(&o, &spec);
    assert_int_equal(csn_msg_send(s->control, CSN_MSG_SPEC, o.data, o.len, NULL, 0, 0), 0);
    csn_packer_release(&o);
}

/* It has done its work, and called it a success. */
static void swept(scene *s)
{
    int status = -1;

    assert_int_equal(waitpid(s->sweeper, &status, 0), s->sweeper);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(access(s->dir, F_OK), -1);
}

static void over(scene *s)
{
    close(s->sweeper_fd);
    close(s->owner_fd);
    close(s->keeper_fd);
    if (s->control >= 0)
        close(s->control);
}

static void tell(const scene *s)
{
    assert_int_equal(csn_msg_send(s->control, CSN_MSG_KEEPER, NULL, 0, &s->keeper_fd, 1, 0), 0);
}

/* It hangs up when it knows what to wait for; from then on it looks at nothing else. */
static void await_decision(const scene *s)
{
    struct pollfd pf = {.fd = s->control};

    assert_int_equal(poll(&pf, 1, LONG_MS), 1);
    assert_true(pf.revents & POLLHUP);
}

static void hang_up_before_there_is_a_keeper(void **state)
{
    scene s;

    (void)state;
    begin(&s, NULL);
    close(s.control);
    s.control = -1;
    swept(&s);
    end(s.owner);
    end(s.keeper);
    over(&s);
}

/* A host that has forked: somebody still holds the connection. */
static void death_of_the_owner_whose_connection_is_still_open(void **state)
{
    scene s;

    (void)state;
    begin(&s, NULL);
    end(s.owner);
    swept(&s);
    end(s.keeper);
    over(&s);
}

static void keeper_that_it_knows_of_is_waited_for(void **state)
{
    scene s;

    (void)state;
    begin(&s, NULL);
    tell(&s);
    await_decision(&s);
    end(s.owner);
    csn_child_nap(20);
    assert_int_equal(access(s.dir, F_OK), 0);
    end(s.keeper);
    swept(&s);
    over(&s);
}

static void what_the_owner_said_before_its_death_counts(void **state)
{
    scene s;

    (void)state;
    begin(&s, NULL);
    assert_int_equal(kill(s.sweeper, SIGSTOP), 0);
    tell(&s);
    end(s.owner);
    assert_int_equal(kill(s.sweeper, SIGCONT), 0);
    await_decision(&s);
    csn_child_nap(20);
    assert_int_equal(access(s.dir, F_OK), 0);
    end(s.keeper);
    swept(&s);
    over(&s);
}

static void message_of_another_kind_is_no_keeper(void **state)
{
    scene s;

    (void)state;
    begin(&s, NULL);
    assert_int_equal(csn_msg_send(s.control, CSN_MSG_CGROUPS, NULL, 0, &s.keeper_fd, 1, 0), 0);
    swept(&s);
    end(s.owner);
    end(s.keeper);
    over(&s);
}

static void what_was_never_made_is_no_failure(void **state)
{
    csn_cgroup g = {.count = 2};
    scene s;

    (void)state;
    snprintf(g.dirs[0].path, sizeof(g.dirs[0].path), "/tmp/no-such/caisson-a");
    snprintf(g.dirs[1].path, sizeof(g.dirs[1].path), "/tmp/caisson-no-such-group");
    begin(&s, &g);
    assert_int_equal(rmdir(s.dir), 0);
    end(s.owner);
    swept(&s);
    end(s.keeper);
    over(&s);
}

/* The first of two was made and somebody was already let in. */
static void groups_go_with_who_is_in_them(void **state)
{
    const csn_cgroup_limits limits = {.memory_max = 64u << 20, .pids_max = 20};
    char id[48], procs[CSN_CGROUP_PATH_MAX + 16];
    csn_cgroup g = {0};
    scene s;

    (void)state;
    snprintf(id, sizeof(id), "test-sweep-%d", (int)getpid());
    int rc = csn_cgroup_plan(NULL, id, &limits, &g, NULL);
    if (rc == -EACCES || rc == -ENOTSUP)
        SKIP("no control groups for this user here");
    assert_int_equal(rc, 0);
    assert_int_equal(csn_cgroup_create(NULL, &g, &limits, NULL), 0);
    begin(&s, &g);
    if (g.count > 1)
        assert_int_equal(rmdir(g.dirs[1].path), 0);
    snprintf(procs, sizeof(procs), "%s/cgroup.procs", g.dirs[0].path);
    FILE *f = fopen(procs, "we");
    assert_true(f && fprintf(f, "%d", (int)s.keeper) > 0 && fclose(f) == 0);
    end(s.owner);
    int status = 0; /* reaped before the other: nobody else can, and its group waits for it */
    assert_int_equal(waitpid(s.keeper, &status, 0), s.keeper);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    swept(&s);
    for (uint32_t i = 0; i < g.count; i++)
        assert_int_equal(access(g.dirs[i].path, F_OK), -1);
    over(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hang_up_before_there_is_a_keeper),
        cmocka_unit_test(death_of_the_owner_whose_connection_is_still_open),
        cmocka_unit_test(keeper_that_it_knows_of_is_waited_for),
        cmocka_unit_test(what_the_owner_said_before_its_death_counts),
        cmocka_unit_test(message_of_another_kind_is_no_keeper),
        cmocka_unit_test(what_was_never_made_is_no_failure),
        cmocka_unit_test(groups_go_with_who_is_in_them),
    };

    csn_child_adopt(); /* its exit status is for its parent */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
