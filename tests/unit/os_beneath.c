/* os_beneath.c: every path of the table against both resolvers and both ways to treat the root,
 * then what the table does not say: links themselves, refused kernels, parents. */
#include "os/beneath.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "child.h"
#include "corpus.h"
#include "os/parent.h"

static corpus fx;

static int setup(void **state)
{
    (void)state;
    corpus_build(&fx, true);
    corpus_load(__FILE__, fx.root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    csn_beneath_force_walk(false);
    corpus_wipe(&fx);
    corpus_unload();
    return 0;
}

static const char *answer(int fd)
{
    struct stat st;
    const char *word = "?";

    if (fd == -ENXIO)
        return "NOTREG";
    if (fd < 0)
        return strerrorname_np(-fd);
    if (fstat(fd, &st) == 0)
        word = S_ISREG(st.st_mode) ? "OK-FILE" : S_ISDIR(st.st_mode) ? "OK-DIR" : "NOTREG";
    close(fd);
    return word;
}

/* How many cases give another answer than the table's. */
static int wrong_answers(unsigned how)
{
    int wrong = 0;

    for (size_t i = 0; i < corpus_count; i++) {
        const corpus_case *c = &corpus_cases[i];
        const char *want = how & CSN_BENEATH_ROOTED ? c->inroot : c->beneath;
        if (!c->path || (strcmp(c->id, "P92") == 0 && !fx.chardev))
            continue;
        const char *got = answer(csn_beneath_open(fx.fd, c->path, O_RDONLY, how));
        if (strcmp(got, want) != 0) {
            print_message("# %s: %s, not %s\n", c->id, got, want);
            wrong++;
        }
    }
    return wrong;
}

static void kernel_answers_the_table_beneath(void **state)
{
    (void)state;
    csn_beneath_force_walk(false);
    assert_int_equal(wrong_answers(0), 0);
}

static void kernel_answers_the_table_in_root(void **state)
{
    (void)state;
    csn_beneath_force_walk(false);
    assert_int_equal(wrong_answers(CSN_BENEATH_ROOTED), 0);
}

static void walk_answers_the_table_beneath(void **state)
{
    (void)state;
    csn_beneath_force_walk(true);
    assert_int_equal(wrong_answers(0), 0);
    csn_beneath_force_walk(false);
}

static void walk_answers_the_table_in_root(void **state)
{
    (void)state;
    csn_beneath_force_walk(true);
    assert_int_equal(wrong_answers(CSN_BENEATH_ROOTED), 0);
    csn_beneath_force_walk(false);
}

/* What O_PATH, O_DIRECTORY, O_NOFOLLOW and NOFOLLOW give must be the same from both. */
static void walk_and_kernel_agree_on_every_flag(void **state)
{
    static const int flags[] = {O_PATH, O_PATH | O_NOFOLLOW, O_RDONLY | O_NOFOLLOW,
                                O_RDONLY | O_DIRECTORY, O_PATH | O_DIRECTORY};
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < corpus_count * 10; i++) {
        const corpus_case *c = &corpus_cases[i / 10];
        unsigned how = i % 2 ? CSN_BENEATH_NOFOLLOW : 0;
        int f = flags[i / 2 % 5];
        if (!c->path)
            continue;
        csn_beneath_force_walk(false);
        const char *a = answer(csn_beneath_open(fx.fd, c->path, f, how));
        csn_beneath_force_walk(true);
        const char *b = answer(csn_beneath_open(fx.fd, c->path, f, how));
        if (strcmp(a, b) != 0) {
            print_message("# %s flags %x how %u: kernel %s, walk %s\n", c->id, f, how, a, b);
            wrong++;
        }
    }
    csn_beneath_force_walk(false);
    assert_int_equal(wrong, 0);
}

static void nofollow_refuses_every_link_and_opens_the_last_itself(void **state)
{
    struct stat st;

    (void)state;
    for (int walk = 0; walk < 2; walk++) {
        csn_beneath_force_walk(walk);
        assert_int_equal(csn_beneath_open(fx.fd, "link", O_RDONLY, CSN_BENEATH_NOFOLLOW),
                         -ELOOP);
        assert_int_equal(
            csn_beneath_open(fx.fd, "dirlink/file", O_RDONLY, CSN_BENEATH_NOFOLLOW), -ELOOP);
        int fd = csn_beneath_open(fx.fd, "link_out", O_PATH | O_NOFOLLOW, CSN_BENEATH_NOFOLLOW);
        assert_true(fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode));
        close(fd);
        assert_int_equal(csn_beneath_open(fx.fd, "x", O_RDWR | O_CREAT, 0), -EINVAL);
    }
    csn_beneath_force_walk(false);
}

static void descriptors_are_closed_on_exec(void **state)
{
    (void)state;
    for (int walk = 0; walk < 2; walk++) {
        csn_beneath_force_walk(walk);
        int fd = csn_beneath_open(fx.fd, "target", O_RDONLY, 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
    }
    csn_beneath_force_walk(false);
}

static int lowest_free(void)
{
    int fd = dup(fx.fd);

    close(fd);
    return fd;
}

static void no_descriptor_leaks(void **state)
{
    int before = lowest_free();

    (void)state;
    csn_beneath_force_walk(true);
    (void)wrong_answers(0);
    csn_beneath_force_walk(false);
    assert_int_equal(lowest_free(), before);
}

/* ---- a kernel that refuses openat2 ---- */

static int refuse_openat2(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = 4, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int table_without_openat2(void *ctx)
{
    if (refuse_openat2(*(int *)ctx) < 0)
        return 77;
    if (syscall(SYS_openat2, fx.fd, ".", NULL, 0) != -1 || errno != *(int *)ctx)
        return 78;
    return wrong_answers(0) == 0 && wrong_answers(CSN_BENEATH_ROOTED) == 0 ? 0 : 1;
}

static void table_holds_under(int error)
{
    csn_child_end end = csn_child_run(table_without_openat2, &error, -1, 60000);

    if (end.exit_code == 77)
        SKIP("no seccomp filters here");
    assert_int_equal(end.exit_code, 0);
}

static void walk_is_used_when_seccomp_answers_enosys(void **state)
{
    (void)state;
    table_holds_under(ENOSYS);
}

static void walk_is_used_when_seccomp_answers_eperm(void **state)
{
    (void)state;
    table_holds_under(EPERM);
}

/* ---- parents ---- */

static void parent_is_found_without_making_anything(void **state)
{
    csn_autoparent p = CSN_PARENT_NONE;

    (void)state;
    assert_int_equal(csn_parent_find(fx.fd, "a/b/new1/./new2//file", 0, &p), 0);
    assert_string_equal(p.name, "file");
    assert_false(p.exists);
    char *missing = csn_parent_missing(&p);
    assert_string_equal(missing, "new1/new2");
    free(missing);
    assert_int_equal(faccessat(fx.fd, "a/b/new1", F_OK, 0), -1);
}

static void undo_removes_made_parents(void **state)
{
    csn_autoparent p = CSN_PARENT_NONE, q = CSN_PARENT_NONE;

    (void)state;
    assert_int_equal(csn_parent_find(fx.fd, "a/new1/./new2/new3/file", 0, &p), 0);
    assert_int_equal(csn_parent_make(&p), 0);
    put_file(p.fd, "file", "x");
    assert_int_equal(faccessat(fx.fd, "a/new1/new2/new3/file", F_OK, 0), 0);
    assert_int_equal(csn_parent_sync(&p), 0);
    csn_parent_undo(&p); /* not empty: stays */
    assert_int_equal(faccessat(fx.fd, "a/new1/new2/new3/file", F_OK, 0), 0);
    int a = openat(fx.fd, "a", O_PATH | O_CLOEXEC);
    assert_int_equal(csn_tree_remove(a, "new1"), 0);
    close(a);

    assert_int_equal(csn_parent_find(fx.fd, "a/new1/./new2/new3/file", 0, &q), 0);
    assert_int_equal(csn_parent_make(&q), 0);
    csn_parent_undo(&q);
    assert_int_equal(faccessat(fx.fd, "a/new1", F_OK, 0), -1);
    assert_int_equal(faccessat(fx.fd, "a/b/c", F_OK, 0), 0);
}

static int parent_of(const char *path, unsigned how)
{
    csn_autoparent p = CSN_PARENT_NONE;

    return csn_parent_find(fx.fd, path, how, &p);
}

static void parent_refuses_paths_without_a_last_name(void **state)
{
    (void)state;
    assert_int_equal(parent_of(".", 0), -EINVAL);
    assert_int_equal(parent_of("a/.", 0), -EINVAL);
    assert_int_equal(parent_of("a/b/..", 0), -EINVAL);
    assert_int_equal(parent_of("..", 0), -EXDEV);
    assert_int_equal(parent_of("../x", 0), -EXDEV);
    assert_int_equal(parent_of("nope/../x", 0), -ENOENT);
    assert_int_equal(parent_of("target/x", 0), -ENOTDIR);
    assert_int_equal(parent_of("enddot", CSN_PARENT_FOLLOW), -EISDIR);
    assert_int_equal(parent_of("", 0), -ENOENT);
}

static void parent_follows_the_last_link_inside_only(void **state)
{
    csn_autoparent p = CSN_PARENT_NONE, q = CSN_PARENT_NONE;

    (void)state;
    assert_int_equal(csn_parent_find(fx.fd, "clink", CSN_PARENT_FOLLOW, &p), 0);
    assert_string_equal(p.name, "target");
    assert_true(p.exists && S_ISREG(p.st.st_mode));
    assert_int_equal(csn_parent_find(fx.fd, "clink", 0, &q), 0);
    assert_true(S_ISLNK(q.st.st_mode));
    assert_int_equal(parent_of("link_out", CSN_PARENT_FOLLOW), -EXDEV);
    assert_int_equal(parent_of("dangling_out", CSN_PARENT_FOLLOW), -EXDEV);
    assert_int_equal(parent_of("link_out_abs", CSN_PARENT_FOLLOW), -EXDEV);
    assert_int_equal(parent_of("loop", CSN_PARENT_FOLLOW), -ELOOP);
    assert_int_equal(parent_of("s0", CSN_PARENT_FOLLOW), -ELOOP);
    assert_int_equal(parent_of("s2", CSN_PARENT_FOLLOW), 0);
    assert_int_equal(parent_of("link", CSN_PARENT_FOLLOW | CSN_BENEATH_NOFOLLOW), -ELOOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_answers_the_table_beneath),
        cmocka_unit_test(kernel_answers_the_table_in_root),
        cmocka_unit_test(walk_answers_the_table_beneath),
        cmocka_unit_test(walk_answers_the_table_in_root),
        cmocka_unit_test(walk_and_kernel_agree_on_every_flag),
        cmocka_unit_test(nofollow_refuses_every_link_and_opens_the_last_itself),
        cmocka_unit_test(descriptors_are_closed_on_exec),
        cmocka_unit_test(no_descriptor_leaks),
        cmocka_unit_test(walk_is_used_when_seccomp_answers_enosys),
        cmocka_unit_test(walk_is_used_when_seccomp_answers_eperm),
        cmocka_unit_test(parent_is_found_without_making_anything),
        cmocka_unit_test(undo_removes_made_parents),
        cmocka_unit_test(parent_refuses_paths_without_a_last_name),
        cmocka_unit_test(parent_follows_the_last_link_inside_only),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
