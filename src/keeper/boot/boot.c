/* boot.c: receives the keeper's spec and confines the keeper if the spec orders it (confine.c).
 *
 * The spec is the first message. The library may start the keeper before the spec is complete;
 * a keeper that is pid 1 belongs to a jail, and runs the steps that every jail needs while it
 * waits. The keeper exits if the spec or its descriptors do not match spec.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "keeper/keeper.h"

static _Alignas(KP_PAGE) char spec_bytes[sizeof(csn_msg_head) + CSN_SPEC_MAX];

/* Watches the owner's pidfd too: a child that the owner forked may hold the connection open
 * after the owner has died. A message that the owner sent before its death is still served. A
 * stopped owner may continue, so there is no deadline, except for a detached keeper, which has
 * a listening socket in place of the owner's pidfd. */
int kp_await_message(void)
{
    struct stat st;
    bool owned = fstat(CSN_KEEPER_FD_OWNER, &st) == 0 && !S_ISSOCK(st.st_mode);
    struct pollfd pf[] = {{.fd = CSN_KEEPER_FD_CONTROL, .events = POLLIN},
                          {.fd = owned ? CSN_KEEPER_FD_OWNER : -1, .events = POLLIN}};
    uint64_t deadline = owned ? 0 : csn_deadline_in(CSN_KEEPER_SPEC_MS);

    while (pf[0].revents == 0) {
        int n = poll(pf, 2, csn_deadline_poll_ms(deadline));
        if (n == 0)
            return -ETIMEDOUT;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && pf[0].revents == 0)
            return -EOWNERDEAD;
    }
    return 0;
}

static int receive_spec(kp_keeper *k)
{
    csn_msg m;

    if (getpid() == 1)
        kp_confine_begin();
    int rc = kp_await_message();
    if (rc == 0)
        rc = csn_msg_recv(CSN_KEEPER_FD_CONTROL, spec_bytes, sizeof(spec_bytes), &m);
    if (rc <= 0)
        return rc < 0 ? rc : -EPIPE;
    if (csn_proto_decode(&m, CSN_MSG_SPEC, NULL) < 0)
        return -EPROTO;
    return csn_spec_get(m.body, m.len, kp_confine_mount_list(), &k->spec);
}

void kp_release_pages(void *start, void *end)
{
    uintptr_t from = ((uintptr_t)start + KP_PAGE - 1) / KP_PAGE * KP_PAGE;
    uintptr_t to = (uintptr_t)end / KP_PAGE * KP_PAGE;

    if (from < to) /* fails where pages are larger than KP_PAGE */
        (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

/* The spec's strings point into spec_bytes. Its pages are released only if no string (socket,
 * remove, groups, layers with id) is needed when the keeper ends. */
static void release_spec(kp_keeper *k)
{
    csn_keeper_spec *s = &k->spec;

    if (s->layers)
        return;
    s->id = "";
    if (!s->socket && !s->remove[0] && !s->groups[0])
        kp_release_pages(spec_bytes, spec_bytes + sizeof(spec_bytes));
}

/* Uses the system call because libc's sigaction() refuses its own signals (32 and 33). */
void kp_reset_signals(int first, int last)
{
    unsigned long dfl[8] = {0}; /* the kernel's struct with SIG_DFL */

    for (int i = first; i <= last; i++)
        (void)syscall(SYS_rt_sigaction, i, dfl, NULL, 8ul);
}

int kp_boot(kp_keeper *k)
{
    /* With an ignored SIGCHLD the keeper could not wait for its helper processes. */
    kp_reset_signals(SIGCHLD, SIGCHLD);
    for (int fd = CSN_KEEPER_FD_CONTROL; fd <= CSN_KEEPER_FD_OWNER; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return -errno;
    int rc = receive_spec(k);
    if (rc < 0 || (k->spec.flags & CSN_SPEC_SWEEP))
        return rc;
    rc = kp_confine(k);
    if (rc == 0)
        release_spec(k);
    return rc;
}
