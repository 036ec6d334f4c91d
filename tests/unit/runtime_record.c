/* runtime_record.c: a keeper counts as dead only if it is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/protocol.h"
#include "os/statedir.h"
#include "os/tree.h"
#include "runtime/keeper_record.h"

typedef struct fixture {
    char top[64];
    int dir;
    pid_t keeper;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));

    snprintf(f->top, sizeof(f->top), "/tmp/csn-record.XXXXXX");
    if (!mkdtemp(f->top))
        return -1;
    f->dir = open(f->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->keeper = fork();
    if (f->keeper == 0)
        for (;;)
            pause();
    *state = f;
    return f->dir < 0 || f->keeper < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    kill(f->keeper, SIGKILL);
    waitpid(f->keeper, NULL, 0);
    close(f->dir);
    csn_tree_remove_force(AT_FDCWD, f->top);
    free(f);
    return 0;
}

/* A record of the fixture's process; returns its locked descriptor. */
static int make(const fixture *f, csn_keeper_record *r)
{
    int fd = csn_keeper_record_create(f->dir);

    assert_true(fd >= 0);
    *r = (csn_keeper_record){.version = "1.2", .protocol = CSN_KEEPER_VERSION};
    assert_int_equal(csn_pid_identify(f->keeper, &r->keeper), 0);
    assert_int_equal(csn_host_identify(&r->host), 0);
    r->here = r->host;
    r->holder = r->keeper;
    assert_int_equal(csn_keeper_record_write(f->dir, r), 0);
    return fd;
}

static void a_record_reads_as_it_was_written(void **state)
{
    const fixture *f = *state;
    char *dirs[] = {"/a", "/b \"c\"", NULL};
    csn_keeper_record r, got;
    int fd = csn_keeper_record_create(f->dir);

    r = (csn_keeper_record){.version = "1.2",
                            .protocol = 7,
                            .keeper = {11, 12},
                            .holder = {13, 14},
                            .sock_dev = 15,
                            .sock_ino = UINT64_MAX,
                            .dirs = dirs};
    assert_int_equal(csn_host_identify(&r.host), 0);
    assert_int_equal(csn_keeper_record_write(f->dir, &r), 0);
    assert_int_equal(csn_keeper_record_create(f->dir), -EEXIST);
    assert_int_equal(csn_keeper_record_read(f->dir, &got), 0);
    assert_string_equal(got.version, "1.2");
    assert_int_equal(got.protocol, 7);
    assert_memory_equal(&got.keeper, &r.keeper, sizeof(r.keeper));
    assert_memory_equal(&got.holder, &r.holder, sizeof(r.holder));
    assert_string_equal(got.host.boot, r.host.boot);
    assert_string_equal(got.host.name, r.host.name);
    assert_int_equal(got.host.pid_ns, r.host.pid_ns);
    assert_int_equal(got.sock_dev, 15);
    assert_int_equal(got.sock_ino, UINT64_MAX);
    assert_string_equal(got.dirs[1], dirs[1]);
    assert_null(got.dirs[2]);
    csn_keeper_record_release(&got);
    close(fd);
}

static void the_process_decides_where_its_pid_is_known(void **state)
{
    fixture *f = *state;
    csn_keeper_record r;
    int fd = make(f, &r);

    close(fd); /* the lock is free */
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_LIVES);
    r.keeper.start++; /* another process has the pid */
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_ENDED);
    r.keeper.start--;
    kill(f->keeper, SIGKILL);
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t)f->keeper, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_ENDED); /* a zombie */
}

static void the_lock_decides_in_other_pid_namespaces(void **state)
{
    const fixture *f = *state;
    csn_keeper_record r;
    int fd = make(f, &r);

    r.host.pid_ns++;
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_LIVES);
    close(fd);
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_ENDED);
}

static void the_lock_decides_while_a_sandbox_is_made(void **state)
{
    const fixture *f = *state;
    csn_keeper_record r = {.version = "x"};
    int fd = csn_keeper_record_create(f->dir);

    assert_int_equal(csn_keeper_record_read(f->dir, &r), 0);
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_STARTING);
    close(fd);
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_ENDED);
}

static void other_hosts_boots_and_versions_are_told_apart(void **state)
{
    const fixture *f = *state;
    csn_keeper_record r;
    int fd = make(f, &r);

    r.protocol++;
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_OTHER_VERSION);
    r.host.boot[0] = 'x';
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_OTHER_BOOT);
    r.host.name[0]++;
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_OTHER_HOST);
    close(fd);
    assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_OTHER_HOST);
}

static void damaged_records_are_empty(void **state)
{
    static const char *const texts[] = {"{", "[]", "{\"version\":1}", "{\"version\":\"1\"}",
                                        "x"};
    const fixture *f = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        csn_keeper_record r = {.version = "x"};
        int fd = csn_keeper_record_create(f->dir);
        int out = openat(f->dir, CSN_STATE_KEEPER, O_WRONLY | O_CLOEXEC);
        assert_int_equal(write(out, texts[i], strlen(texts[i])), strlen(texts[i]));
        close(out);
        assert_int_equal(csn_keeper_record_read(f->dir, &r), 0);
        assert_string_equal(r.version, "");
        assert_int_equal(csn_keeper_record_life(f->dir, &r), CSN_KEEPER_STARTING);
        close(fd);
        assert_int_equal(unlinkat(f->dir, CSN_STATE_KEEPER, 0), 0);
    }
    csn_keeper_record r;
    assert_int_equal(csn_keeper_record_read(f->dir, &r), -ENOENT);
}

/* A file that was unlinked is found again through a process that holds it. */
static void a_held_file_is_found_by_its_inode(void **state)
{
    const fixture *f = *state;
    char path[CSN_FD_PATH_SIZE];
    csn_process_id self;
    struct stat st, again;
    int fd = openat(f->dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(unlinkat(f->dir, "file", 0), 0);
    assert_int_equal(csn_pid_identify(getpid(), &self), 0);
    assert_int_equal(csn_pid_find_fd(&self, st.st_dev, st.st_ino, path), 0);
    assert_int_equal(stat(path, &again), 0);
    assert_int_equal(again.st_ino, st.st_ino);
    close(fd);
    assert_int_equal(csn_pid_find_fd(&self, st.st_dev, st.st_ino, path), -ENOENT);
    self.start++;
    assert_int_equal(csn_pid_find_fd(&self, st.st_dev, st.st_ino, path), -ENOENT);
}

static void a_stopped_process_is_recognised(void **state)
{
    const fixture *f = *state;
    siginfo_t si;

    assert_false(csn_pid_is_stopped(f->keeper));
    kill(f->keeper, SIGSTOP);
    assert_int_equal(waitid(P_PID, (id_t)f->keeper, &si, WSTOPPED), 0);
    assert_true(csn_pid_is_stopped(f->keeper));
    assert_false(csn_pid_is_stopped(-1));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_reads_as_it_was_written),
        TEST(the_process_decides_where_its_pid_is_known),
        TEST(the_lock_decides_in_other_pid_namespaces),
        TEST(the_lock_decides_while_a_sandbox_is_made),
        TEST(other_hosts_boots_and_versions_are_told_apart),
        TEST(damaged_records_are_empty),
        TEST(a_held_file_is_found_by_its_inode),
        TEST(a_stopped_process_is_recognised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
