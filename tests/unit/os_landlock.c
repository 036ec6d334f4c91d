/* os_landlock.c: file access under a Landlock ruleset, and rules that cannot be added.
 *
 * Every body does real things in a child with a ruleset. Where another
 * mechanism could refuse too, the same is done without the ruleset. */
#include <sys/prctl.h>

#include "landlock_fixture.h"

static int makes_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    int rc = result(bind(fd, (struct sockaddr *)&a, sizeof(a)));
    close(fd);
    return rc;
}

/* Runs the program in a child of its own: its exit status, or -errno of execve. */
static int runs(const char *path)
{
    int ws = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execl(path, path, (char *)NULL);
        _exit(errno);
    }
    if (waitpid(pid, &ws, 0) != pid || !WIFEXITED(ws))
        return -ECHILD;
    return -WEXITSTATUS(ws);
}

/* Under a ruleset /proc/self/fd is not readable. */
static int open_count(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* with_rules(body, rules...): paths are relative to the test directory. */
#define with_rules(body_, ...)                                                                 \
    run_restricted((restricted){.spec = {.rules = (const csn_landlock_rule[]){__VA_ARGS__},    \
                                         .count = sizeof((csn_landlock_rule[]){__VA_ARGS__}) / \
                                                  sizeof(csn_landlock_rule)},                  \
                                .body = body_})

/* For failures: the body decides itself what to install. */
static int free_main(void *ctx)
{
    const restricted *w = ctx;

    CHECK(chdir(top), 0);
    w->body();
    _exit(0);
}

static void in_child(void (*body)(void))
{
    restricted w = {.body = body};

    assert_int_equal(csn_child_run(free_main, &w, -1, DEADLINE_MS).exit_code, 0);
}

/* --- files --- */

static void read_only_body(void)
{
    CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0L, 0L, 0L, 0L), 1);
    CHECK(opens("in/file", O_RDONLY), 0);
    CHECK(opens("in", O_RDONLY | O_DIRECTORY), 0);
    CHECK(opens("in/sub", O_RDONLY | O_DIRECTORY), 0);
    CHECK(opens("out/file", O_RDONLY), -EACCES);
    CHECK(opens("out", O_RDONLY | O_DIRECTORY), -EACCES);
    CHECK(opens("in/../out/file", O_RDONLY), -EACCES);
    CHECK(opens("in/out", O_RDONLY), -EACCES); /* the link is inside, the file is not */
    CHECK(opens("in/file", O_WRONLY), -EACCES);
    CHECK(opens("in/file", O_RDONLY | O_TRUNC), -EACCES);
    CHECK(opens("in/new", O_WRONLY | O_CREAT), -EACCES);
    CHECK(opens("in/sub", O_WRONLY | O_TMPFILE), -EACCES);
    CHECK(result(mkdir("in/new", 0755)), -EACCES);
    CHECK(result(symlink("file", "in/new")), -EACCES);
    CHECK(result(mkfifo("in/new", 0644)), -EACCES);
    CHECK(makes_socket("in/new"), -EACCES);
    CHECK(result(unlink("in/file")), -EACCES);
    CHECK(result(rmdir("in/sub")), -EACCES);
    CHECK(result(rename("in/file", "in/other")), -EACCES);
    CHECK(result(link("in/file", "in/other")), -EACCES);
}

static void read_grants_nothing_else(void **state)
{
    NEED_ABI(1);
    /* without the ruleset nothing refuses it */
    assert_int_equal(faccessat(top_fd, "out/file", R_OK | W_OK, 0), 0);
    assert_int_equal(faccessat(top_fd, "in/file", R_OK | W_OK, 0), 0);
    with_rules(read_only_body, {.path = "in", .access = READ});
    assert_int_equal(faccessat(top_fd, "in/new", F_OK, 0), -1);
}

/* As the commands of a jail without namespaces: two rulesets, the inner one made before the
 * outer one stood, and its descriptor no way around either. */
static void inner_body(void)
{
    const csn_landlock_rule both[] = {{.path = "in", .access = READ},
                                      {.path = "out", .access = READ}};
    const csn_landlock_spec outer = {.rules = both, .count = 2, .scope = true};
    const csn_landlock_spec inner = {.rules = both, .count = 1, .scope = true};
    int version = 0, status = -1, ruleset = csn_landlock_prepare(&inner, &version);

    CHECK(ruleset >= 0, 1);
    CHECK(opens("two", O_RDONLY | O_DIRECTORY), 0); /* made, not entered */
    CHECK(csn_landlock_install(&outer), 0);
    CHECK(opens("two", O_RDONLY | O_DIRECTORY), -EACCES);
    CHECK(opens("out/file", O_RDONLY), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(csn_landlock_enter(ruleset), 0);
        CHECK(opens("in/file", O_RDONLY), 0);
        CHECK(opens("out/file", O_RDONLY), -EACCES);
        if (version >= CSN_LL_ABI_SCOPE)
            CHECK(result(kill(getppid(), 0)), -EPERM);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, 1);
    CHECK(opens("out/file", O_RDONLY), 0); /* the outer one is as before */
}

static void a_prepared_ruleset_is_entered_later(void **state)
{
    NEED_ABI(1);
    in_child(inner_body);
}

static void list_body(void)
{
    CHECK(opens("in", O_RDONLY | O_DIRECTORY), 0);
    CHECK(opens("in/sub", O_RDONLY | O_DIRECTORY), 0);
    CHECK(opens("in/file", O_RDONLY), -EACCES);
    CHECK(opens("in/new", O_WRONLY | O_CREAT), -EACCES);
    CHECK(opens("out", O_RDONLY | O_DIRECTORY), -EACCES);
}

static void list_does_not_grant_read(void **state)
{
    NEED_ABI(1);
    with_rules(list_body, {.path = "in", .access = CSN_LL_LIST});
}

static void write_body(void)
{
    CHECK(opens("in/file", O_WRONLY | O_TRUNC), 0);
    CHECK(opens("in/file", O_RDONLY), -EACCES); /* WRITE alone is not READ */
    CHECK(opens("in/new", O_WRONLY | O_CREAT | O_EXCL), 0);
    CHECK(result(truncate("in/new", 3)), 0);
    CHECK(result(mkdir("in/dir", 0755)), 0);
    CHECK(result(symlink("file", "in/link")), 0);
    CHECK(result(mkfifo("in/fifo", 0644)), 0);
    CHECK(makes_socket("in/socket"), 0);
    CHECK(result(rename("in/new", "in/newer")), 0);
    CHECK(result(unlink("in/newer")), 0);
    CHECK(result(rmdir("in/dir")), 0);
    /* makedev(0, 0) needs no capability: without the ruleset any user makes that one */
    CHECK(result(mknod("in/white", S_IFCHR | 0600, 0)), -EACCES);
    CHECK(result(mknod("in/char", S_IFCHR | 0600, makedev(1, 3))), -EACCES);
    CHECK(result(mknod("in/block", S_IFBLK | 0600, makedev(7, 0))), -EACCES);
    CHECK(opens("out/new", O_WRONLY | O_CREAT), -EACCES);
    CHECK(opens("in/out", O_WRONLY), -EACCES);
}

static void write_creates_everything_but_devices(void **state)
{
    NEED_ABI(1);
    assert_int_equal(mknodat(top_fd, "two/white", S_IFCHR | 0600, 0), 0);
    with_rules(write_body, {.path = "in", .access = WRITE});
}

static void moves_body(void)
{
    CHECK(result(rename("in/file", "two/file")), 0);
    CHECK(result(link("two/file", "in/file")), 0);
    CHECK(result(rename("in/sub", "two/sub")), 0);
    CHECK(result(rename("two/file", "in/sub")), 0);
    CHECK(result(rename("in/file", "out/new")), -EACCES);
    CHECK(result(link("in/file", "out/new")), -EACCES);
    CHECK(result(rename("out/file", "in/stolen")), -EACCES);
    CHECK(result(link("out/file", "in/stolen")), -EXDEV);
}

static void files_move_between_granted_directories_only(void **state)
{
    NEED_ABI(2);
    with_rules(moves_body, {.path = "in", .access = READ | WRITE},
               {.path = "two", .access = READ | WRITE});
    assert_int_equal(faccessat(top_fd, "out/file", F_OK, 0), 0);
    assert_int_equal(faccessat(top_fd, "out/new", F_OK, 0), -1);
}

/* Else a file of one's own making would become a program by moving it. */
static void gain_body(void)
{
    CHECK(result(rename("in/file", "two/file")), -EXDEV);
    CHECK(opens("two/other", O_WRONLY | O_CREAT), 0);
    CHECK(result(rename("two/other", "in/other")), 0);
}

static void moving_a_file_gains_no_rights(void **state)
{
    NEED_ABI(2);
    with_rules(gain_body, {.path = "in", .access = READ | WRITE},
               {.path = "two", .access = READ | WRITE | EXEC});
}

static void truncate_body(void)
{
    int fd = open("in/file", O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0, 1);
    CHECK(result(truncate("in/file", 0)), -EACCES);
    CHECK(result(ftruncate(fd, 0)), -EINVAL); /* not open for writing */
    CHECK(result(truncate("out/file", 0)), -EACCES);
    CHECK(result(truncate("two/file", 1)), 0);
}

static void truncating_needs_the_write_right(void **state)
{
    struct stat st;

    NEED_ABI(3);
    put_file(top_fd, "two/file", "long\n");
    with_rules(truncate_body, {.path = "in", .access = READ}, {.path = "two", .access = WRITE});
    assert_int_equal(fstatat(top_fd, "two/file", &st, 0), 0);
    assert_int_equal(st.st_size, 1);
    assert_int_equal(fstatat(top_fd, "out/file", &st, 0), 0);
    assert_int_equal(st.st_size, strlen(CANARY));
}

static void copy_program(const char *to)
{
    char buf[65536];
    int in = open("/bin/true", O_RDONLY | O_CLOEXEC);
    int out = openat(top_fd, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ssize_t n;

    must(in >= 0 && out >= 0, "a copy of true");
    while ((n = read(in, buf, sizeof(buf))) > 0)
        must(write(out, buf, (size_t)n) == n, "write");
    close(in);
    close(out);
}

static void exec_body(void)
{
    CHECK(runs("in/true"), -EACCES);
    CHECK(opens("in/true", O_RDONLY), 0);
    CHECK(runs("two/true"), 0);
    CHECK(opens("two/true", O_WRONLY), -EACCES);
    CHECK(runs("unread/true"), -EACCES); /* the kernel reads what it executes */
}

static void executing_needs_its_own_right_and_reading(void **state)
{
    char path[96];

    NEED_ABI(1);
    copy_program("in/true");
    copy_program("two/true");
    put_dir(top_fd, "unread");
    copy_program("unread/true");
    snprintf(path, sizeof(path), "%s/in/true", top);
    if (runs(path) != 0)
        SKIP("programs in /tmp cannot be executed");
    with_rules(exec_body, {.path = "/usr", .access = READ | EXEC},
               {.path = "/lib", .access = READ | EXEC, .optional = true},
               {.path = "/lib64", .access = READ | EXEC, .optional = true},
               {.path = "in", .access = READ}, {.path = "two", .access = READ | EXEC},
               {.path = "unread", .access = EXEC});
}

static void device_body(void)
{
    CHECK(asks_device(), -ENOTTY);
    CHECK(opens("/dev/null", O_WRONLY | O_CREAT | O_TRUNC), 0); /* as a shell's `>` does */
    CHECK(opens("/dev/zero", O_RDONLY), -EACCES);
}

static void device_directory_body(void)
{
    CHECK(asks_device(), -ENOTTY);
    CHECK(opens("/dev", O_RDONLY | O_DIRECTORY), 0);
    CHECK(opens("/dev/zero", O_RDWR), 0);
    CHECK(opens("/dev/csn-landlock", O_WRONLY | O_CREAT), -EACCES);
}

static void plain_file_body(void)
{
    CHECK(asks_device(), -EACCES);
    CHECK(opens("/dev/null", O_RDWR), 0);
}

static void ioctl_needs_the_device_right(void **state)
{
    NEED_ABI(5);
    with_rules(device_body, {.path = "/dev/null", .access = DEVICE});
    with_rules(device_directory_body, {.path = "/dev", .access = DEVICE});
    with_rules(plain_file_body, {.path = "/dev/null", .access = READ | WRITE});
    with_rules(plain_file_body, {.path = "/dev", .access = READ | WRITE});
}

static void file_rule_body(void)
{
    CHECK(opens("in/file", O_RDWR | O_TRUNC), 0);
    CHECK(opens("in", O_RDONLY | O_DIRECTORY), -EACCES);
    CHECK(opens("in/beside", O_RDONLY), -EACCES);
    CHECK(result(unlink("in/file")), -EACCES); /* that is a right on the directory */
}

/* All rights of a directory asked for on a file: the kernel would say EINVAL. */
static void a_rule_on_a_file_is_for_that_file(void **state)
{
    NEED_ABI(1);
    put_file(top_fd, "in/beside", "x");
    with_rules(file_rule_body, {.path = "in/file", .access = READ | EXEC | WRITE | DEVICE});
}

static void fd_body(void)
{
    csn_landlock_rule rule = {.fd = open("in", O_PATH | O_CLOEXEC), .access = READ};
    csn_landlock_spec spec = {.rules = &rule, .count = 1};

    CHECK(result(rename("in", "moved")), 0); /* by descriptor means not by name */
    CHECK(result(mkdir("in", 0755)), 0);
    CHECK(opens("in/decoy", O_WRONLY | O_CREAT), 0);
    int before = open_count();
    CHECK(csn_landlock_install(&spec), 0);
    CHECK(open_count(), before);
    CHECK(fcntl(rule.fd, F_GETFD) >= 0, 1);
    CHECK(opens("moved/file", O_RDONLY), 0);
    CHECK(opens("in/decoy", O_RDONLY), -EACCES);
}

static void a_rule_may_be_a_held_descriptor(void **state)
{
    NEED_ABI(1);
    in_child(fd_body);
}

static void nothing_body(void)
{
    CHECK(opens("in/file", O_RDONLY), -EACCES);
    CHECK(opens("/", O_RDONLY | O_DIRECTORY), -EACCES);
    CHECK(opens("/dev/null", O_RDONLY), -EACCES);
}

static void without_rules_nothing_opens(void **state)
{
    NEED_ABI(1);
    run_restricted((restricted){.body = nothing_body});
}

static void second_ruleset_body(void)
{
    csn_landlock_rule rule = {.path = "/", .access = READ};
    csn_landlock_spec spec = {.rules = &rule, .count = 1};

    CHECK(csn_landlock_install(&spec), 0);
    CHECK(opens("in/file", O_RDONLY), 0);
    CHECK(opens("in/file", O_WRONLY), -EACCES);
    CHECK(opens("out/file", O_RDONLY), -EACCES);
}

static void a_second_ruleset_only_restricts(void **state)
{
    NEED_ABI(1);
    with_rules(second_ruleset_body, {.path = "in", .access = READ | WRITE});
}

/* --- rules that cannot be added --- */

static void optional_body(void)
{
    CHECK(opens("in/file", O_RDONLY), 0);
    CHECK(opens("out/file", O_RDONLY), -EACCES);
}

static void an_optional_rule_may_be_missing(void **state)
{
    NEED_ABI(1);
    with_rules(optional_body, {.path = "none", .access = READ, .optional = true},
               {.path = "in", .access = READ},
               {.path = "in/file/none", .access = READ, .optional = true});
}

/* What the third of three rules is makes the whole fail, and nothing is restricted. */
static void expect_failure(csn_landlock_rule third, int want)
{
    csn_landlock_rule rules[] = {
        {.path = "in", .access = READ}, {.path = "two", .access = READ}, third};
    csn_landlock_spec spec = {.rules = rules, .count = 3};
    int before = open_count();

    CHECK(csn_landlock_install(&spec), want);
    CHECK(opens("out/file", O_RDWR), 0);
    CHECK(open_count(), before);
}

static void failures_body(void)
{
    int ends[2];

    CHECK(pipe(ends), 0);
    expect_failure((csn_landlock_rule){.path = "none", .access = READ}, -ENOENT);
    expect_failure((csn_landlock_rule){.path = "in/file/x", .access = READ}, -ENOTDIR);
    expect_failure((csn_landlock_rule){.path = "out"}, -EINVAL);
    expect_failure((csn_landlock_rule){.path = "out", .access = READ | 1u << 31}, -EINVAL);
    expect_failure((csn_landlock_rule){.path = "out/file", .access = CSN_LL_LIST}, -ENOMSG);
    expect_failure((csn_landlock_rule){.fd = -1, .access = READ}, -EBADF);
    expect_failure((csn_landlock_rule){.fd = ends[0], .access = READ}, -EBADFD);
    CHECK(result(symlink("loop", "loop")), 0);
    expect_failure((csn_landlock_rule){.path = "loop", .access = READ, .optional = true},
                   -ELOOP); /* not missing */
}

static void a_rule_that_fails_enforces_nothing(void **state)
{
    NEED_ABI(1);
    in_child(failures_body);
}

static void no_landlock_body(void)
{
    csn_landlock_spec spec = {.no_tcp = true, .scope = true};

    CHECK(csn_landlock_install_abi(&spec, 0), -EOPNOTSUPP);
    CHECK(opens("out/file", O_RDWR), 0);
}

static void install_fails_without_landlock(void **state)
{
    (void)state;
    in_child(no_landlock_body);
}

#define ROOM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM(read_grants_nothing_else),
        ROOM(list_does_not_grant_read),
        ROOM(a_prepared_ruleset_is_entered_later),
        ROOM(write_creates_everything_but_devices),
        ROOM(files_move_between_granted_directories_only),
        ROOM(moving_a_file_gains_no_rights),
        ROOM(truncating_needs_the_write_right),
        ROOM(executing_needs_its_own_right_and_reading),
        ROOM(ioctl_needs_the_device_right),
        ROOM(a_rule_on_a_file_is_for_that_file),
        ROOM(a_rule_may_be_a_held_descriptor),
        ROOM(without_rules_nothing_opens),
        ROOM(a_second_ruleset_only_restricts),
        ROOM(an_optional_rule_may_be_missing),
        ROOM(a_rule_that_fails_enforces_nothing),
        ROOM(install_fails_without_landlock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
