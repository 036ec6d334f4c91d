/* guard.c: starts the process that decides about attributes of files.
 *
 * It is a child of the keeper, with the keeper's Landlock rules and without capabilities, and
 * ends when no process has the filter. Commands can neither signal nor trace it: Landlock
 * confines them further. Invariant: it holds no descriptor of the keeper but the link. */
#include "keeper/boot/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/landlock.h"
#include "os/msg.h"
#include "os/owner_guard.h"
#include "os/seccomp.h"

#define MSG_LISTENER 1u /* the only message; its descriptor is the seccomp listener */
#define LINK_FD      0

static int receive_listener(void)
{
    uint8_t buf[64];
    csn_msg m;
    int rc;

    do
        rc = csn_msg_recv(LINK_FD, buf, sizeof(buf), &m);
    while (rc == -EAGAIN || rc == -EINTR);
    if (rc <= 0)
        return rc < 0 ? rc : -EPIPE;
    rc = m.type == MSG_LISTENER && m.nfds == 1 ? csn_msg_take_fd(&m, 0) : -EPROTO;
    csn_msg_release(&m);
    return rc;
}

/* The path that the kernel reports for this one, without links; NULL: it does not exist. */
static const char *resolve(const char *path)
{
    csn_autofd int fd = open(path, O_PATH | O_CLOEXEC);
    char link[48], text[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = fd < 0 ? -1 : readlink(link, text, sizeof(text) - 1);
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    return strdup(text);
}

static int run(int link, const csn_rootfs *m)
{
    static const char *roots[CSN_MOUNTS_MAX];
    size_t count = 0;

    (void)prctl(PR_SET_NAME, "caisson-guard", 0L, 0L, 0L);
    if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0 || dup3(link, LINK_FD, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, LINK_FD + 1u, ~0u, 0u) < 0)
        return -errno;
    for (size_t i = 0; i < m->count; i++)
        if ((m->list[i].access & CSN_LL_WRITE) && !(m->list[i].flags & CSN_MOUNT_KEEPER)) {
            const char *root = resolve(m->list[i].to);
            if (root)
                roots[count++] = root;
        }
    int rc = csn_seccomp_install(CSN_SECCOMP_NO_SOCKETS); /* paths are opened with openat2 */
    int listener = rc < 0 ? rc : receive_listener();
    return listener < 0 ? listener : csn_owner_guard_serve(listener, roots, count);
}

int kp_guard_begin(const csn_rootfs *m)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run(pair[1], m) < 0 ? 1 : 0);
    int e = errno;
    close(pair[1]);
    if (pid > 0)
        return pair[0];
    close(pair[0]);
    return -e;
}

int kp_guard_finish(int link)
{
    csn_autofd int listener = csn_owner_guard_install();
    int rc =
        listener < 0 ? listener : csn_msg_send(link, MSG_LISTENER, NULL, 0, &listener, 1, 1);

    close(link);
    return rc;
}
