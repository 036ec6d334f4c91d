/* os_unix_sockets.c: which sockets are listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/unix_sockets.h"

typedef struct search {
    const char *want;
    int times, calls;
    bool stop;
    csn_unix_socket last;
} search;

static int look(void *ctx, const csn_unix_socket *name)
{
    search *s = ctx;

    s->calls++;
    if (strcmp(name->path, s->want) == 0) {
        s->times++;
        s->last = *name;
    }
    return s->stop;
}

static int times(const char *path)
{
    search s = {.want = path};

    assert_int_equal(csn_unix_sockets_each(look, &s), 0);
    return s.times;
}

static int bound(int type, const char *path, struct sockaddr_un *ret)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof(ret->sun_path));
    memcpy(ret->sun_path, path, strlen(path) + 1);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)ret, sizeof(*ret)), 0);
    return fd;
}

static void listener_is_listed_once_without_its_connections(void **state)
{
    char dir[] = "/tmp/csn-XXXXXX", path[64];
    struct sockaddr_un at;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a b.sock", dir);
    assert_int_equal(times(path), 0);
    int fd = bound(SOCK_STREAM, path, &at), peer = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(times(path), 1); /* it may listen any moment */
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&at, sizeof(at)), 0);
    int accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
    assert_int_equal(times(path), 1); /* not the accepted one, which has the same name */
    close(fd);
    close(peer);
    close(accepted);
    assert_int_equal(times(path), 0);
    unlink(path);
    rmdir(dir);
}

static void datagram_sockets_and_relative_names_are_listed(void **state)
{
    char dir[] = "/tmp/csn-XXXXXX", old[4096], name[64];
    struct sockaddr_un at;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_non_null(getcwd(old, sizeof(old)));
    assert_int_equal(chdir(dir), 0);
    snprintf(name, sizeof(name), "relative-%d", (int)getpid());
    int fd = bound(SOCK_DGRAM, name, &at);
    assert_int_equal(times(name), 1);
    search s = {.want = name, .stop = true};
    assert_int_equal(csn_unix_sockets_each(look, &s), 0);
    assert_int_equal(s.calls, 1);
    close(fd);
    unlink(name);
    assert_int_equal(chdir(old), 0);
    rmdir(dir);
}

static void inode_is_listed_after_a_rename(void **state)
{
    char dir[] = "/tmp/csn-XXXXXX", path[64], moved[64];
    struct sockaddr_un at;
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/first", dir);
    snprintf(moved, sizeof(moved), "%s/second", dir);
    int fd = bound(SOCK_STREAM, path, &at);
    assert_int_equal(rename(path, moved), 0);
    search s = {.want = path};
    assert_int_equal(csn_unix_sockets_each(look, &s), 0);
    assert_int_equal(s.times, 1);
    assert_int_equal(stat(moved, &st), 0);
    if (!s.last.known)
        print_message("skipped: this kernel does not tell by netlink\n");
    else
        assert_int_equal(s.last.ino, (uint32_t)st.st_ino);
    close(fd);
    unlink(moved);
    rmdir(dir);
}

static void abstract_and_unnamed_sockets_are_skipped(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int pair[2], fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "csn-test-%d", (int)getpid());
    assert_int_equal(
        bind(fd, (struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
        0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(times(""), 0);
    assert_int_equal(times(at.sun_path + 1), 0);
    close(fd);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listener_is_listed_once_without_its_connections),
        cmocka_unit_test(datagram_sockets_and_relative_names_are_listed),
        cmocka_unit_test(inode_is_listed_after_a_rename),
        cmocka_unit_test(abstract_and_unnamed_sockets_are_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
