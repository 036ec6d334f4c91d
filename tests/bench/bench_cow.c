/* bench_cow.c: what snapshots, rollbacks and forks of a copy-on-write workspace cost.
 *
 * The peer of a fork is `cp -a` of the same tree, to tmpfs if there is one; that of an open is
 * the open of a jail on the plain directory. Sizes show that no call depends on the number of
 * files. Every timed call is checked. */
#include <caisson/caisson.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

#define FILE_BYTES 10240
#define PER_DIR    100

extern char **environ;

static char top[256], tree[300], copy_to[300];
static csn_sandbox *source;

static void must(csn_status st, const char *what, csn_error *err)
{
    if (st < 0)
        bench_die("%s: %s", what, csn_error_message(err));
}

static void run(const char *const *argv)
{
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
        waitpid(pid, &status, 0) < 0 || status != 0)
        bench_die("%s failed", argv[0]);
}

static void make_tree(size_t files)
{
    static char data[FILE_BYTES];
    char path[400];

    memset(data, 'x', sizeof(data));
    for (size_t i = 0; i < files; i++) {
        snprintf(path, sizeof(path), "%s/d%zu", tree, i / PER_DIR);
        if (i % PER_DIR == 0 && mkdir(path, 0755) < 0)
            bench_die("%s: %s", path, strerrordesc_np(errno));
        snprintf(path, sizeof(path), "%s/d%zu/f%zu", tree, i / PER_DIR, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, data, sizeof(data)) != (ssize_t)sizeof(data))
            bench_die("%s: %s", path, strerrordesc_np(errno));
        close(fd);
    }
}

static csn_sandbox *open_one(uint32_t flags)
{
    csn_config c = {.size = sizeof(c), .workspace = tree, .flags = flags};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    must(csn_open(&c, &sb, &err), "open", err);
    return sb;
}

static void change_one(csn_sandbox *sb)
{
    static unsigned n;
    csn_write_result *r = NULL;
    csn_error *err = NULL;
    char text[32];

    int len = snprintf(text, sizeof(text), "%u\n", n++);
    must(csn_write(sb, "d0/f0", text, (size_t)len, NULL, &r, &err), "write", err);
    csn_write_result_free(r);
}

/* ---- contestants ---- */

static uint64_t spawn_true(void)
{
    static const char *const argv[] = {"/bin/true", NULL};
    uint64_t began = bench_now_ns();

    run(argv);
    return bench_now_ns() - began;
}

static uint64_t timed_open(uint32_t flags)
{
    uint64_t began = bench_now_ns();
    csn_sandbox *sb = open_one(flags);
    uint64_t took = bench_now_ns() - began;

    csn_close(sb);
    return took;
}

static uint64_t open_plain(void)
{
    return timed_open(0);
}

static uint64_t open_cow(void)
{
    return timed_open(CSN_OPEN_COW);
}

static uint64_t fork_it(void)
{
    csn_sandbox *other = NULL;
    csn_error *err = NULL;
    uint64_t began = bench_now_ns();

    must(csn_fork(source, NULL, &other, &err), "fork", err);
    uint64_t took = bench_now_ns() - began;
    csn_close(other);
    return took;
}

static uint64_t snapshot_it(void)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    change_one(source);
    uint64_t began = bench_now_ns();
    must(csn_snapshot_as(source, NULL, &r, &err), "snapshot", err);
    uint64_t took = bench_now_ns() - began;
    csn_snapshot_result_free(r);
    must(csn_discard(source, &err), "discard", err);
    return took;
}

static uint64_t rollback_it(void)
{
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    change_one(source);
    must(csn_snapshot_as(source, "here", &r, &err), "snapshot", err);
    csn_snapshot_result_free(r);
    change_one(source);
    uint64_t began = bench_now_ns();
    must(csn_rollback(source, "here", &err), "rollback", err);
    uint64_t took = bench_now_ns() - began;
    must(csn_discard(source, &err), "discard", err);
    return took;
}

static uint64_t copy_it(void)
{
    const char *const cp[] = {"cp", "-a", tree, copy_to, NULL};
    const char *const rm[] = {"rm", "-rf", copy_to, NULL};
    uint64_t began = bench_now_ns();

    run(cp);
    uint64_t took = bench_now_ns() - began;
    run(rm);
    return took;
}

enum { SPAWN, PLAIN, COW, FORK, SNAPSHOT, ROLLBACK, COPY };

static void measure(size_t files, size_t rounds)
{
    bench_contestant list[] = {
        [SPAWN] = {.name = "posix_spawn", .run = spawn_true, .wanted = true},
        [PLAIN] = {.name = "open a jail", .run = open_plain, .wanted = true},
        [COW] = {.name = "open a jail with --cow", .run = open_cow, .wanted = true},
        [FORK] = {.name = "fork", .run = fork_it, .wanted = true},
        [SNAPSHOT] = {.name = "snapshot", .run = snapshot_it, .wanted = true},
        [ROLLBACK] = {.name = "rollback", .run = rollback_it, .wanted = true},
        [COPY] = {.name = "cp -a", .run = copy_it, .wanted = files <= 10000},
    };
    bench_contest c = {.list = list,
                       .count = sizeof(list) / sizeof(list[0]),
                       .reference = SPAWN,
                       .rounds = rounds,
                       .runs = 3};
    const char *const rm[] = {"rm", "-rf", tree, NULL};

    printf("\n%zu files of %d bytes\n", files, FILE_BYTES);
    if (mkdir(tree, 0755) < 0)
        bench_die("%s: %s", tree, strerrordesc_np(errno));
    make_tree(files);
    source = open_one(CSN_OPEN_COW);
    bench_contest_run(&c);
    (void)bench_difference(&c, "fork over opening a jail, us", FORK, PLAIN, 1000, 0);
    if (files == 10000)
        (void)bench_ratio(&c, "fork / cp -a", FORK, COPY, 1.0 / 500, 1.0 / 2000);
    (void)bench_verdict("rollback", list[ROLLBACK].median[0], "us", 1800, 0);
    csn_close(source);
    run(rm);
}

int main(void)
{
    const char *shm = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    snprintf(top, sizeof(top), "/tmp/caisson-bench-XXXXXX");
    if (!mkdtemp(top))
        bench_die("%s: %s", top, strerrordesc_np(errno));
    snprintf(tree, sizeof(tree), "%s/tree", top);
    snprintf(copy_to, sizeof(copy_to), "%s/caisson-bench-copy-%ld", shm, (long)getpid());
    measure(1000, 50);
    measure(10000, 20);
    measure(100000, 50);
    return rmdir(top) < 0;
}
