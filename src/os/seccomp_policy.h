/* seccomp_policy.h: the table of system calls that a jail refuses.
 *
 * Included by tools/gen-seccomp.c and the tests only. A call without a row is allowed, unless
 * it is unassigned or newer than CSN_SECCOMP_NEWEST: those answer ENOSYS, so that a call of a
 * new kernel stays refused until it is reviewed. The rows hold for every ABI of the host
 * (x86_64 and i386, or aarch64 and arm); x32 and any other ABI answer ENOSYS.
 *
 * A row is a call, the errno it gets, the variants that have the row, and conditions on
 * arguments. The first row of a call whose conditions are true decides; if there is none the
 * call is allowed. Conditions see the low 32 bits of an argument: the kernel ignores the rest
 * of every argument named here, and garbage there would bypass a 64-bit comparison (TIOCSTI).
 * Pointers cannot be followed, so a call with flags behind a pointer is refused.
 *
 * EPERM means not permitted. ENOSYS and the "not supported" errors are for calls whose users
 * have a fallback. No process is killed. */
#pragma once
#include <errno.h>
#include <stdint.h>

/* The newest call that was reviewed for this table (Linux 6.18: file_setattr). */
#define CSN_SECCOMP_NEWEST 469

#define CSN_SECCOMP_CONDS  2
#define CSN_SECCOMP_VALUES 6

enum { CSN_COND_NONE, CSN_COND_IN, CSN_COND_NOT_IN };

/* (low half of argument `arg` & mask) is, or is not, one of the values. */
typedef struct csn_seccomp_cond {
    uint8_t op, arg, count;
    uint32_t mask;
    uint32_t values[CSN_SECCOMP_VALUES];
} csn_seccomp_cond;

/* The variants that have a row. */
enum {
    CSN_RULE_ALL,
    CSN_RULE_NO_USERNS,  /* those without CSN_SECCOMP_USERNS */
    CSN_RULE_NOSUID,     /* those with CSN_SECCOMP_NOSUID */
    CSN_RULE_NO_SOCKETS, /* those with CSN_SECCOMP_NO_SOCKETS */
    CSN_RULE_ONE_ID,     /* those without CSN_SECCOMP_USERNS and CSN_SECCOMP_NO_SOCKETS */
};

typedef struct csn_seccomp_rule {
    const char *call;
    uint16_t error;
    uint8_t variants; /* CSN_RULE_* */
    const char *why;
    csn_seccomp_cond conds[CSN_SECCOMP_CONDS]; /* all must be true; none: always */
} csn_seccomp_rule;

/* clang-format off */
#define CSN_COND(how, n, bits, ...)                                    \
    {.op = (how), .arg = (n), .mask = (bits), .values = {__VA_ARGS__}, \
     .count = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)}
#define IS(n, ...)          CSN_COND(CSN_COND_IN, n, UINT32_MAX, __VA_ARGS__)
#define IS_NOT(n, ...)      CSN_COND(CSN_COND_NOT_IN, n, UINT32_MAX, __VA_ARGS__)
#define BITS_ARE(n, m, ...) CSN_COND(CSN_COND_IN, n, m, __VA_ARGS__)
#define BITS_NOT(n, m, ...) CSN_COND(CSN_COND_NOT_IN, n, m, __VA_ARGS__)
#define HAS_ANY(n, m)       CSN_COND(CSN_COND_NOT_IN, n, m, 0)

#define DENY(call, e, why)              {call, e, CSN_RULE_ALL, why, {{0}}}
#define DENY_IF(call, e, why, ...)      {call, e, CSN_RULE_ALL, why, {__VA_ARGS__}}
#define NO_USERNS(call, e, why)         {call, e, CSN_RULE_NO_USERNS, why, {{0}}}
#define NO_USERNS_IF(call, e, why, ...) {call, e, CSN_RULE_NO_USERNS, why, {__VA_ARGS__}}
#define NOSUID(call, e, why, ...)       {call, e, CSN_RULE_NOSUID, why, {__VA_ARGS__}}
#define NO_SOCKETS(call, e, why, ...)   {call, e, CSN_RULE_NO_SOCKETS, why, {__VA_ARGS__}}

/* Calls with the arguments of chown, fchownat, setuid, setreuid and setresuid. Those of setuid
 * end the rows of the others, so that the compiled programs have them once. */
#define FOREIGN(call, id, n) \
    {call, EPERM, CSN_RULE_ONE_ID, "an id that the jail does not map", {IS_NOT(n, UINT32_MAX, id)}}
#define FOREIGN_OWNER(call, n) \
    FOREIGN(call, CSN_SECCOMP_OWN_UID, n), FOREIGN(call, CSN_SECCOMP_OWN_GID, (n) + 1)
#define FOREIGN_1(call, id) FOREIGN(call, id, 0)
#define FOREIGN_2(call, id) FOREIGN(call, id, 1), FOREIGN_1(call, id)
#define FOREIGN_3(call, id) FOREIGN(call, id, 2), FOREIGN_2(call, id)

/* Constants of the kernel's interface, the same on every ABI above. */
#define K_CLONE_NEW     0x7e020000u /* CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} */
#define K_CLONE_NEWTIME 0x00000080u /* unshare only: for clone this bit is part of the signal */
#define K_AF_UNIX       1
#define K_AF_INET       2
#define K_AF_INET6      10
#define K_AF_NETLINK    16
#define K_SOCK_TYPE     0x0fu       /* the type without SOCK_CLOEXEC and SOCK_NONBLOCK */
#define K_SOCK_STREAM   1
#define K_SOCK_DGRAM    2
#define K_SOCK_SEQ      5
#define K_F_SETLEASE    1024
#define K_F_NOTIFY      1026
#define K_OPEN_TREE     0x00089901u /* CLONE, CLOEXEC, AT_{SYMLINK_NOFOLLOW,NO_AUTOMOUNT,EMPTY_PATH,RECURSIVE} */
#define K_MOVE_MOUNT    0x00000177u /* {F,T}_{SYMLINKS,AUTOMOUNTS,EMPTY_PATH}, SET_GROUP */
#define K_FSMOUNT       0x00000001u /* CLOEXEC */
#define K_KEYCTL_JOIN   1
#define K_TIOCSTI       0x5412
#define K_TIOCLINUX     0x541c
#define K_TIOCSETD      0x5423
#define K_PRIO_USER     2
#define K_IOPRIO_USER   3
#define K_PR_SCHED_CORE 62
#define K_PERSONALITIES 0x08a60008u /* LINUX32 UNAME26 ADDR_{NO_RANDOMIZE,COMPAT_LAYOUT,LIMIT*} */
#define K_S_IFMT        0170000u
#define K_WHITEOUT      4u          /* RENAME_WHITEOUT */
#define K_S_IFCHR       0020000u
#define K_S_IFBLK       0060000u
#define K_S_ISUGID      06000u
#define K_O_CREATES     020000100u  /* O_CREAT, and the bit that makes O_TMPFILE */

static const csn_seccomp_rule csn_seccomp_rules[] = {
    /* Namespaces: each new one makes kernel code reachable that otherwise only root can
     * call. */
    NO_USERNS_IF("clone", EPERM, "new namespaces", HAS_ANY(0, K_CLONE_NEW)),
    NO_USERNS_IF("unshare", EPERM, "new namespaces", HAS_ANY(0, K_CLONE_NEW | K_CLONE_NEWTIME)),
    NO_USERNS("clone3", ENOSYS, "flags behind a pointer; libc falls back on clone"),
    NO_USERNS("setns", EPERM, "enters other namespaces"),

    /* Mounts: they confine the jail. */
    NO_USERNS("mount", EPERM, "changes the mounts"),
    NO_USERNS("umount", EPERM, "changes the mounts"),
    NO_USERNS("umount2", EPERM, "uncovers what a mount hides"),
    NO_USERNS("pivot_root", EPERM, "changes the root"),
    NO_USERNS("chroot", EPERM, "changes the root"),
    DENY_IF("open_tree", EPERM, "newer flags: a namespace without the mounts that hide something",
            HAS_ANY(2, ~K_OPEN_TREE)),
    NO_USERNS("open_tree", EPERM, "changes the mounts"),
    DENY("open_tree_attr", EPERM, "attributes behind a pointer, and flags as open_tree"),
    DENY_IF("move_mount", EPERM, "newer flags: a mount beneath one that hides something",
            HAS_ANY(4, ~K_MOVE_MOUNT)),
    NO_USERNS("move_mount", EPERM, "changes the mounts"),
    NO_USERNS("fsopen", EPERM, "changes the mounts"),
    NO_USERNS("fsconfig", EPERM, "changes the mounts"),
    DENY_IF("fsmount", EPERM, "newer flags: as open_tree", HAS_ANY(1, ~K_FSMOUNT)),
    NO_USERNS("fsmount", EPERM, "changes the mounts"),
    NO_USERNS("fspick", EPERM, "changes the mounts"),
    NO_USERNS("mount_setattr", EPERM, "makes a read-only mount writable"),
    DENY("statmount", ENOSYS, "shows mounts of the host; libmount reads mountinfo instead"),
    DENY("listmount", ENOSYS, "shows mounts of the host; libmount reads mountinfo instead"),
    NO_USERNS("sethostname", EPERM, "belongs to the jail"),
    NO_USERNS("setdomainname", EPERM, "belongs to the jail"),
    DENY("open_by_handle_at", EPERM, "opens files by number, past every mount"),
    DENY("name_to_handle_at", EPERM, "makes such numbers"),
    DENY("quotactl", EPERM, "administers a filesystem"),
    DENY("quotactl_fd", EPERM, "administers a filesystem"),
    DENY("fanotify_init", EPERM, "watches whole filesystems"),
    DENY("fanotify_mark", EPERM, "watches whole filesystems"),
    NO_USERNS_IF("mknod", EPERM, "device nodes", BITS_ARE(1, K_S_IFMT, K_S_IFCHR, K_S_IFBLK)),
    DENY_IF("mknodat", EPERM, "device nodes", BITS_ARE(2, K_S_IFMT, K_S_IFCHR, K_S_IFBLK)),
    DENY_IF("renameat2", EINVAL, "leaves a device node in place of the file",
            HAS_ANY(4, K_WHITEOUT)),

    /* Kernel modules, BPF, keyrings, the kernel log, other processes, hardware. */
    DENY("init_module", EPERM, "code into the kernel"),
    DENY("finit_module", EPERM, "code into the kernel"),
    DENY("delete_module", EPERM, "code out of the kernel"),
    DENY("create_module", EPERM, "before 2.6"),
    DENY("query_module", EPERM, "before 2.6"),
    DENY("get_kernel_syms", EPERM, "before 2.6"),
    DENY("kexec_load", EPERM, "another kernel"),
    DENY("kexec_file_load", EPERM, "another kernel"),
    DENY("bpf", EPERM, "programs in the kernel"),
    DENY("perf_event_open", EPERM, "long record of kernel bugs; sees other processes"),
    DENY("userfaultfd", EPERM, "stops the kernel where an exploit wants it"),
    DENY("io_uring_setup", EPERM, "makes calls, sockets among them, that no filter sees"),
    DENY("io_uring_enter", EPERM, "as io_uring_setup"),
    DENY("io_uring_register", EPERM, "as io_uring_setup"),
    DENY("add_key", EPERM, "keyrings are not in any namespace"),
    DENY("request_key", EPERM, "runs a helper of the host"),
    DENY_IF("keyctl", EPERM, "keyrings are not in any namespace", IS_NOT(0, K_KEYCTL_JOIN)),
    NO_USERNS("keyctl", EPERM, "a jail inside leaves the session keyring"),
    DENY("syslog", EPERM, "the host's kernel log"),
    DENY("lookup_dcookie", EPERM, "paths by kernel address"),
    DENY("kcmp", EPERM, "kernel pointers of other processes"),
    DENY("pidfd_getfd", EPERM, "takes descriptors out of other processes"),
    DENY("modify_ldt", EPERM, "segments; long record of kernel bugs"),
    DENY("vm86", EPERM, "16-bit mode"),
    DENY("vm86old", EPERM, "16-bit mode"),
    DENY("iopl", EPERM, "hardware"),
    DENY("ioperm", EPERM, "hardware"),
    DENY("pciconfig_iobase", EPERM, "hardware"),
    DENY("pciconfig_read", EPERM, "hardware"),
    DENY("pciconfig_write", EPERM, "hardware"),

    /* State of the whole host: power, swap, clock, memory placement. */
    DENY("reboot", EPERM, "stops the machine"),
    DENY("swapon", EPERM, "the host's memory"),
    DENY("swapoff", EPERM, "the host's memory"),
    DENY("acct", EPERM, "writes a file of every process"),
    DENY("vhangup", EPERM, "takes the terminal from others"),
    DENY("stime", EPERM, "the host's clock"),
    DENY("settimeofday", EPERM, "the host's clock"),
    DENY("clock_settime", EPERM, "the host's clock"),
    DENY("clock_settime64", EPERM, "the host's clock"),
    DENY("adjtimex", EPERM, "the host's clock"),
    DENY("clock_adjtime", EPERM, "the host's clock"),
    DENY("clock_adjtime64", EPERM, "the host's clock"),
    DENY("mbind", EPERM, "placement of memory on the host's nodes"),
    DENY("set_mempolicy", EPERM, "placement of memory on the host's nodes"),
    DENY("set_mempolicy_home_node", EPERM, "placement of memory on the host's nodes"),
    DENY("migrate_pages", EPERM, "placement of memory on the host's nodes"),
    DENY("move_pages", EPERM, "placement, and a look at where pages lie"),

    /* The keeper has the user id of the commands, so the kernel would let them slow it down:
     * then no timeout is enforced in time. It is pid 1, alone in process group 1. */
    DENY_IF("prlimit64", EPERM, "limits of the keeper", IS(0, 1)),
    DENY_IF("setpriority", EPERM, "priority of the keeper", IS(1, 1)),
    DENY_IF("setpriority", EPERM, "priority of all processes of the user", IS(0, K_PRIO_USER)),
    DENY_IF("ioprio_set", EPERM, "priority of the keeper", IS(1, 1)),
    DENY_IF("ioprio_set", EPERM, "priority of all processes of the user",
            IS(0, K_IOPRIO_USER)),
    DENY_IF("sched_setscheduler", EPERM, "scheduling of the keeper", IS(0, 1)),
    DENY_IF("sched_setparam", EPERM, "scheduling of the keeper", IS(0, 1)),
    DENY_IF("sched_setattr", EPERM, "scheduling of the keeper", IS(0, 1)),
    DENY_IF("sched_setaffinity", EPERM, "processors of the keeper", IS(0, 1)),
    DENY_IF("prctl", EINVAL, "keeps the other threads of a core idle", IS(0, K_PR_SCHED_CORE)),

    /* Obsolete: no program needs them, old kernel code implements them. */
    DENY("nfsservctl", EPERM, "obsolete"),
    DENY("uselib", EPERM, "obsolete"),
    DENY("ustat", EPERM, "obsolete"),
    DENY("sysfs", EPERM, "obsolete"),
    DENY("_sysctl", EPERM, "obsolete"),
    DENY("bdflush", EPERM, "obsolete"),
    DENY("vserver", EPERM, "obsolete"),

    /* Only with CSN_SECCOMP_NO_SOCKETS: see os/seccomp.h. A datagram pair can be connected again,
     * to any path; a stream or packet pair cannot. */
    NO_SOCKETS("socket", EACCES, "any network, and any unix socket of the host", {0}),
    NO_SOCKETS("socketpair", EACCES, "pairs that can be connected again",
               BITS_NOT(1, K_SOCK_TYPE, K_SOCK_STREAM, K_SOCK_SEQ)),
    NO_SOCKETS("shmget", ENOSYS, "memory of other programs", {0}),
    NO_SOCKETS("shmat", ENOSYS, "memory of other programs", {0}),
    NO_SOCKETS("shmctl", ENOSYS, "memory of other programs", {0}),
    NO_SOCKETS("semget", ENOSYS, "semaphores of other programs", {0}),
    NO_SOCKETS("semop", ENOSYS, "semaphores of other programs", {0}),
    NO_SOCKETS("semtimedop", ENOSYS, "semaphores of other programs", {0}),
    NO_SOCKETS("semtimedop_time64", ENOSYS, "semaphores of other programs", {0}),
    NO_SOCKETS("semctl", ENOSYS, "semaphores of other programs", {0}),
    NO_SOCKETS("msgget", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("msgsnd", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("msgrcv", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("msgctl", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("ipc", ENOSYS, "all of these in one call", {0}),
    NO_SOCKETS("mq_open", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("mq_unlink", ENOSYS, "messages of other programs", {0}),
    NO_SOCKETS("prlimit64", EPERM, "limits of the user's other processes", IS_NOT(0, 0)),
    NO_SOCKETS("setpriority", EPERM, "the user's other processes", IS_NOT(0, 0)),
    NO_SOCKETS("setpriority", EPERM, "the user's other processes", IS_NOT(1, 0)),
    NO_SOCKETS("ioprio_set", EPERM, "the user's other processes", IS_NOT(0, 1)),
    NO_SOCKETS("ioprio_set", EPERM, "the user's other processes", IS_NOT(1, 0)),
    NO_SOCKETS("sched_setscheduler", EPERM, "the user's other processes", IS_NOT(0, 0)),
    NO_SOCKETS("sched_setparam", EPERM, "the user's other processes", IS_NOT(0, 0)),
    NO_SOCKETS("sched_setattr", EPERM, "the user's other processes", IS_NOT(0, 0)),
    NO_SOCKETS("sched_setaffinity", EPERM, "the user's other processes", IS_NOT(0, 0)),

    /* Sockets: unix, TCP, UDP, ping, and the netlink that lists interfaces. Other families load
     * rarely used kernel code or (vsock, packet) leave the namespace. */
    DENY_IF("socket", EAFNOSUPPORT, "unusual address families",
            IS_NOT(0, K_AF_UNIX, K_AF_INET, K_AF_INET6, K_AF_NETLINK)),
    DENY_IF("socket", EPERM, "raw and packet sockets (SOCK_PACKET turns AF_INET into AF_PACKET)",
            IS(0, K_AF_INET, K_AF_INET6), BITS_NOT(1, K_SOCK_TYPE, K_SOCK_STREAM, K_SOCK_DGRAM)),
    DENY_IF("socket", EPROTONOSUPPORT, "SCTP, DCCP, MPTCP, L2TP, SMC: modules loaded on demand",
            IS(0, K_AF_INET, K_AF_INET6), IS_NOT(2, 0, 1 /* ICMP */, 6, 17, 58 /* ICMPV6 */, 136)),
    DENY_IF("socket", EPROTONOSUPPORT, "netlink other than NETLINK_ROUTE",
            IS(0, K_AF_NETLINK), IS_NOT(2, 0)),
    DENY_IF("socketpair", EAFNOSUPPORT, "unusual address families", IS_NOT(0, K_AF_UNIX)),
    DENY_IF("socketcall", EPERM, "socket and socketpair with arguments behind a pointer",
            IS(0, 1, 8)),

    /* Arguments of ordinary calls. */
    DENY_IF("ioctl", EPERM, "TIOCSTI types into the caller's terminal; consoles; line disciplines",
            IS(1, K_TIOCSTI, K_TIOCLINUX, K_TIOCSETD)),
    DENY_IF("fcntl", EPERM, "leases make others wait at open; dnotify is obsolete",
            IS(1, K_F_SETLEASE, K_F_NOTIFY)),
    DENY_IF("fcntl64", EPERM, "as fcntl", IS(1, K_F_SETLEASE, K_F_NOTIFY)),
    DENY_IF("personality", EPERM, "other than what setarch and debuggers need",
            HAS_ANY(0, ~K_PERSONALITIES), IS_NOT(0, UINT32_MAX /* query */)),

    /* Only with CSN_SECCOMP_NOSUID: see os/seccomp.h. */
    NOSUID("chmod", EPERM, "setuid file", HAS_ANY(1, K_S_ISUGID)),
    NOSUID("fchmod", EPERM, "setuid file", HAS_ANY(1, K_S_ISUGID)),
    NOSUID("fchmodat", EPERM, "setuid file", HAS_ANY(2, K_S_ISUGID)),
    NOSUID("fchmodat2", EPERM, "setuid file", HAS_ANY(2, K_S_ISUGID)),
    NOSUID("creat", EPERM, "setuid file", HAS_ANY(1, K_S_ISUGID)),
    NOSUID("open", EPERM, "setuid file", HAS_ANY(2, K_S_ISUGID), HAS_ANY(1, K_O_CREATES)),
    NOSUID("openat", EPERM, "setuid file", HAS_ANY(3, K_S_ISUGID), HAS_ANY(2, K_O_CREATES)),
    NOSUID("openat2", ENOSYS, "mode behind a pointer; callers fall back on openat", {0}),
    NOSUID("mknod", EPERM, "setuid file", HAS_ANY(1, K_S_ISUGID)),
    NOSUID("mknodat", EPERM, "setuid file", HAS_ANY(2, K_S_ISUGID)),

    /* Ids that do not exist inside. The kernel answers EINVAL, but programs expect what an
     * ordinary user gets, EPERM. -1 means no change. setgroups needs a capability, and setfsuid
     * has no errors. The calls of i386 and arm with ids of 16 bits have no rows. */
    FOREIGN_OWNER("chown", 1),
    FOREIGN_OWNER("lchown", 1),
    FOREIGN_OWNER("fchown", 1),
    FOREIGN_OWNER("fchownat", 2),
    FOREIGN_OWNER("chown32", 1),
    FOREIGN_OWNER("lchown32", 1),
    FOREIGN_OWNER("fchown32", 1),
    FOREIGN_1("setuid", CSN_SECCOMP_OWN_UID),
    FOREIGN_1("setgid", CSN_SECCOMP_OWN_GID),
    FOREIGN_2("setreuid", CSN_SECCOMP_OWN_UID),
    FOREIGN_2("setregid", CSN_SECCOMP_OWN_GID),
    FOREIGN_3("setresuid", CSN_SECCOMP_OWN_UID),
    FOREIGN_3("setresgid", CSN_SECCOMP_OWN_GID),
    FOREIGN_1("setuid32", CSN_SECCOMP_OWN_UID),
    FOREIGN_1("setgid32", CSN_SECCOMP_OWN_GID),
    FOREIGN_2("setreuid32", CSN_SECCOMP_OWN_UID),
    FOREIGN_2("setregid32", CSN_SECCOMP_OWN_GID),
    FOREIGN_3("setresuid32", CSN_SECCOMP_OWN_UID),
    FOREIGN_3("setresgid32", CSN_SECCOMP_OWN_GID),
};

/* Calls that libseccomp may be too old to name. From 424 on numbers are the same on every ABI.
 * Listing a call here does not refuse it. */
typedef struct csn_seccomp_newer_call {
    const char *call;
    uint16_t number;
    uint8_t x86_64_only;
} csn_seccomp_newer_call;

static const csn_seccomp_newer_call csn_seccomp_newer[] = {
    {"uretprobe", 335, 1}, /* made by the kernel's trampolines when root traces a program */
    {"uprobe", 336, 1},
    {"memfd_secret", 447, 0},
    {"process_mrelease", 448, 0},
    {"futex_waitv", 449, 0},
    {"set_mempolicy_home_node", 450, 0},
    {"cachestat", 451, 0},
    {"fchmodat2", 452, 0},
    {"map_shadow_stack", 453, 0},
    {"futex_wake", 454, 0},
    {"futex_wait", 455, 0},
    {"futex_requeue", 456, 0},
    {"statmount", 457, 0},
    {"listmount", 458, 0},
    {"lsm_get_self_attr", 459, 0},
    {"lsm_set_self_attr", 460, 0},
    {"lsm_list_modules", 461, 0},
    {"mseal", 462, 0},
    {"setxattrat", 463, 0},
    {"getxattrat", 464, 0},
    {"listxattrat", 465, 0},
    {"removexattrat", 466, 0},
    {"open_tree_attr", 467, 0},
    {"file_getattr", 468, 0},
    {"file_setattr", 469, 0},
};
/* clang-format on */
