/* caps.c: drops all capabilities for good.
 *
 * The keeper and the gateway call this when everything that needs a privilege is done. Their
 * capabilities belong to a user namespace of their own and are worth little outside, but give
 * access to much kernel code. Invariant: afterwards no set has a bit and no exec can regain
 * one: the bounding set is empty (where the caller may drop it), and no_new_privs and
 * securebits make set-id bits and file capabilities ineffective. */
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
/* NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, KEEP_CAPS off; all locked */
#define SECUREBITS          0xefl
#define KEYCTL_JOIN_SESSION 1

struct cap_header {
    uint32_t version;
    int pid;
};

struct cap_data {
    uint32_t effective, permitted, inheritable;
};

/* Without CAP_SETPCAP the bounding set stays; no_new_privs alone then prevents new
 * capabilities. */
static bool has_setpcap(void)
{
    struct cap_header head = {CAP_VERSION_3, 0};
    struct cap_data has[2] = {{0}, {0}};

    if (syscall(SYS_capget, &head, has) < 0)
        return true; /* csn_caps_drop then fails and reports the error */
    return (has[0].effective & (1u << CAP_SETPCAP)) != 0;
}

/* Distinguishes an unknown capability from an EINVAL that a seccomp filter returns. */
static bool is_unknown(unsigned long cap)
{
    return prctl(PR_CAPBSET_READ, cap, 0L, 0L, 0L) < 0 && errno == EINVAL;
}

static int drop_bounding_set(void)
{
    for (unsigned long i = 0; i < CAPS_MAX; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0L, 0L, 0L) < 0) {
            int error = errno;
            if (error == EINVAL && is_unknown(i))
                break;
            return -error;
        }
    return prctl(PR_SET_SECUREBITS, SECUREBITS, 0L, 0L, 0L) < 0 ? -errno : 0;
}

int csn_caps_drop(void)
{
    struct cap_header head = {CAP_VERSION_3, 0};
    const struct cap_data none[2] = {{0}, {0}};
    int rc = has_setpcap() ? drop_bounding_set() : 0;

    if (rc < 0)
        return rc;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -errno;
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int csn_keyring_join_new(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION, NULL, 0, 0, 0) < 0 && errno != ENOSYS
               ? -errno
               : 0;
}
