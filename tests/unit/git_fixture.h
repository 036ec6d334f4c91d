/* git_fixture.h: a directory of its own for a test, and the real git in it. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "os/tree.h"

/* cmocka's own skip is "not ok" in TAP. git is there or it is not, for every user alike. */
#define SKIP_WITHOUT_GIT()                                                                     \
    do {                                                                                       \
        if (!git_is_there()) {                                                                 \
            print_message("# SKIP %s: there is no git\n", __func__);                           \
            if (getenv("CSN_MUST_WORK"))                                                       \
                fail();                                                                        \
            return;                                                                            \
        }                                                                                      \
    } while (0)

typedef struct git_fixture {
    char top[64]; /* real: git writes absolute paths */
    int fd;
} git_fixture;

__attribute__((unused)) static void git_room_make(git_fixture *r)
{
    snprintf(r->top, sizeof(r->top), "/tmp/csn-git-XXXXXX");
    assert_non_null(mkdtemp(r->top));
    r->fd = open(r->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(r->fd >= 0);
}

__attribute__((unused)) static void git_room_wipe(git_fixture *r)
{
    assert_int_equal(csn_tree_empty(r->fd), 0);
    close(r->fd);
    assert_int_equal(rmdir(r->top), 0);
}

__attribute__((unused)) static void room_mkdir(const git_fixture *r, const char *path)
{
    char part[PATH_MAX];

    for (const char *p = path; p; p = strchr(p + 1, '/')) {
        const char *end = strchr(p + 1, '/');
        snprintf(part, sizeof(part), "%.*s", (int)(end ? end - path : (long)strlen(path)),
                 path);
        if (mkdirat(r->fd, part, 0755) < 0 && errno != EEXIST)
            fail_msg("mkdir %s: %d", part, errno);
    }
}

__attribute__((unused)) static void room_put_bytes(const git_fixture *r, const char *path,
                                                   const void *data, size_t len)
{
    int fd = openat(r->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        fail_msg("write %s: %d", path, errno);
    close(fd);
}

__attribute__((unused)) static void room_put(const git_fixture *r, const char *path,
                                             const char *text)
{
    room_put_bytes(r, path, text, strlen(text));
}

/* malloc'd, with a NUL after it. */
__attribute__((unused)) static char *room_get(int dir, const char *path, size_t *ret_len)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t room = 1 << 20;
    char *data = malloc(room);
    ssize_t n = fd < 0 || !data ? -1 : read(fd, data, room - 1);

    if (n < 0)
        fail_msg("read %s: %d", path, errno);
    close(fd);
    data[n] = '\0';
    *ret_len = (size_t)n;
    return data;
}

__attribute__((unused)) static char **git_environment(const git_fixture *r)
{
    static char home[80];
    static char *env[] = {home,
                          "GIT_CONFIG_NOSYSTEM=1",
                          "GIT_AUTHOR_NAME=a",
                          "GIT_AUTHOR_EMAIL=a@b",
                          "GIT_COMMITTER_NAME=a",
                          "GIT_COMMITTER_EMAIL=a@b",
                          "GIT_EDITOR=true",
                          "PATH=/usr/local/bin:/usr/bin:/bin",
                          NULL};
    snprintf(home, sizeof(home), "HOME=%s", r->top);
    return env;
}

/* git in a directory of the room; its exit code, or 127. args: separated by one space. */
__attribute__((unused)) static int git_try(const git_fixture *r, const char *dir,
                                           const char *args)
{
    char line[512], where[200], *save = NULL;
    char *argv[40] = {"git", "-C", where, "-c", "protocol.file.allow=always", NULL};
    posix_spawn_file_actions_t quiet;
    size_t n = 5;
    int ws = 0;
    pid_t pid;

    snprintf(where, sizeof(where), "%s/%s", r->top, dir);
    snprintf(line, sizeof(line), "%s", args);
    for (char *w = strtok_r(line, " ", &save); w && n < 39; w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&pid, "git", &quiet, NULL, argv, git_environment(r));
    posix_spawn_file_actions_destroy(&quiet);
    if (rc != 0 || waitpid(pid, &ws, 0) != pid)
        return 127;
    return WIFEXITED(ws) ? WEXITSTATUS(ws) : 127;
}

__attribute__((unused)) static void git(const git_fixture *r, const char *dir, const char *args)
{
    if (git_try(r, dir, args) != 0)
        fail_msg("git %s in %s failed", args, dir);
}

__attribute__((unused)) static bool git_is_there(void)
{
    git_fixture here = {.top = "/tmp"};

    return git_try(&here, ".", "version") == 0;
}

/* main/ with a submodule, a worktree, a sparse checkout, a remote; clone/ and bare.git of it.
 */
__attribute__((unused)) static void git_make_everything(const git_fixture *r)
{
    git(r, ".", "init -q lib");
    git(r, "lib", "commit -q --allow-empty -m x");
    git(r, ".", "init -q main");
    room_put(r, "main/file", "text\n");
    room_mkdir(r, "main/dir");
    room_put(r, "main/dir/other", "text\n");
    git(r, "main", "add file dir/other");
    git(r, "main", "commit -q -m x");
    git(r, "main", "remote add up https://example.org/x.git");
    git(r, "main", "remote add ssh git@example.org:x.git");
    git(r, "main", "submodule --quiet add ../lib libs/s");
    git(r, "main", "commit -q -m sub");
    git(r, "main", "worktree add -q ../tree");
    git(r, "main", "config user.name somebody");
    git(r, ".", "clone -q main clone");
    git(r, "clone", "submodule --quiet update --init");
    git(r, ".", "clone -q --bare main bare.git");
    git(r, ".", "clone -q --filter=blob:none --no-checkout main partial");
    git(r, "clone", "checkout -q -b topic");
    git(r, "clone", "push -q -u origin topic");
    git(r, "clone", "sparse-checkout set dir");
}
