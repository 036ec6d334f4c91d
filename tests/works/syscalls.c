/* syscalls.c: makes every system call of x86_64 once and prints `NAME RESULT` for each.
 *
 * check-sizes: table. tests/works/syscalls.sh compares what it prints outside and inside a
 * jail. A result is `ok`, the name of an errno, `ended` (the call ended the process) or `signal
 * N`. Each call is made by a child of its own. The arguments are those of an ordinary use where
 * that changes nothing but the working directory and the child. Calls that could change the
 * machine get arguments that the kernel refuses, also for root: a wrong pointer, flag or
 * number. The numbers are in the table because headers are older than kernels. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Arguments. */
#define P(text) (long)(text)
#define BUF     (long)zeros /* a page of zeros: an empty structure, set, list or time */
#define NAME    P("file")   /* a file, a directory and a name without a file */
#define HERE    P(".")
#define ABSENT  P("absent")
#define XATTR   P("user.test")
#define CWD     AT_FDCWD
#define FILE_FD 20 /* `file`, open for reading and writing */
#define DIR_FD  21
#define SOCK_FD 22          /* one of a pair */
#define BAD     (-1L)       /* a pointer to nothing */
#define NOFD    (-1L)       /* a descriptor that is not open */
#define NONE    (-1L)       /* no such id; every flag */
#define ANY     (-1L)       /* any child */
#define KEY     0x63737431L /* of a System V object that does not exist */
#define SELF    0x73656c66L /* becomes the child's process id */
#define OTHER   0x6f746872L /* becomes an id that is not the caller's */

typedef struct row {
    long number;
    const char *name;
    const char *skip; /* why it is not made */
    int waits;        /* for a signal: it gets one */
    long a[6];
} row;

static char zeros[4096] __attribute__((aligned(4096)));

/* clang-format off */
static const row rows[] = {
    {0, "read", .a = {FILE_FD, BUF, 1}},
    {1, "write", .a = {FILE_FD, BUF, 1}},
    {2, "open", .a = {NAME, 0}},
    {3, "close", .a = {NOFD}},
    {4, "stat", .a = {HERE, BUF}},
    {5, "fstat", .a = {FILE_FD, BUF}},
    {6, "lstat", .a = {HERE, BUF}},
    {7, "poll", .a = {0, 0, 0}},
    {8, "lseek", .a = {FILE_FD, 0, 0}},
    {9, "mmap", .a = {0, 4096, 1, 0x22, NOFD, 0}},
    {10, "mprotect", .a = {BUF, 4096, 3}},
    {11, "munmap", .a = {0, 0}},
    {12, "brk", .a = {0}},
    {13, "rt_sigaction", .a = {10, 0, BUF, 8}},
    {14, "rt_sigprocmask", .a = {0, 0, BUF, 8}},
    {15, "rt_sigreturn", .skip = "the kernel takes the registers from the stack"},
    {16, "ioctl", .a = {FILE_FD, 0x5401, BUF}},
    {17, "pread64", .a = {FILE_FD, BUF, 1, 0}},
    {18, "pwrite64", .a = {FILE_FD, BUF, 1, 0}},
    {19, "readv", .a = {FILE_FD, BUF, 1}},
    {20, "writev", .a = {FILE_FD, BUF, 1}},
    {21, "access", .a = {NAME, 0}},
    {22, "pipe", .a = {BUF}},
    {23, "select", .a = {0, 0, 0, 0, BUF}},
    {24, "sched_yield"},
    {25, "mremap", .a = {1, 0, 0, 0, 0}},
    {26, "msync", .a = {BUF, 4096, 4}},
    {27, "mincore", .a = {BUF, 4096, BUF}},
    {28, "madvise", .a = {BUF, 4096, 0}},
    {29, "shmget", .a = {KEY, 1, 0}},
    {30, "shmat", .a = {NONE, 0, 0}},
    {31, "shmctl", .a = {NONE, 2, BUF}},
    {32, "dup", .a = {FILE_FD}},
    {33, "dup2", .a = {FILE_FD, 30}},
    {34, "pause", .waits = 1},
    {35, "nanosleep", .a = {BUF, 0}},
    {36, "getitimer", .a = {0, BUF}},
    {37, "alarm", .a = {30}},
    {38, "setitimer", .a = {1, BUF, 0}},
    {39, "getpid"},
    {40, "sendfile", .a = {FILE_FD, FILE_FD, 0, 0}},
    {41, "socket", .a = {2, 1, 0}},
    {42, "connect", .a = {NOFD, BUF, 16}},
    {43, "accept", .a = {NOFD, 0, 0}},
    {44, "sendto", .a = {SOCK_FD, BUF, 1, 0, 0, 0}},
    {45, "recvfrom", .a = {SOCK_FD, BUF, 1, 0x40, 0, 0}},
    {46, "sendmsg", .a = {SOCK_FD, BUF, 0}},
    {47, "recvmsg", .a = {SOCK_FD, BUF, 0x40}},
    {48, "shutdown", .a = {SOCK_FD, 0}},
    {49, "bind", .a = {NOFD, BUF, 16}},
    {50, "listen", .a = {NOFD, 1}},
    {51, "getsockname", .a = {SOCK_FD, BUF, BUF}},
    {52, "getpeername", .a = {SOCK_FD, BUF, BUF}},
    {53, "socketpair", .a = {1, 1, 0, BUF}},
    {54, "setsockopt", .a = {SOCK_FD, 1, 99, BUF, 4}},
    {55, "getsockopt", .a = {SOCK_FD, 1, 99, BUF, BUF}},
    {56, "clone", .a = {17, 0, 0, 0, 0}},
    {57, "fork"},
    {58, "vfork"},
    {59, "execve", .a = {ABSENT, 0, 0}},
    {60, "exit"},
    {61, "wait4", .a = {ANY, 0, 1, 0}},
    {62, "kill", .a = {SELF, 0}},
    {63, "uname", .a = {BUF}},
    {64, "semget", .a = {KEY, 1, 0}},
    {65, "semop", .a = {NONE, BUF, 1}},
    {66, "semctl", .a = {NONE, 0, 2, BUF}},
    {67, "shmdt", .a = {1}},
    {68, "msgget", .a = {KEY, 0}},
    {69, "msgsnd", .a = {NONE, BUF, 0, 04000}},
    {70, "msgrcv", .a = {NONE, BUF, 0, 0, 04000}},
    {71, "msgctl", .a = {NONE, 2, BUF}},
    {72, "fcntl", .a = {FILE_FD, 1}},
    {73, "flock", .a = {FILE_FD, 4|2}},
    {74, "fsync", .a = {NOFD}},
    {75, "fdatasync", .a = {NOFD}},
    {76, "truncate", .a = {NAME, 16}},
    {77, "ftruncate", .a = {FILE_FD, 16}},
    {78, "getdents", .a = {DIR_FD, BUF, 4096}},
    {79, "getcwd", .a = {BUF, 4096}},
    {80, "chdir", .a = {HERE}},
    {81, "fchdir", .a = {DIR_FD}},
    {82, "rename", .a = {ABSENT, ABSENT}},
    {83, "mkdir", .a = {P("dir"), 0700}},
    {84, "rmdir", .a = {P("dir")}},
    {85, "creat", .a = {P("created"), 0600}},
    {86, "link", .a = {NAME, P("linked")}},
    {87, "unlink", .a = {P("linked")}},
    {88, "symlink", .a = {NAME, P("symbolic")}},
    {89, "readlink", .a = {P("symbolic"), BUF, 64}},
    {90, "chmod", .a = {NAME, 0600}},
    {91, "fchmod", .a = {FILE_FD, 0600}},
    {92, "chown", .a = {NAME, OTHER, NONE}},
    {93, "fchown", .a = {FILE_FD, OTHER, NONE}},
    {94, "lchown", .a = {NAME, OTHER, NONE}},
    {95, "umask", .a = {077}},
    {96, "gettimeofday", .a = {BUF, 0}},
    {97, "getrlimit", .a = {7, BUF}},
    {98, "getrusage", .a = {0, BUF}},
    {99, "sysinfo", .a = {BUF}},
    {100, "times", .a = {BUF}},
    {101, "ptrace", .a = {0, 0, 0, 0}},
    {102, "getuid"},
    {103, "syslog", .a = {99, 0, 0}},
    {104, "getgid"},
    {105, "setuid", .a = {OTHER}},
    {106, "setgid", .a = {OTHER}},
    {107, "geteuid"},
    {108, "getegid"},
    {109, "setpgid", .a = {0, 0}},
    {110, "getppid"},
    {111, "getpgrp"},
    {112, "setsid"},
    {113, "setreuid", .a = {OTHER, OTHER}},
    {114, "setregid", .a = {OTHER, OTHER}},
    {115, "getgroups", .a = {0, 0}},
    {116, "setgroups", .a = {0, 0}},
    {117, "setresuid", .a = {OTHER, OTHER, OTHER}},
    {118, "getresuid", .a = {BUF, BUF, BUF}},
    {119, "setresgid", .a = {OTHER, OTHER, OTHER}},
    {120, "getresgid", .a = {BUF, BUF, BUF}},
    {121, "getpgid", .a = {0}},
    {122, "setfsuid", .a = {OTHER}},
    {123, "setfsgid", .a = {OTHER}},
    {124, "getsid", .a = {0}},
    {125, "capget", .a = {BUF, 0}},
    {126, "capset", .a = {BAD, BAD}},
    {127, "rt_sigpending", .a = {BUF, 8}},
    {128, "rt_sigtimedwait", .a = {BUF, 0, BUF, 8}},
    {129, "rt_sigqueueinfo", .a = {SELF, 0, BAD}},
    {130, "rt_sigsuspend", .waits = 1, .a = {BUF, 8}},
    {131, "sigaltstack", .a = {0, BUF}},
    {132, "utime", .a = {NAME, 0}},
    {133, "mknod", .a = {P("fifo"), 0010600, 0}},
    {134, "uselib", .a = {BAD}},
    {135, "personality", .a = {0xffffffff}},
    {136, "ustat", .a = {0, BUF}},
    {137, "statfs", .a = {HERE, BUF}},
    {138, "fstatfs", .a = {FILE_FD, BUF}},
    {139, "sysfs", .a = {3}},
    {140, "getpriority", .a = {0, 0}},
    {141, "setpriority", .a = {0, 0, 19}},
    {142, "sched_setparam", .a = {0, BUF}},
    {143, "sched_getparam", .a = {0, BUF}},
    {144, "sched_setscheduler", .a = {0, 3, BUF}},
    {145, "sched_getscheduler", .a = {0}},
    {146, "sched_get_priority_max", .a = {1}},
    {147, "sched_get_priority_min", .a = {1}},
    {148, "sched_rr_get_interval", .a = {0, BUF}},
    {149, "mlock", .a = {BUF, 4096}},
    {150, "munlock", .a = {BUF, 4096}},
    {151, "mlockall", .a = {0x99}},
    {152, "munlockall"},
    {153, "vhangup", .skip = "it has no argument that makes it fail"},
    {154, "modify_ldt", .a = {0, BUF, 0}},
    {155, "pivot_root", .a = {BAD, BAD}},
    {156, "_sysctl", .a = {BAD}},
    {157, "prctl", .a = {3}},
    {158, "arch_prctl", .a = {0x1003, BUF}},
    {159, "adjtimex", .a = {BAD}},
    {160, "setrlimit", .a = {4, BUF}},
    {161, "chroot", .a = {ABSENT}},
    {162, "sync", .skip = "writes the caches of the whole machine"},
    {163, "acct", .a = {BAD}},
    {164, "settimeofday", .a = {BAD, 0}},
    {165, "mount", .a = {BAD, BAD, BAD, 0, 0}},
    {166, "umount2", .a = {BAD, NONE}},
    {167, "swapon", .a = {BAD, NONE}},
    {168, "swapoff", .a = {BAD}},
    {169, "reboot", .a = {0, 0, 0, 0}},
    {170, "sethostname", .a = {BAD, NONE}},
    {171, "setdomainname", .a = {BAD, NONE}},
    {172, "iopl", .a = {99}},
    {173, "ioperm", .a = {0xffffff, 1, 0}},
    {174, "create_module", .a = {BAD, 0}},
    {175, "init_module", .a = {BAD, 0, BAD}},
    {176, "delete_module", .a = {BAD, NONE}},
    {177, "get_kernel_syms", .a = {BAD}},
    {178, "query_module", .a = {BAD}},
    {179, "quotactl", .a = {0xff, BAD, 0, BAD}},
    {180, "nfsservctl", .a = {NONE, BAD, BAD}},
    {181, "getpmsg"},
    {182, "putpmsg"},
    {183, "afs_syscall"},
    {184, "tuxcall"},
    {185, "security"},
    {186, "gettid"},
    {187, "readahead", .a = {FILE_FD, 0, 1}},
    {188, "setxattr", .a = {NAME, XATTR, BUF, 1, 0}},
    {189, "lsetxattr", .a = {NAME, XATTR, BUF, 1, 0}},
    {190, "fsetxattr", .a = {FILE_FD, XATTR, BUF, 1, 0}},
    {191, "getxattr", .a = {NAME, XATTR, BUF, 64}},
    {192, "lgetxattr", .a = {NAME, XATTR, BUF, 64}},
    {193, "fgetxattr", .a = {FILE_FD, XATTR, BUF, 64}},
    {194, "listxattr", .a = {NAME, BUF, 4096}},
    {195, "llistxattr", .a = {NAME, BUF, 4096}},
    {196, "flistxattr", .a = {FILE_FD, BUF, 4096}},
    {197, "removexattr", .a = {NAME, XATTR}},
    {198, "lremovexattr", .a = {NAME, XATTR}},
    {199, "fremovexattr", .a = {FILE_FD, XATTR}},
    {200, "tkill", .a = {SELF, 0}},
    {201, "time", .a = {0}},
    {202, "futex", .a = {BUF, 1, 1}},
    {203, "sched_setaffinity", .a = {0, 8, BAD}},
    {204, "sched_getaffinity", .a = {0, 4096, BUF}},
    {205, "set_thread_area", .a = {BAD}},
    {206, "io_setup", .a = {1, BUF}},
    {207, "io_destroy", .a = {0}},
    {208, "io_getevents", .a = {0, 0, 0, BUF, 0}},
    {209, "io_submit", .a = {0, 0, BUF}},
    {210, "io_cancel", .a = {0, BUF, BUF}},
    {211, "get_thread_area", .a = {BAD}},
    {212, "lookup_dcookie", .a = {0, BUF, 64}},
    {213, "epoll_create", .a = {1}},
    {214, "epoll_ctl_old"},
    {215, "epoll_wait_old"},
    {216, "remap_file_pages", .a = {0, 0, 0, 0, 0}},
    {217, "getdents64", .a = {DIR_FD, BUF, 4096}},
    {218, "set_tid_address", .a = {BUF}},
    {219, "restart_syscall"},
    {220, "semtimedop", .a = {NONE, BUF, 1, 0}},
    {221, "fadvise64", .a = {FILE_FD, 0, 0, 0}},
    {222, "timer_create", .a = {0, 0, BUF}},
    {223, "timer_settime", .a = {9999, 0, BUF, 0}},
    {224, "timer_gettime", .a = {9999, BUF}},
    {225, "timer_getoverrun", .a = {9999}},
    {226, "timer_delete", .a = {9999}},
    {227, "clock_settime", .a = {99, BAD}},
    {228, "clock_gettime", .a = {0, BUF}},
    {229, "clock_getres", .a = {0, BUF}},
    {230, "clock_nanosleep", .a = {0, 0, BUF, 0}},
    {231, "exit_group"},
    {232, "epoll_wait", .a = {NOFD, BUF, 1, 0}},
    {233, "epoll_ctl", .a = {NOFD, 1, FILE_FD, BUF}},
    {234, "tgkill", .a = {SELF, SELF, 0}},
    {235, "utimes", .a = {NAME, 0}},
    {236, "vserver"},
    {237, "mbind", .a = {0, 0, 99, 0, 0, 0}},
    {238, "set_mempolicy", .a = {99, 0, 0}},
    {239, "get_mempolicy", .a = {0, 0, 0, 0, 0}},
    {240, "mq_open", .a = {ABSENT, 0, 0, 0}},
    {241, "mq_unlink", .a = {ABSENT}},
    {242, "mq_timedsend", .a = {NOFD, BUF, 1, 0, BUF}},
    {243, "mq_timedreceive", .a = {NOFD, BUF, 1, 0, BUF}},
    {244, "mq_notify", .a = {NOFD, 0}},
    {245, "mq_getsetattr", .a = {NOFD, 0, BUF}},
    {246, "kexec_load", .a = {0, 9999, BAD, 0xffff}},
    {247, "waitid", .a = {0, 0, BUF, 5, 0}},
    {248, "add_key", .a = {BAD, BAD, BAD, 0, NONE}},
    {249, "request_key", .a = {BAD, BAD, BAD, NONE}},
    {250, "keyctl", .a = {9999}},
    {251, "ioprio_set", .a = {1, 0, (2<<13)|7}},
    {252, "ioprio_get", .a = {1, 0}},
    {253, "inotify_init"},
    {254, "inotify_add_watch", .a = {NOFD, HERE, 1}},
    {255, "inotify_rm_watch", .a = {NOFD, 1}},
    {256, "migrate_pages", .a = {0, 64, BAD, BAD}},
    {257, "openat", .a = {CWD, NAME, 0}},
    {258, "mkdirat", .a = {CWD, P("dir2"), 0700}},
    {259, "mknodat", .a = {CWD, P("device"), 0020600, 0x103}},
    {260, "fchownat", .a = {CWD, NAME, OTHER, NONE, 0}},
    {261, "futimesat", .a = {CWD, NAME, 0}},
    {262, "newfstatat", .a = {CWD, NAME, BUF, 0}},
    {263, "unlinkat", .a = {CWD, P("dir2"), 0x200}},
    {264, "renameat", .a = {CWD, ABSENT, CWD, ABSENT}},
    {265, "linkat", .a = {CWD, NAME, CWD, P("linked2"), 0}},
    {266, "symlinkat", .a = {NAME, CWD, P("symbolic2")}},
    {267, "readlinkat", .a = {CWD, P("symbolic2"), BUF, 64}},
    {268, "fchmodat", .a = {CWD, NAME, 0600}},
    {269, "faccessat", .a = {CWD, NAME, 0}},
    {270, "pselect6", .a = {0, 0, 0, 0, BUF, 0}},
    {271, "ppoll", .a = {0, 0, BUF, 0, 8}},
    {272, "unshare", .a = {0x04000000}},
    {273, "set_robust_list", .a = {0, 99}},
    {274, "get_robust_list", .a = {0, BUF, BUF}},
    {275, "splice", .a = {NOFD, 0, NOFD, 0, 1, 0}},
    {276, "tee", .a = {NOFD, NOFD, 1, 0}},
    {277, "sync_file_range", .a = {FILE_FD, 0, 0, 0}},
    {278, "vmsplice", .a = {NOFD, BUF, 1, 0}},
    {279, "move_pages", .a = {0, 1, BAD, 0, BAD, 0xff}},
    {280, "utimensat", .a = {CWD, NAME, 0, 0}},
    {281, "epoll_pwait", .a = {NOFD, BUF, 1, 0, 0, 8}},
    {282, "signalfd", .a = {NOFD, BUF, 8}},
    {283, "timerfd_create", .a = {1, 0}},
    {284, "eventfd", .a = {0}},
    {285, "fallocate", .a = {FILE_FD, 0, 0, 16}},
    {286, "timerfd_settime", .a = {NOFD, 0, BUF, 0}},
    {287, "timerfd_gettime", .a = {NOFD, BUF}},
    {288, "accept4", .a = {NOFD, 0, 0, 0}},
    {289, "signalfd4", .a = {NOFD, BUF, 8, 0}},
    {290, "eventfd2", .a = {0, 0}},
    {291, "epoll_create1", .a = {0}},
    {292, "dup3", .a = {FILE_FD, 30, 0}},
    {293, "pipe2", .a = {BUF, 0}},
    {294, "inotify_init1", .a = {0}},
    {295, "preadv", .a = {FILE_FD, BUF, 1, 0, 0}},
    {296, "pwritev", .a = {FILE_FD, BUF, 1, 0, 0}},
    {297, "rt_tgsigqueueinfo", .a = {SELF, SELF, 0, BAD}},
    {298, "perf_event_open", .a = {BUF, 0, NONE, NONE, NONE}},
    {299, "recvmmsg", .a = {SOCK_FD, BUF, 0, 0, 0}},
    {300, "fanotify_init", .a = {NONE, 0}},
    {301, "fanotify_mark", .a = {NOFD, 0, 0, 0, 0}},
    {302, "prlimit64", .a = {0, 7, 0, BUF}},
    {303, "name_to_handle_at", .a = {CWD, HERE, BAD, BAD, 0}},
    {304, "open_by_handle_at", .a = {NOFD, BAD, 0}},
    {305, "clock_adjtime", .a = {99, BAD}},
    {306, "syncfs", .a = {NOFD}},
    {307, "sendmmsg", .a = {SOCK_FD, BUF, 0, 0}},
    {308, "setns", .a = {NOFD, 0}},
    {309, "getcpu", .a = {BUF, 0, 0}},
    {310, "process_vm_readv", .a = {SELF, BUF, 0, BUF, 0, 0}},
    {311, "process_vm_writev", .a = {SELF, BUF, 0, BUF, 0, 0}},
    {312, "kcmp", .a = {SELF, SELF, 1, 0, 0}},
    {313, "finit_module", .a = {NOFD, BAD, NONE}},
    {314, "sched_setattr", .a = {0, BAD, 0}},
    {315, "sched_getattr", .a = {0, BUF, 56, 0}},
    {316, "renameat2", .a = {CWD, ABSENT, CWD, ABSENT, 1}},
    {317, "seccomp", .a = {99, 0, 0}},
    {318, "getrandom", .a = {BUF, 8, 0}},
    {319, "memfd_create", .a = {NAME, 0}},
    {320, "kexec_file_load", .a = {NOFD, NOFD, 0, 0, 0xffff}},
    {321, "bpf", .a = {9999, BUF, 0xffff}},
    {322, "execveat", .a = {CWD, ABSENT, 0, 0, 0}},
    {323, "userfaultfd", .a = {0x7f000001}},
    {324, "membarrier", .a = {0, 0, 0}},
    {325, "mlock2", .a = {BUF, 4096, 99}},
    {326, "copy_file_range", .a = {NOFD, 0, NOFD, 0, 1, 0}},
    {327, "preadv2", .a = {FILE_FD, BUF, 1, 0, 0, 0}},
    {328, "pwritev2", .a = {FILE_FD, BUF, 1, 0, 0, 0}},
    {329, "pkey_mprotect", .a = {BUF, 4096, 3, NONE}},
    {330, "pkey_alloc", .a = {99, 0}},
    {331, "pkey_free", .a = {NONE}},
    {332, "statx", .a = {CWD, NAME, 0, 0x7ff, BUF}},
    {333, "io_pgetevents", .a = {0, 0, 0, BUF, 0, 0}},
    {334, "rseq", .a = {BAD, 0, 0, 0}},
    {335, "uretprobe", .skip = "only the kernel's own trampolines make it"},
    {336, "uprobe", .skip = "only the kernel's own trampolines make it"},
    {424, "pidfd_send_signal", .a = {NOFD, 0, 0, 0}},
    {425, "io_uring_setup", .a = {1, BAD}},
    {426, "io_uring_enter", .a = {NOFD, 0, 0, 0, 0, 0}},
    {427, "io_uring_register", .a = {NOFD, 0, 0, 0}},
    {428, "open_tree", .a = {CWD, HERE, 0}},
    {429, "move_mount", .a = {NOFD, BAD, NOFD, BAD, NONE}},
    {430, "fsopen", .a = {BAD, NONE}},
    {431, "fsconfig", .a = {NOFD, 99, BAD, BAD, 0}},
    {432, "fsmount", .a = {NOFD, NONE, 0}},
    {433, "fspick", .a = {NOFD, BAD, NONE}},
    {434, "pidfd_open", .a = {SELF, 0}},
    {435, "clone3", .a = {BAD, 0}},
    {436, "close_range", .a = {5, 3, 0}},
    {437, "openat2", .a = {CWD, HERE, BUF, 24}},
    {438, "pidfd_getfd", .a = {NOFD, 0, 0}},
    {439, "faccessat2", .a = {CWD, NAME, 0, 0}},
    {440, "process_madvise", .a = {NOFD, BUF, 0, 0, 0}},
    {441, "epoll_pwait2", .a = {NOFD, BUF, 1, BUF, 0, 8}},
    {442, "mount_setattr", .a = {NOFD, BAD, NONE, BAD, 0}},
    {443, "quotactl_fd", .a = {NOFD, 0xff, 0, BAD}},
    {444, "landlock_create_ruleset", .a = {0, 0, 1}},
    {445, "landlock_add_rule", .a = {NOFD, 1, BAD, 0}},
    {446, "landlock_restrict_self", .a = {NOFD, 0}},
    {447, "memfd_secret", .a = {0}},
    {448, "process_mrelease", .a = {NOFD, 0}},
    {449, "futex_waitv", .a = {BAD, 0, 0, 0, 0}},
    {450, "set_mempolicy_home_node", .a = {0, 0, 0, NONE}},
    {451, "cachestat", .a = {NOFD, BUF, BUF, 0}},
    {452, "fchmodat2", .a = {CWD, NAME, 0600, 0}},
    {453, "map_shadow_stack", .a = {0, 0, NONE}},
    {454, "futex_wake", .a = {BUF, 1, 1, 2}},
    {455, "futex_wait", .a = {BUF, 1, 1, 2, 0, 0}},
    {456, "futex_requeue", .a = {BAD, 0, 0, 0}},
    {457, "statmount", .a = {BAD, BAD, 0, NONE}},
    {458, "listmount", .a = {BAD, BAD, 0, NONE}},
    {459, "lsm_get_self_attr", .a = {99, BUF, BUF, 0}},
    {460, "lsm_set_self_attr", .a = {99, BUF, 0, 0}},
    {461, "lsm_list_modules", .a = {BUF, BUF, 0}},
    {462, "mseal", .a = {0, 0, NONE}},
    {463, "setxattrat", .a = {CWD, NAME, 0, XATTR, BAD, 0}},
    {464, "getxattrat", .a = {CWD, NAME, 0, XATTR, BAD, 0}},
    {465, "listxattrat", .a = {CWD, NAME, 0, BUF, 4096}},
    {466, "removexattrat", .a = {CWD, NAME, 0, XATTR}},
    {467, "open_tree_attr", .a = {CWD, HERE, NONE, 0, 0}},
    {468, "file_getattr", .a = {CWD, NAME, BUF, 24, 0}},
    {469, "file_setattr", .a = {CWD, NAME, BAD, 24, 0}},
};

#define E(name) {name, #name}
static const struct { int number; const char *name; } errors[] = {
    E(EPERM), E(ENOENT), E(ESRCH), E(EINTR), E(EIO), E(ENXIO), E(E2BIG), E(ENOEXEC), E(EBADF),
    E(ECHILD), E(EAGAIN), E(ENOMEM), E(EACCES), E(EFAULT), E(ENOTBLK), E(EBUSY), E(EEXIST),
    E(EXDEV), E(ENODEV), E(ENOTDIR), E(EISDIR), E(EINVAL), E(ENOTTY), E(EFBIG), E(ENOSPC),
    E(ESPIPE), E(EROFS), E(EPIPE), E(ENOSYS), E(ENODATA), E(ENOTSOCK), E(ENOPROTOOPT),
    E(EPROTONOSUPPORT), E(EOPNOTSUPP), E(EAFNOSUPPORT), E(ENOKEY), E(EMSGSIZE), E(EDESTADDRREQ),
    E(ENOTCONN), E(ETIME), E(EOVERFLOW),
};
/* clang-format on */

/* What a child tells its parent; a call may close every descriptor. */
typedef struct answer {
    int done, error;
} answer;

static void interrupted(int number)
{
    (void)number;
}

/* The signal that ends a call: a caller may have left it blocked or ignored. */
static void unblock_alarm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGALRM, SIG_DFL);
}

/* Every 10 ms, so that the first one may come before the call. */
static void expect_signal(void)
{
    struct sigaction action = {.sa_handler = interrupted};
    struct itimerval often = {{0, 10000}, {0, 10000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static long value(long a)
{
    return a == SELF ? getpid() : a == OTHER ? (long)getuid() + getgid() + 1 : a;
}

static void make(const row *r, answer *said)
{
    pid_t maker = getpid();
    long got;
    if (r->waits)
        expect_signal();
    else
        (void)alarm(60);
    if (strcmp(r->name, "vfork") == 0) { /* through libc: the two returns share a stack */
        pid_t child = vfork();
        if (child == 0)
            _exit(0);
        got = child;
    } else {
        got = syscall(r->number, value(r->a[0]), value(r->a[1]), value(r->a[2]), value(r->a[3]),
                      value(r->a[4]), value(r->a[5]));
    }
    int error = errno;
    if (getpid() != maker)
        _exit(0);
    said->error = got == -1 ? error : 0;
    said->done = 1;
    _exit(0);
}

static void report(const row *r, const answer *said, int status)
{
    printf("%s ", r->name);
    if (!said->done && WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else if (!said->done)
        printf("ended\n");
    else if (said->error == 0)
        printf("ok\n");
    else {
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
            if (errors[i].number == said->error) {
                printf("%s\n", errors[i].name);
                return;
            }
        printf("E%d\n", said->error);
    }
}

/* The descriptors of the table. */
static int prepare(void)
{
    int pair[2], file = open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || dir < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return -1;
    return dup2(file, FILE_FD) < 0 || dup2(dir, DIR_FD) < 0 || dup2(pair[0], SOCK_FD) < 0 ? -1
                                                                                          : 0;
}

int main(void)
{
    answer *said =
        mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (said == MAP_FAILED || prepare() != 0) {
        perror("syscalls");
        return 1;
    }
    unblock_alarm();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        int status = 0;
        if (r->skip) {
            printf("%s not made: %s\n", r->name, r->skip);
            continue;
        }
        fflush(stdout);
        *said = (answer){0};
        pid_t child = fork();
        if (child == 0)
            make(r, said);
        if (child < 0 || waitpid(child, &status, 0) != child) {
            perror(r->name);
            return 1;
        }
        report(r, said, status);
    }
    return 0;
}
