/* landlock.h: restricts which files a process can reach.
 *
 * Landlock supports the mounts of a jail; without namespaces it is the main confinement. A rule
 * grants rights below a directory or on one file; everything else is refused. Descriptors that
 * are already open keep their rights.
 *
 * Landlock does not mediate stat, chdir, readlink, O_PATH, chmod, chown, utimes, xattrs and
 * flock; connecting to named unix sockets; and, with no_tcp, UDP, MPTCP, listen() on an
 * ephemeral port and sendto(MSG_FASTOPEN). Other layers must mediate these. Under a ruleset
 * mount(2) and its family fail with EPERM, so that a sandbox inside cannot use mounts, unless
 * the ruleset leaves files alone (no_fs). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The ABI version that introduced a right. An older kernel: */
#define CSN_LL_ABI_REFER    2 /* refuses all moves and links between directories */
#define CSN_LL_ABI_TRUNCATE 3 /* allows truncate(2) on every file the user may write */
#define CSN_LL_ABI_NET      4 /* ignores no_tcp */
#define CSN_LL_ABI_IOCTL    5 /* allows ioctl on every device that may be opened */
#define CSN_LL_ABI_SCOPE    6 /* ignores scope */

/* Access to a path and everything below it. */
#define CSN_LL_READ 1u /* read files, list directories */
#define CSN_LL_EXEC 2u /* execve, with READ; `sh FILE` and `ld.so FILE` need only READ */
/* Write and truncate; create, remove, rename and link everything but device nodes. A move to a
 * directory with more rights (WRITE to WRITE | EXEC) is EXDEV, which mv answers with a copy. */
#define CSN_LL_WRITE  4u
#define CSN_LL_DEVICE 8u  /* devices: read, write, ioctl, list */
#define CSN_LL_LIST   16u /* list directories, read no file */

typedef struct csn_landlock_rule {
    const char *path; /* links are followed; use fd for what an agent can change */
    int fd;           /* used when path is NULL; may be O_PATH; not closed */
    uint32_t access;  /* CSN_LL_* */
    bool optional;    /* a missing path is no error */
} csn_landlock_rule;

typedef struct csn_landlock_spec {
    const csn_landlock_rule *rules;
    size_t count;
    bool no_tcp; /* refuse bind and connect of TCP sockets; ABI 4 */
    bool no_fs;  /* leave files alone, so that mounts work; needs `scope` and ABI 6 */
    bool scope;  /* refuse signals and abstract unix sockets to processes outside; ABI 6 */
} csn_landlock_spec;

/* Returns the kernel's ABI version, or 0 without Landlock. */
int csn_landlock_abi(void);

/* Enforces the rules on the calling thread and its children, for good; sets no_new_privs. Each
 * call adds a layer (16 at most). Paths are opened now, so mounts must be in place: a rule does
 * not hold on what is mounted over its directory later. A kernel that knows less enforces less:
 * see CSN_LL_ABI_*. Returns 0, or -errno with nothing enforced: -EOPNOTSUPP without Landlock,
 * -EINVAL for a rule with no or unknown access, -ENOENT for a missing path. */
int csn_landlock_install(const csn_landlock_spec *spec);

/* Builds a ruleset that can be entered later, any number of times. Returns a descriptor, or
 * -errno; *ret_abi is set in both cases. Entering sets no_new_privs and may be done between
 * clone and exec. */
int csn_landlock_prepare(const csn_landlock_spec *spec, int *ret_abi);
int csn_landlock_enter(int ruleset);

/* For tests: as csn_landlock_install on a kernel of that ABI. */
int csn_landlock_install_abi(const csn_landlock_spec *spec, int abi);
