/* landlock.h: the wall of a jail that says which files may be reached.
 *
 * It stands under the mounts, and where there are no namespaces it is the main wall. A rule
 * grants rights below a directory, or on one file; what no rule grants is refused. Descriptors
 * that are open already keep what they can do.
 *
 * What the kernel does not ask Landlock about, and other walls must hold: stat, chdir,
 * readlink, O_PATH, chmod, chown, utimes, xattrs and flock anywhere; connecting to a named unix
 * socket anywhere; with no_tcp UDP, MPTCP, listen() on a port of the kernel's choice, and
 * connecting by sendto(MSG_FASTOPEN). Behind this wall mount(2) and its family answer EPERM, so
 * nothing inside can build a sandbox with mounts of its own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From which version of Landlock on the kernel ... */
#define CSN_LL_ABI_REFER    2 /* lets files move between directories */
#define CSN_LL_ABI_TRUNCATE 3 /* sees truncate(2) */
#define CSN_LL_ABI_NET      4
#define CSN_LL_ABI_IOCTL    5
#define CSN_LL_ABI_SCOPE    6

/* What may be done at and below a path. */
#define CSN_LL_READ 1u /* read files, list directories */
#define CSN_LL_EXEC 2u /* execve, with READ; `sh FILE` and `ld.so FILE` need only READ */
/* All that changes: content and length; making, removing, renaming and linking of everything
 * but device nodes. A file moves to another directory only where that gives nobody more rights
 * on it: from WRITE to WRITE | EXEC is EXDEV, which mv answers with a copy. */
#define CSN_LL_WRITE  4u
#define CSN_LL_DEVICE 8u  /* a device, or a directory of them: read, write, ioctl, list */
#define CSN_LL_LIST   16u /* names in directories, no content */

typedef struct csn_landlock_rule {
    const char *path; /* links in it are followed; for what an agent can change, hold an fd */
    int fd;           /* used when path is NULL; O_PATH will do; stays the caller's */
    uint32_t access;  /* CSN_LL_* */
    bool optional;    /* a path that is not there grants nothing, instead of failing */
} csn_landlock_rule;

typedef struct csn_landlock_spec {
    const csn_landlock_rule *rules;
    size_t count;
    bool no_tcp; /* refuse bind and connect of TCP sockets; ABI 4 */
    bool scope;  /* no signals and no abstract unix sockets to who is not behind it; ABI 6 */
} csn_landlock_spec;

/* What holds: a kernel that knows less enforces less, and the caller decides whether that will
 * do. What was not asked for is false. */
typedef struct csn_landlock_report {
    int abi;         /* 0: no Landlock here */
    int failed_rule; /* the index of the rule that could not be added; -1: it was not a rule */
    size_t skipped;  /* optional rules whose path was missing */
    bool refer; /* ABI 2; false: moves and links between directories are refused everywhere */
    bool truncate; /* ABI 3; false: truncate(2) works on every file the user may write */
    bool ioctl;    /* ABI 5; false: ioctl works on every device that may be opened */
    bool net, scope;
} csn_landlock_report;

/* The kernel's version of Landlock, 0 when there is none, or none for us. */
int csn_landlock_abi(void);

/* Puts the calling thread, and all it starts from now on, behind the wall; sets no_new_privs.
 * Cannot be undone; a second call adds a second wall (16 at most). Paths are opened now, so
 * mounts must be in place: a rule on a directory that is covered later does not hold there.
 * 0, or -errno and no wall: -EOPNOTSUPP without Landlock, -EINVAL for a rule with no or unknown
 * rights, -ENOENT for a missing path. ret is filled in either way. */
int csn_landlock_install(const csn_landlock_spec *spec, csn_landlock_report *ret);

/* A wall that is built now and entered later, as often as wanted: a descriptor, or -errno.
 * Entering sets no_new_privs; may be done between clone and exec. */
int csn_landlock_prepare(const csn_landlock_spec *spec, csn_landlock_report *ret);
int csn_landlock_enter(int wall);

/* For tests: behave as on a kernel of that ABI. */
int csn_landlock_install_abi(const csn_landlock_spec *spec, int abi, csn_landlock_report *ret);
