/* cow_place.c: directories, sandboxes and commands of bench_cow. Every call is checked. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cow.h"
#include "measure.h"

#define FILE_BYTES 10240
#define PER_DIR    100

extern char **environ;

cow_place cow;

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) < 0)
        bench_die("%s: %s", path, strerrordesc_np(errno));
}

/* ---- the host ---- */

void cow_run(const char *const *argv)
{
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0 ||
        waitpid(pid, &status, 0) < 0 || status != 0)
        bench_die("%s failed", argv[0]);
}

void cow_remove(const char *dir)
{
    const char *const rm[] = {"rm", "-rf", dir, NULL};

    cow_run(rm);
}

uint64_t cow_spawn_true(void)
{
    static const char *const argv[] = {"/bin/true", NULL};
    uint64_t began = bench_now_ns();

    cow_run(argv);
    return bench_now_ns() - began;
}

void cow_write_file(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        bench_die("%s: %s", path, strerrordesc_np(errno));
    close(fd);
}

void cow_make_tree(const char *dir, size_t files)
{
    static char data[FILE_BYTES];
    char path[400];

    memset(data, 'x', sizeof(data));
    data[sizeof(data) - 1] = '\n';
    make_dir(dir);
    for (size_t i = 0; i < files; i++) {
        snprintf(path, sizeof(path), "%s/d%zu", dir, i / PER_DIR);
        if (i % PER_DIR == 0)
            make_dir(path);
        snprintf(path, sizeof(path), "%s/d%zu/f%zu", dir, i / PER_DIR, i);
        cow_write_file(path, data, sizeof(data));
    }
}

void cow_place_make(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[300];

    snprintf(cow.top, sizeof(cow.top), "%.200s/caisson-bench-XXXXXX",
             tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(cow.top))
        bench_die("%s: %s", cow.top, strerrordesc_np(errno));
    snprintf(cow.tree, sizeof(cow.tree), "%s/tree", cow.top);
    snprintf(cow.direct, sizeof(cow.direct), "%s/direct", cow.top);
    snprintf(path, sizeof(path), "%s/state", cow.top);
    make_dir(path);
    if (setenv("XDG_STATE_HOME", path, 1) < 0 || setenv("XDG_RUNTIME_DIR", path, 1) < 0)
        bench_die("out of memory");
}

void cow_place_remove(void)
{
    cow_remove(cow.top);
}

/* ---- sandboxes ---- */

void cow_must(csn_status st, const char *what, csn_error *err)
{
    if (st < 0)
        bench_die("%s: %s", what, csn_error_message(err));
}

csn_sandbox *cow_open(const char *dir, uint32_t flags)
{
    csn_config c = {.size = sizeof(c), .workspace = dir, .flags = flags};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    cow_must(csn_open(&c, &sb, &err), "open", err);
    return sb;
}

csn_sandbox *cow_fork(csn_sandbox *source)
{
    csn_sandbox *other = NULL;
    csn_error *err = NULL;

    cow_must(csn_fork(source, NULL, &other, &err), "fork", err);
    return other;
}

uint64_t cow_sh(csn_sandbox *sb, const char *command)
{
    csn_exec_result *r = NULL;
    csn_error *err = NULL;
    uint64_t began = bench_now_ns();

    cow_must(csn_sh(sb, command, NULL, &r, &err), command, err);
    uint64_t took = bench_now_ns() - began;
    if (r->exit_code != 0)
        bench_die("%s: exit code %d: %.*s", command, r->exit_code, (int)r->err.len,
                  r->err.data);
    csn_exec_result_free(r);
    return took;
}
