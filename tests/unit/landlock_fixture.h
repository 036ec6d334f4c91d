/* landlock_fixture.h: runs a body under a Landlock ruleset, in a small tree.
 *
 *   TOP/in/file  TOP/in/sub/  TOP/in/out -> ../out/file  TOP/two/  TOP/out/file
 *
 * The body runs in a forked child in TOP, where the ruleset has been installed. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "child.h"
#include "corpus.h"
#include "os/landlock.h"

#define DEADLINE_MS 60000
#define READ        CSN_LL_READ
#define EXEC        CSN_LL_EXEC
#define WRITE       CSN_LL_WRITE
#define DEVICE      CSN_LL_DEVICE

/* A failed check ends the child; its message goes to stderr, which stays open. */
#define CHECK(got, want) check(__LINE__, #got, (got), (want))
#define NEED_ABI(n)                                                                            \
    (void)state;                                                                               \
    if (csn_landlock_abi() < (n))                                                              \
    SKIP("the kernel's Landlock is too old, or switched off")

static char top[64];
static int top_fd;
__attribute__((unused)) static int child_abi; /* in effect, in the child that runs */

typedef struct restricted {
    csn_landlock_spec spec;
    int abi; /* 0: the kernel's own */
    void (*body)(void);
} restricted;

static void check(int line, const char *what, int got, int want)
{
    if (got == want)
        return;
    dprintf(2, "# line %d: %s is %d (%s), not %d\n", line, what, got,
            got < 0 ? strerrordesc_np(-got) : "", want);
    _exit(1);
}

static int result(int rc)
{
    return rc < 0 ? -errno : 0;
}

/* --- one operation each: 0 or -errno --- */

__attribute__((unused)) static int opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* TIOCGWINSZ is nothing that /dev/null knows: asked, it says ENOTTY; refused, EACCES. */
__attribute__((unused)) static int asks_device(void)
{
    struct winsize ws;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int rc = fd < 0 ? -errno : result(ioctl(fd, TIOCGWINSZ, &ws));

    if (fd >= 0)
        close(fd);
    return rc;
}

/* --- running a body under a ruleset --- */

static int restricted_main(void *ctx)
{
    const restricted *w = ctx;

    child_abi = w->abi ? w->abi : csn_landlock_abi();
    CHECK(chdir(top), 0);
    CHECK(csn_landlock_install_abi(&w->spec, child_abi), 0);
    w->body();
    _exit(0); /* leak checkers need /proc, which is not granted */
}

__attribute__((unused)) static void run_restricted(restricted w)
{
    csn_child_end end = csn_child_run(restricted_main, &w, -1, DEADLINE_MS);

    assert_false(end.hung);
    assert_int_equal(end.exit_code, 0);
}

__attribute__((unused)) static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "%s", "/tmp/csn-landlock-XXXXXX");
    must(mkdtemp(top) != NULL, "mkdtemp");
    top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(top_fd >= 0, top);
    put_dir(top_fd, "in");
    put_dir(top_fd, "in/sub");
    put_dir(top_fd, "two");
    put_dir(top_fd, "out");
    put_file(top_fd, "in/file", "inside\n");
    put_file(top_fd, "out/file", CANARY);
    put_link(top_fd, "../out/file", "in/out");
    return 0;
}

__attribute__((unused)) static int teardown(void **state)
{
    (void)state;
    must(csn_tree_empty(top_fd) == 0, "empty");
    close(top_fd);
    must(rmdir(top) == 0, top);
    return 0;
}
