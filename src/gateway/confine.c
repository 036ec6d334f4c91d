/* confine.c: drops the gateway's privileges after set-up.
 *
 * Runs once, after the host's ports are bound and before the first untrusted byte is read. If
 * untrusted input compromises the gateway, the attacker has no capabilities, can read only the
 * files that a resolver needs, cannot write any file, and can still open connections. */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"
#include "os/caps.h"
#include "os/landlock.h"

#define FDS_PER_FLOW (2u + GW_DIAL_PARALLEL_MAX)
#define FDS_SPARE    256u

/* Best effort: a lower limit only reduces the number of concurrent flows. */
static void raise_fd_limit(size_t flows_max)
{
    struct rlimit lim;
    rlim_t want = flows_max * FDS_PER_FLOW + FDS_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= want)
        return;
    lim.rlim_cur = want < lim.rlim_max ? want : lim.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &lim);
    if (geteuid() == 0 && want > lim.rlim_max) {
        lim.rlim_cur = lim.rlim_max = want;
        (void)setrlimit(RLIMIT_NOFILE, &lim);
    }
}

static int switch_user(uid_t uid, gid_t gid)
{
    if (uid == 0 || geteuid() == uid)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return -errno;
    return 0;
}

/* The directory that /etc/resolv.conf points into. The link's target is often a file that a
 * network manager replaces, so the directory is allowed instead of the file. */
static char *resolver_directory(void)
{
    char *path = realpath("/etc/resolv.conf", NULL);
    char *slash = path ? strrchr(path, '/') : NULL;

    if (!slash || slash == path) {
        free(path);
        return NULL;
    }
    *slash = '\0';
    return path;
}

/* Allows what getaddrinfo reads: configuration, NSS modules, sockets of caching daemons.
 * Without Landlock in the kernel, only file permissions restrict access. */
static void restrict_files(void)
{
    csn_autofree char *resolver = resolver_directory();
    const csn_landlock_rule rules[] = {
        {.path = "/etc", .access = CSN_LL_READ, .optional = true},
        {.path = "/usr", .access = CSN_LL_READ, .optional = true},
        {.path = "/lib", .access = CSN_LL_READ, .optional = true},
        {.path = "/lib64", .access = CSN_LL_READ, .optional = true},
        {.path = "/nix/store", .access = CSN_LL_READ, .optional = true},
        {.path = "/run/systemd/resolve", .access = CSN_LL_READ, .optional = true},
        {.path = "/run/nscd", .access = CSN_LL_READ, .optional = true},
        {.path = "/var/lib/sss", .access = CSN_LL_READ, .optional = true},
        {.path = resolver ? resolver : "/etc", .access = CSN_LL_READ, .optional = true},
    };
    csn_landlock_spec spec = {
        .rules = rules, .count = sizeof(rules) / sizeof(rules[0]), .scope = true};

    (void)csn_landlock_install(&spec);
}

int gw_confine(uint32_t uid, uint32_t gid, size_t flows_max)
{
    raise_fd_limit(flows_max);
    int rc = switch_user(uid, gid);
    if (rc < 0)
        return rc;
    rc = csn_caps_drop();
    if (rc == 0)
        rc = csn_keyring_join_new();
    if (rc < 0)
        return rc;
    if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
        return -errno;
    restrict_files();
    return 0;
}
