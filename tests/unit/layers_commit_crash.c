/* layers_commit_crash.c: a commit that is killed before each of its system calls, and one whose
 * calls fail. As root and as an ordinary user.
 *
 * The child is traced: it is stopped at the entry of every call that can change something, and
 * killed there. Afterwards the base must be as it was, or as the sandbox has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "commit_world.h"
#include "fault.h"
#include "skip.h"

static commit_world cw;

static int setup(void **state)
{
    (void)state;
    commit_make(&cw);
    return 0;
}

static int setup_as_user(void **state)
{
    if (geteuid() == 0)
        must(setegid(WORLD_USER) == 0 && seteuid(WORLD_USER) == 0, "seteuid");
    return setup(state);
}

static int teardown(void **state)
{
    (void)state;
    commit_wipe(&cw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

/* One of each: replaced, added, removed, both changes of type, links, modes, a merge. */
static void prepare(void)
{
    PUT(&cw, "base/mod=old", "base/del=x", "base/tree/a=x", "base/f2d=x", "base/d2f/x=y",
        "base/l>old", "base/dir/in=x", "base/h1=x", "base/h2&h1", "base/closed/in=x");
    PUT(&cw, "0/mod=new", "0/del!", "0/tree!", "0/f2d/in=side", "0/d2f=file", "0/l>new",
        "0/dir/in=z", "0/new/deep/f=z", "0/n1=hard", "0/n2&n1", "0/h1=one", "0/h2=two",
        "0/closed/in=new", "0/ro/f=x");
    PUT(&cw, "base/closed@555", "0/closed@555", "0/dir@0", "0/ro@400");
    world_xattr(&cw.lw, "0/mod", "user.color", "red");
    commit_list(&cw);
    commit_plan(&cw);
    assert_int_equal(cw.plan.conflicts, 0);
}

static void again(void **state)
{
    commit_wipe(&cw);
    setup(state);
    prepare();
}

/* ---- a traced child ---- */

/* The calls that change something; openat only if it creates. */
static const int changing[] = {
    SYS_write,     SYS_pwrite64,  SYS_renameat,     SYS_renameat2, SYS_unlinkat, SYS_mkdirat,
    SYS_linkat,    SYS_symlinkat, SYS_fchmod,       SYS_fchmodat,  SYS_fchown,   SYS_fchownat,
    SYS_utimensat, SYS_fsetxattr, SYS_fremovexattr, SYS_ftruncate, SYS_ioctl,    SYS_flock};
#define CHANGING (sizeof(changing) / sizeof(changing[0]))

/* Stops at these calls only: stopping at all of them takes ten times as long. */
static int stop_at_changes(void)
{
    struct sock_filter code[2 * CHANGING + 6];
    size_t n = 0;

    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CHANGING; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (uint32_t)changing[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    code[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_openat, 0, 3);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             (uint32_t)offsetof(struct seccomp_data, args[2]));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog prog = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int apply(void)
{
    return csn_commit_apply(&cw.request, &cw.plan, cw.store, NULL) == CSN_OK ? 0 : 1;
}

static int recover(void)
{
    csn_commit_recovery r;

    return csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL) == CSN_OK ? 0 : 1;
}

#define AT_COMMIT_POINT UINT32_MAX

static bool is_due(unsigned call, unsigned n)
{
    struct stat st;

    if (n != AT_COMMIT_POINT)
        return call == n;
    return fstatat(cw.store, "commit.journal", &st, 0) == 0;
}

/* Runs `body` in a child and kills it before its changing call number `n`, or before the first
 * one after the commit point. true: it was killed; false: it has fewer calls and succeeded. */
static bool killed_at(int (*body)(void), unsigned n)
{
    int status;
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(stop_at_changes() < 0 ? 77 : body());
    }
    must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "start");
    must(ptrace(PTRACE_SETOPTIONS, pid, NULL,
                (void *)(PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)) == 0,
         "ptrace");
    for (unsigned calls = 0; WIFSTOPPED(status);) {
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) && is_due(calls++, n)) {
            kill(pid, SIGKILL);
            must(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "kill");
            return true;
        }
        must(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0, "continue");
        must(waitpid(pid, &status, 0) == pid, "waitpid");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %x", status);
    return false;
}

/* ---- kills ---- */

/* 'b': as before; 'a': as after. Owners of closed directories see inside as root alone, so both
 * are compared as the same user. */
static char state_is(const char *before, const char *after, unsigned n)
{
    csn_autofree char *now = commit_tree(&cw, "base", DUMP_TIMES);

    if (strcmp(now, before) == 0)
        return 'b';
    if (strcmp(now, after) != 0)
        fail_msg("killed before call %u: the base is\n%s", n, now);
    return 'a';
}

/* Times of links differ from world to world. */
static void fix_times(void)
{
    world_time(cw.lw.top_fd, "base/l", 5);
    world_time(cw.lw.top_fd, "0/l", 6);
    commit_list(&cw);
    commit_plan(&cw);
}

static void killed_commit_is_all_or_nothing(void **state)
{
    unsigned n = 0, undone = 0, done = 0;

    prepare();
    fix_times();
    csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES);
    assert_int_equal(apply(), 0);
    csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES);
    assert_string_not_equal(before, after);
    for (again(state), fix_times(); killed_at(apply, n); again(state), fix_times(), n++) {
        csn_commit_recovery r = {0};
        /* Every second time the recovery is killed as well, somewhere else each time. */
        if (n % 2)
            (void)killed_at(recover, n % 61);
        assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
        assert_int_equal(r.left, 0);
        commit_left_nothing(&cw);
        char is = state_is(before, after, n);
        if (r.outcome == CSN_COMMIT_DONE)
            assert_int_equal(is, 'a');
        if (r.outcome == CSN_COMMIT_UNDONE)
            assert_int_equal(is, 'b');
        undone += is == 'b';
        done += is == 'a';
    }
    /* The loop has seen both sides of the commit point. */
    assert_true(undone > 20 && done > 20);
}

/* ---- the host changes something between the crash and the recovery ---- */

static void later_change_of_the_host_survives_recovery(void **state)
{
    csn_commit_recovery r = {0};

    (void)state;
    prepare();
    assert_true(killed_at(apply, AT_COMMIT_POINT));
    PUT(&cw, "base/mod=mine", "base/new/deep/f=mine", "base/n1=mine", "base/del=mine");
    put_file(cw.lw.top_fd, "base/h1", "mine"); /* in place: h2 is the same file */
    assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
    assert_int_equal(r.outcome, CSN_COMMIT_DONE);
    assert_int_equal(r.left, 6);
    csn_autofree char *tree = commit_tree(&cw, "base", 0);
    assert_non_null(strstr(tree, "mod 100644 mine\n"));
    assert_non_null(strstr(tree, "new/deep/f 100644 mine\n"));
    assert_non_null(strstr(tree, "n1 100644 mine\n"));
    assert_non_null(strstr(tree, "n2 100644 hard\n"));
    assert_non_null(strstr(tree, "del 100644 mine\n"));
    assert_non_null(strstr(tree, "h2 100644 mine"));
    commit_left_nothing(&cw);
}

static int remove_temps(void *ctx, const char *path, const struct stat *st, const char *target)
{
    (void)st;
    (void)target;
    if (strstr(path, ".csn-commit-"))
        must(unlinkat(*(int *)ctx, path, 0) == 0, path);
    return 0;
}

static void lost_temporary_files_are_counted(void **state)
{
    csn_commit_recovery r = {0};
    csn_autofd int base = -1;

    (void)state;
    prepare();
    assert_true(killed_at(apply, AT_COMMIT_POINT));
    base = openat(cw.lw.top_fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(csn_tree_walk(base, remove_temps, &base) == 0, "walk");
    assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
    assert_true(r.left >= 10);
    commit_left_nothing(&cw);
}

static void damaged_journal_changes_nothing(void **state)
{
    csn_commit_recovery r = {0};
    csn_error *err = NULL;
    char byte;

    (void)state;
    prepare();
    assert_true(killed_at(apply, AT_COMMIT_POINT));
    csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    int fd = openat(cw.store, "commit.journal", O_RDWR | O_CLOEXEC);
    must(pread(fd, &byte, 1, 100) == 1, "read");
    byte ^= 1;
    must(pwrite(fd, &byte, 1, 100) == 1, "write");
    assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, &err), CSN_IO);
    assert_non_null(strstr(csn_error_message(err), "commit.journal"));
    csn_error_free(err);
    csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    assert_string_equal(before, after);
    byte ^= 1;
    must(pwrite(fd, &byte, 1, 100) == 1, "write");
    close(fd);
    assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
    assert_int_equal(r.outcome, CSN_COMMIT_DONE);
    commit_left_nothing(&cw);
}

/* ---- failing calls ---- */

static const fault *failing;

static int apply_with_fault(void)
{
    if (fault_inject(failing) < 0)
        return 77;
    return csn_commit_apply(&cw.request, &cw.plan, cw.store, NULL) == CSN_OK ? 1 : 0;
}

static int child_of(int (*body)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(body());
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Before the commit point: nothing has changed, and nothing is left. */
static void full_disk_leaves_nothing(void **state)
{
    static const fault faults[] = {
        {SYS_write, 0, 0, ENOSPC},      {SYS_write, 0, 0, EIO},
        {SYS_ftruncate, -1, 0, EIO},    {SYS_fchmod, -1, 0, EIO},
        {SYS_symlinkat, -1, 0, ENOSPC}, {SYS_fsetxattr, -1, 0, ENOSPC},
        {SYS_flock, -1, 0, EIO},        {SYS_faccessat2, -1, 0, EROFS},
        {SYS_renameat, -1, 0, EIO}};

    prepare();
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
        failing = &faults[i];
        int rc = child_of(apply_with_fault);
        if (rc == 77)
            SKIP("no seccomp filters here");
        if (rc != 0)
            fail_msg("fault %zu: the commit succeeded", i);
        csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
        assert_string_equal(before, after);
        commit_left_nothing(&cw);
    }
    assert_int_equal(commit_try(&cw), CSN_OK);
    (void)state;
}

/* A directory that is closed by its mode is opened; one of a read-only file system is not. */
static void read_only_directory_is_refused(void **state)
{
    static const fault read_only = {SYS_faccessat2, -1, 0, EROFS};

    (void)state;
    PUT(&cw, "base/d/f=x", "0/d/f!");
    commit_list(&cw);
    commit_plan(&cw);
    failing = &read_only;
    int rc = child_of(apply_with_fault);
    if (rc == 77)
        SKIP("no seccomp filters here");
    assert_int_equal(rc, 0);
    commit_left_nothing(&cw);
    csn_autofree char *tree = commit_tree(&cw, "base", 0);
    assert_string_equal(tree, "d 40755 \nd/f 100644 x\n");
}

/* After it: the journal stays, and a recovery without the fault completes the commit. */
static void failure_after_the_commit_point_is_completed_later(void **state)
{
    static const fault faults[] = {{SYS_unlinkat, 2, AT_REMOVEDIR, EACCES},
                                   {SYS_mkdirat, -1, 0, ENOSPC},
                                   {SYS_renameat2, -1, 0, EIO}};

    prepare();
    fix_times();
    assert_int_equal(commit_try(&cw), CSN_OK);
    csn_autofree char *want = commit_tree(&cw, "base", DUMP_TIMES);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        csn_commit_recovery r = {0};
        again(state);
        fix_times();
        failing = &faults[i];
        int rc = child_of(apply_with_fault);
        if (rc == 77)
            SKIP("no seccomp filters here");
        assert_int_equal(rc, 0);
        assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
        assert_int_equal(r.outcome, CSN_COMMIT_DONE);
        assert_int_equal(r.left, 0);
        csn_autofree char *is = commit_tree(&cw, "base", DUMP_TIMES);
        assert_string_equal(is, want);
        commit_left_nothing(&cw);
    }
}

static void nothing_to_recover_is_said(void **state)
{
    csn_commit_recovery r = {.outcome = CSN_COMMIT_DONE, .left = 3};

    (void)state;
    assert_int_equal(csn_commit_recover(cw.store, cw.lw.stack.base, &r, NULL), CSN_OK);
    assert_int_equal(r.outcome, CSN_COMMIT_NONE);
    assert_int_equal(r.left, 0);
}

#define BOTH(f)                                                                                \
    {#f, f, setup, teardown, NULL},                                                            \
    {                                                                                          \
#f "_as_user", f, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(killed_commit_is_all_or_nothing),
        BOTH(later_change_of_the_host_survives_recovery),
        BOTH(lost_temporary_files_are_counted),
        BOTH(damaged_journal_changes_nothing),
        BOTH(full_disk_leaves_nothing),
        BOTH(read_only_directory_is_refused),
        BOTH(failure_after_the_commit_point_is_completed_later),
        BOTH(nothing_to_recover_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
