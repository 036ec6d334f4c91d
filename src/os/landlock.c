/* landlock.c: builds a Landlock ruleset and enforces it.
 *
 * The keeper of a jail enforces it after the mounts and before it drops its capabilities;
 * commands inherit it. An attacker controls the contents of the granted directories and runs
 * under the ruleset later; paths and rights come from the library.
 *
 * Invariants: every file right that the kernel knows is handled, so that a right that no rule
 * grants is refused; after an error nothing is enforced. No allocation, no lock, no kernel
 * header (the keeper is built with musl alone), and no descriptor leaks. */
#include "os/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* Own copies of <linux/landlock.h>; the numbers are the same on every processor. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#define CREATE_VERSION 1u
#define RULE_BENEATH   1

#define FS_EXECUTE     (1ull << 0)
#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_READ_DIR    (1ull << 3)
#define FS_REMOVE_DIR  (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR   (1ull << 6)
#define FS_MAKE_DIR    (1ull << 7)
#define FS_MAKE_REG    (1ull << 8)
#define FS_MAKE_SOCK   (1ull << 9)
#define FS_MAKE_FIFO   (1ull << 10)
#define FS_MAKE_BLOCK  (1ull << 11)
#define FS_MAKE_SYM    (1ull << 12)
#define FS_REFER       (1ull << 13)
#define FS_TRUNCATE    (1ull << 14)
#define FS_IOCTL_DEV   (1ull << 15)

#define NET_TCP   3ull /* bind, connect */
#define SCOPE_ALL 3ull /* abstract unix sockets, signals */

/* For a rule on a file, any other right is EINVAL. */
#define FILE_RIGHTS (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

/* ABI 4 and 6 added fields. Older kernels accept the longer struct if the rest is zero. */
struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct beneath_attr {
    uint64_t access;
    int32_t fd;
} __attribute__((packed));

_Static_assert(sizeof(struct ruleset_attr) == 24, "struct landlock_ruleset_attr");
_Static_assert(sizeof(struct beneath_attr) == 12, "struct landlock_path_beneath_attr");

static uint64_t known_rights(int abi)
{
    uint64_t all = FS_REFER - 1; /* the thirteen of ABI 1 */

    if (abi >= CSN_LL_ABI_REFER)
        all |= FS_REFER;
    if (abi >= CSN_LL_ABI_TRUNCATE)
        all |= FS_TRUNCATE;
    if (abi >= CSN_LL_ABI_IOCTL)
        all |= FS_IOCTL_DEV;
    return all;
}

/* No access includes FS_MAKE_CHAR and FS_MAKE_BLOCK. */
static uint64_t rights_of(uint32_t access)
{
    uint64_t rights = 0;

    if (access & CSN_LL_READ)
        rights |= FS_READ_FILE | FS_READ_DIR;
    if (access & CSN_LL_LIST)
        rights |= FS_READ_DIR;
    if (access & CSN_LL_EXEC)
        rights |= FS_EXECUTE;
    if (access & CSN_LL_WRITE)
        rights |= FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR |
                  FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER;
    if (access & CSN_LL_DEVICE)
        rights |= FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_IOCTL_DEV;
    return rights;
}

static int add_rights(int ruleset, int fd, uint64_t rights)
{
    struct beneath_attr a = {rights, fd};

    return syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &a, 0) < 0 ? -errno : 0;
}

/* Retrying with fewer rights is cheaper than an fstat to learn the type. */
static int add_fd(int ruleset, int fd, uint64_t rights)
{
    int rc = add_rights(ruleset, fd, rights);

    return rc == -EINVAL ? add_rights(ruleset, fd, rights & FILE_RIGHTS) : rc;
}

static int add_rule(int ruleset, const csn_landlock_rule *rule, int abi)
{
    const uint32_t all = CSN_LL_READ | CSN_LL_EXEC | CSN_LL_WRITE | CSN_LL_DEVICE | CSN_LL_LIST;
    uint64_t rights = rights_of(rule->access) & known_rights(abi);

    if (rule->access == 0 || rule->access & ~all)
        return -EINVAL;
    if (!rule->path)
        return add_fd(ruleset, rule->fd, rights);
    /* not open: musl's sets FD_CLOEXEC a second time */
    csn_autofd int fd = openat(AT_FDCWD, rule->path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        return add_fd(ruleset, fd, rights);
    return rule->optional && (errno == ENOENT || errno == ENOTDIR) ? 0 : -errno;
}

int csn_landlock_enter(int ruleset)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -errno;
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int csn_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

static int prepare(const csn_landlock_spec *spec, int abi)
{
    struct ruleset_attr a = {
        .fs = spec->no_fs ? 0 : known_rights(abi),
        .net = spec->no_tcp && abi >= CSN_LL_ABI_NET ? NET_TCP : 0,
        .scoped = spec->scope && abi >= CSN_LL_ABI_SCOPE ? SCOPE_ALL : 0,
    };

    if (abi <= 0)
        return -EOPNOTSUPP;
    csn_autofd int ruleset = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a), 0);
    if (ruleset < 0)
        return -errno;
    for (size_t i = 0; i < spec->count; i++) {
        int rc = add_rule(ruleset, &spec->rules[i], abi);
        if (rc < 0)
            return rc;
    }
    return csn_steal_fd(&ruleset);
}

int csn_landlock_install_abi(const csn_landlock_spec *spec, int abi)
{
    csn_autofd int ruleset = prepare(spec, abi);

    return ruleset < 0 ? ruleset : csn_landlock_enter(ruleset);
}

int csn_landlock_prepare(const csn_landlock_spec *spec, int *ret_abi)
{
    *ret_abi = csn_landlock_abi();
    return prepare(spec, *ret_abi);
}

int csn_landlock_install(const csn_landlock_spec *spec)
{
    return csn_landlock_install_abi(spec, csn_landlock_abi());
}
