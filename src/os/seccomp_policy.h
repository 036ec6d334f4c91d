/* seccomp_policy.h: which system calls a jail refuses. This table is the policy; read it.
 *
 * Included by the build's generator (tools/gen-seccomp.c) and by the tests, by nothing else.
 * What no row names is allowed, if it is a call this file knows of: a number that is not
 * assigned, or newer than CSN_SECCOMP_NEWEST, answers ENOSYS, so a new kernel brings no new
 * call until somebody has read about it and raised the number. The same rows hold for every ABI
 * of the host: x86_64 and i386, or aarch64 and arm. The x32 ABI answers ENOSYS as a whole; so
 * does any other.
 *
 * How a row is read: the call, the errno it gets, in which variants the row holds, and on which
 * arguments. Rows of one call are tried in order and the first that holds answers; when none
 * does the call is allowed. Conditions see the low 32 bits of an argument only: the kernel
 * looks at no more of any argument named here, and garbage above would else slip past (the
 * TIOCSTI trick). Pointers cannot be followed, so a call that hides its flags behind one is
 * refused.
 *
 * EPERM says "you may not". ENOSYS and the "not supported" errors are for calls whose users
 * have another way when the kernel lacks them. Nothing is killed. */
#pragma once
#include <errno.h>
#include <stdint.h>

/* The newest call that was looked at when this table was written (Linux 6.18: file_setattr). */
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

/* When a row holds. */
enum {
    CSN_RULE_EVER,
    CSN_RULE_NO_USERNS, /* not in variants with CSN_SECCOMP_USERNS */
    CSN_RULE_NO_SUID,   /* only in variants with CSN_SECCOMP_NOSUID */
    CSN_RULE_ALONE,     /* only in variants with CSN_SECCOMP_ALONE */
};

typedef struct csn_seccomp_rule {
    const char *call;
    uint16_t error;
    uint8_t when;
    const char *why;
    csn_seccomp_cond conds[CSN_SECCOMP_CONDS]; /* all must hold; none: always */
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

#define EVER(call, e, why)            {call, e, CSN_RULE_EVER, why, {{0}}}
#define WHEN(call, e, why, ...)       {call, e, CSN_RULE_EVER, why, {__VA_ARGS__}}
#define OUTER(call, e, why)           {call, e, CSN_RULE_NO_USERNS, why, {{0}}}
#define OUTER_WHEN(call, e, why, ...) {call, e, CSN_RULE_NO_USERNS, why, {__VA_ARGS__}}
#define NOSUID(call, e, why, ...)     {call, e, CSN_RULE_NO_SUID, why, {__VA_ARGS__}}
#define ALONE(call, e, why, ...)      {call, e, CSN_RULE_ALONE, why, {__VA_ARGS__}}

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
#define K_TIOCSTI       0x5412
#define K_TIOCLINUX     0x541c
#define K_TIOCSETD      0x5423
#define K_PERSONALITIES 0x08a60008u /* LINUX32 UNAME26 ADDR_{NO_RANDOMIZE,COMPAT_LAYOUT,LIMIT*} */
#define K_S_IFMT        0170000u
#define K_WHITEOUT      4u          /* RENAME_WHITEOUT */
#define K_S_IFCHR       0020000u
#define K_S_IFBLK       0060000u
#define K_S_ISUGID      06000u
#define K_O_CREATES     020000100u  /* O_CREAT, and the bit that makes O_TMPFILE */

static const csn_seccomp_rule csn_seccomp_rules[] = {
    /* Namespaces: each new one opens kernel code that otherwise only root reaches. */
    OUTER_WHEN("clone", EPERM, "new namespaces", HAS_ANY(0, K_CLONE_NEW)),
    OUTER_WHEN("unshare", EPERM, "new namespaces", HAS_ANY(0, K_CLONE_NEW | K_CLONE_NEWTIME)),
    OUTER("clone3", ENOSYS, "flags behind a pointer; libc falls back on clone"),
    OUTER("setns", EPERM, "enters other namespaces"),

    /* Mounts: the walls are made of them. */
    OUTER("mount", EPERM, "changes the mounts"),
    OUTER("umount", EPERM, "changes the mounts"),
    OUTER("umount2", EPERM, "uncovers what a mount hides"),
    OUTER("pivot_root", EPERM, "changes the root"),
    OUTER("chroot", EPERM, "changes the root"),
    OUTER("open_tree", EPERM, "changes the mounts"),
    OUTER("open_tree_attr", EPERM, "changes the mounts"),
    OUTER("move_mount", EPERM, "changes the mounts"),
    OUTER("fsopen", EPERM, "changes the mounts"),
    OUTER("fsconfig", EPERM, "changes the mounts"),
    OUTER("fsmount", EPERM, "changes the mounts"),
    OUTER("fspick", EPERM, "changes the mounts"),
    OUTER("mount_setattr", EPERM, "makes a read-only mount writable"),
    OUTER("statmount", ENOSYS, "shows mounts of the host; libmount reads mountinfo instead"),
    OUTER("listmount", ENOSYS, "shows mounts of the host; libmount reads mountinfo instead"),
    OUTER("sethostname", EPERM, "belongs to the jail"),
    OUTER("setdomainname", EPERM, "belongs to the jail"),
    EVER("open_by_handle_at", EPERM, "opens files by number, past every mount"),
    EVER("name_to_handle_at", EPERM, "makes such numbers"),
    EVER("quotactl", EPERM, "administers a filesystem"),
    EVER("quotactl_fd", EPERM, "administers a filesystem"),
    EVER("fanotify_init", EPERM, "watches whole filesystems"),
    EVER("fanotify_mark", EPERM, "watches whole filesystems"),
    OUTER_WHEN("mknod", EPERM, "device nodes", BITS_ARE(1, K_S_IFMT, K_S_IFCHR, K_S_IFBLK)),
    WHEN("mknodat", EPERM, "device nodes", BITS_ARE(2, K_S_IFMT, K_S_IFCHR, K_S_IFBLK)),
    WHEN("renameat2", EINVAL, "leaves one in place of the file; not every filesystem can",
         HAS_ANY(4, K_WHITEOUT)),

    /* The kernel itself: modules, programs in it, what it logs and keeps. */
    EVER("init_module", EPERM, "code into the kernel"),
    EVER("finit_module", EPERM, "code into the kernel"),
    EVER("delete_module", EPERM, "code out of the kernel"),
    EVER("create_module", EPERM, "before 2.6"),
    EVER("query_module", EPERM, "before 2.6"),
    EVER("get_kernel_syms", EPERM, "before 2.6"),
    EVER("kexec_load", EPERM, "another kernel"),
    EVER("kexec_file_load", EPERM, "another kernel"),
    EVER("bpf", EPERM, "programs in the kernel"),
    EVER("perf_event_open", EPERM, "long record of kernel bugs; sees other processes"),
    EVER("userfaultfd", EPERM, "stops the kernel where an exploit wants it"),
    EVER("io_uring_setup", EPERM, "makes calls, sockets among them, that no filter sees"),
    EVER("io_uring_enter", EPERM, "as io_uring_setup"),
    EVER("io_uring_register", EPERM, "as io_uring_setup"),
    EVER("add_key", EPERM, "keyrings are not in any namespace"),
    EVER("request_key", EPERM, "runs a helper of the host"),
    EVER("keyctl", EPERM, "keyrings are not in any namespace"),
    EVER("syslog", EPERM, "the host's kernel log"),
    EVER("lookup_dcookie", EPERM, "paths by kernel address"),
    EVER("kcmp", EPERM, "kernel pointers of other processes"),
    EVER("pidfd_getfd", EPERM, "takes descriptors out of other processes"),
    WHEN("prlimit64", EPERM, "limits of the keeper, number 1: without memory it cannot be spoken to",
         IS(0, 1)),
    EVER("modify_ldt", EPERM, "segments; long record of kernel bugs"),
    EVER("vm86", EPERM, "16-bit mode"),
    EVER("vm86old", EPERM, "16-bit mode"),
    EVER("iopl", EPERM, "hardware"),
    EVER("ioperm", EPERM, "hardware"),
    EVER("pciconfig_iobase", EPERM, "hardware"),
    EVER("pciconfig_read", EPERM, "hardware"),
    EVER("pciconfig_write", EPERM, "hardware"),

    /* The machine as a whole. */
    EVER("reboot", EPERM, "stops the machine"),
    EVER("swapon", EPERM, "the host's memory"),
    EVER("swapoff", EPERM, "the host's memory"),
    EVER("acct", EPERM, "writes a file of every process"),
    EVER("vhangup", EPERM, "takes the terminal from others"),
    EVER("stime", EPERM, "the host's clock"),
    EVER("settimeofday", EPERM, "the host's clock"),
    EVER("clock_settime", EPERM, "the host's clock"),
    EVER("clock_settime64", EPERM, "the host's clock"),
    EVER("adjtimex", EPERM, "the host's clock"),
    EVER("clock_adjtime", EPERM, "the host's clock"),
    EVER("clock_adjtime64", EPERM, "the host's clock"),
    EVER("mbind", EPERM, "placement of memory on the host's nodes"),
    EVER("set_mempolicy", EPERM, "placement of memory on the host's nodes"),
    EVER("set_mempolicy_home_node", EPERM, "placement of memory on the host's nodes"),
    EVER("migrate_pages", EPERM, "placement of memory on the host's nodes"),
    EVER("move_pages", EPERM, "placement, and a look at where pages lie"),

    /* Relics: no program needs them, old code answers them. */
    EVER("nfsservctl", EPERM, "relic"),
    EVER("uselib", EPERM, "relic"),
    EVER("ustat", EPERM, "relic"),
    EVER("sysfs", EPERM, "relic"),
    EVER("_sysctl", EPERM, "relic"),
    EVER("bdflush", EPERM, "relic"),
    EVER("vserver", EPERM, "relic"),

    /* Only with CSN_SECCOMP_ALONE: see os/seccomp.h. A datagram pair can be connected again, to any
     * path; a stream or packet pair cannot. */
    ALONE("socket", EACCES, "any network, and any unix socket of the host", {0}),
    ALONE("socketpair", EACCES, "pairs that can be connected again",
          BITS_NOT(1, K_SOCK_TYPE, K_SOCK_STREAM, K_SOCK_SEQ)),
    ALONE("shmget", ENOSYS, "memory of other programs", {0}),
    ALONE("shmat", ENOSYS, "memory of other programs", {0}),
    ALONE("shmctl", ENOSYS, "memory of other programs", {0}),
    ALONE("semget", ENOSYS, "semaphores of other programs", {0}),
    ALONE("semop", ENOSYS, "semaphores of other programs", {0}),
    ALONE("semtimedop", ENOSYS, "semaphores of other programs", {0}),
    ALONE("semtimedop_time64", ENOSYS, "semaphores of other programs", {0}),
    ALONE("semctl", ENOSYS, "semaphores of other programs", {0}),
    ALONE("msgget", ENOSYS, "messages of other programs", {0}),
    ALONE("msgsnd", ENOSYS, "messages of other programs", {0}),
    ALONE("msgrcv", ENOSYS, "messages of other programs", {0}),
    ALONE("msgctl", ENOSYS, "messages of other programs", {0}),
    ALONE("ipc", ENOSYS, "all of these in one call", {0}),
    ALONE("mq_open", ENOSYS, "messages of other programs", {0}),
    ALONE("mq_unlink", ENOSYS, "messages of other programs", {0}),

    /* Sockets: unix, TCP, UDP, ping, and the netlink that lists interfaces. Every other family
     * loads kernel code that nobody here uses, or (vsock, packet) leaves the namespace. */
    WHEN("socket", EAFNOSUPPORT, "unusual address families",
         IS_NOT(0, K_AF_UNIX, K_AF_INET, K_AF_INET6, K_AF_NETLINK)),
    WHEN("socket", EPERM, "raw and packet sockets (SOCK_PACKET turns AF_INET into AF_PACKET)",
         IS(0, K_AF_INET, K_AF_INET6), BITS_NOT(1, K_SOCK_TYPE, K_SOCK_STREAM, K_SOCK_DGRAM)),
    WHEN("socket", EPROTONOSUPPORT, "SCTP, DCCP, MPTCP, L2TP, SMC: modules loaded on demand",
         IS(0, K_AF_INET, K_AF_INET6), IS_NOT(2, 0, 1 /* ICMP */, 6, 17, 58 /* ICMPV6 */, 136)),
    WHEN("socket", EPROTONOSUPPORT, "netlink other than NETLINK_ROUTE",
         IS(0, K_AF_NETLINK), IS_NOT(2, 0)),
    WHEN("socketpair", EAFNOSUPPORT, "unusual address families", IS_NOT(0, K_AF_UNIX)),
    WHEN("socketcall", EPERM, "socket and socketpair with arguments behind a pointer",
         IS(0, 1, 8)),

    /* Arguments of calls that are otherwise ordinary. */
    WHEN("ioctl", EPERM, "TIOCSTI types into the caller's terminal; consoles; line disciplines",
         IS(1, K_TIOCSTI, K_TIOCLINUX, K_TIOCSETD)),
    WHEN("personality", EPERM, "other than what setarch and debuggers need",
         HAS_ANY(0, ~K_PERSONALITIES), IS_NOT(0, UINT32_MAX /* asks */)),

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
};

/* Calls that the generator's library may be too old to name. From 424 on a call has the same
 * number on every ABI. None of these has a row unless it stands above. */
typedef struct csn_seccomp_newer_call {
    const char *call;
    uint16_t number;
    uint8_t x86_64_only;
} csn_seccomp_newer_call;

static const csn_seccomp_newer_call csn_seccomp_newer[] = {
    {"uretprobe", 335, 1}, /* made by the kernel's own trampolines when root traces a program */
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
