/* caps.c: the capabilities wall.
 *
 * Called by a keeper in a jail when all that needs a privilege is done. The capabilities are
 * those of the jail's own user namespace, so they are worth little outside; but they open much
 * of the kernel to whoever has them. What must hold: afterwards no set has a bit, nothing that
 * is executed can get one back (the bounding set is empty, where it could be emptied, and
 * set-id bits and file capabilities are ignored), and nothing here can be undone. */
#include "os/caps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP_VERSION_3 0x20080522u
#define CAPS_MAX      64ul
#define CAP_SETPCAP   8
/* NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off, NO_CAP_AMBIENT_RAISE, each with its lock */
#define SECURE_ALL   0xefl
#define JOIN_SESSION 1 /* KEYCTL_JOIN_SESSION_KEYRING */

/* Only who has CAP_SETPCAP may bound; who has not got any needs no bound: no_new_privs alone
 * then keeps it so. */
static bool may_bound(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {CAP_VERSION_3, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } has[2] = {{0}, {0}};

    if (syscall(SYS_capget, &head, has) < 0)
        return true; /* then what follows fails, and says so */
    return (has[0].effective & (1u << CAP_SETPCAP)) != 0;
}

/* The bounding set ends where the kernel knows no more: not where somebody only says so. */
static bool is_past_the_end(unsigned long cap)
{
    return prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) < 0 && errno == EINVAL;
}

static int bound(void)
{
    for (unsigned long i = 0; i < CAPS_MAX; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0L, 0L, 0L) < 0) {
            int error = errno;
            if (error == EINVAL && is_past_the_end(i))
                break;
            return -error;
        }
    return prctl(PR_SET_SECUREBITS, SECURE_ALL, 0L, 0L, 0L) < 0 ? -errno : 0;
}

int csn_caps_drop(void)
{
    struct {
        uint32_t version;
        int pid;
    } head = {CAP_VERSION_3, 0};
    struct {
        uint32_t effective, permitted, inheritable;
    } none[2] = {{0}, {0}};

    int rc = may_bound() ? bound() : 0;
    if (rc < 0)
        return rc;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -errno;
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* A kernel without keyrings has nothing to leave. */
int csn_keyring_leave(void)
{
    return syscall(SYS_keyctl, JOIN_SESSION, NULL, 0, 0, 0) < 0 && errno != ENOSYS ? -errno : 0;
}
