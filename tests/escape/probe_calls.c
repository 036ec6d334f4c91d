/* probe_calls.c: system calls that a jail refuses, made with arguments that do nothing.
 *
 * A call that reaches the kernel answers EFAULT, EBADF or EINVAL to these arguments; the wall
 * answers EPERM or ENOSYS before any of that. So whatever is not a refusal is an escape. The
 * table test (seccomp_table.c) tries every number; here are the ones that matter, in the jail
 * as it is really built. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define NONE 0xffffffffu
#define BAD  (-1L)

/* The numbers of i386 are its own up to 423, and everybody's from 424 on. */
typedef struct call {
    const char *name;
    long number;
    uint32_t i386;
} call;

/* clang-format off */
static const call calls[] = {
    {"add_key", SYS_add_key, 286}, {"request_key", SYS_request_key, 287}, {"keyctl", SYS_keyctl, 288},
    {"bpf", SYS_bpf, 357}, {"perf_event_open", SYS_perf_event_open, 336},
    {"userfaultfd", SYS_userfaultfd, 374},
    {"io_uring_setup", 425, 425}, {"io_uring_enter", 426, 426}, {"io_uring_register", 427, 427},
    {"mount", SYS_mount, 21}, {"umount2", SYS_umount2, 52}, {"pivot_root", SYS_pivot_root, 217},
    {"chroot", SYS_chroot, 61}, {"open_tree", 428, 428}, {"move_mount", 429, 429},
    {"fsopen", 430, 430}, {"fsconfig", 431, 431}, {"fsmount", 432, 432}, {"fspick", 433, 433},
    {"mount_setattr", 442, 442}, {"statmount", 457, 457}, {"listmount", 458, 458},
    {"setns", SYS_setns, 346}, {"pidfd_getfd", 438, 438},
    {"init_module", SYS_init_module, 128}, {"finit_module", SYS_finit_module, 350},
    {"delete_module", SYS_delete_module, 129}, {"kexec_load", SYS_kexec_load, 283},
    {"syslog", SYS_syslog, 103}, {"reboot", SYS_reboot, 88}, {"swapon", SYS_swapon, 87},
    {"swapoff", SYS_swapoff, 115}, {"acct", SYS_acct, 51}, {"quotactl", SYS_quotactl, 131},
    {"open_by_handle_at", SYS_open_by_handle_at, 342},
    {"name_to_handle_at", SYS_name_to_handle_at, 341},
    {"fanotify_init", SYS_fanotify_init, 338}, {"fanotify_mark", SYS_fanotify_mark, 339},
    {"settimeofday", SYS_settimeofday, 79}, {"clock_settime", SYS_clock_settime, 264},
    {"adjtimex", SYS_adjtimex, 124}, {"sethostname", SYS_sethostname, 74},
    {"setdomainname", SYS_setdomainname, 121}, {"kcmp", SYS_kcmp, 349},
    {"move_pages", SYS_move_pages, 317}, {"migrate_pages", SYS_migrate_pages, 294},
    {"mbind", SYS_mbind, 274},
#ifdef SYS_iopl
    {"iopl", SYS_iopl, 110}, {"ioperm", SYS_ioperm, 101}, {"modify_ldt", SYS_modify_ldt, 123},
#endif
};
/* clang-format on */

static const call *find_call(const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    fprintf(stderr, "probe: no call %s\n", name);
    exit(2);
}

/* Whether it is a refusal: everything else came from behind the wall. */
static int judge(int e)
{
    detail("errno %d", e);
    return e == EPERM || e == ENOSYS || e == EAFNOSUPPORT || e == EPROTONOSUPPORT ? e : 0;
}

static int try_call(char **a)
{
    const call *c = find_call(a[0]);

    return judge(syscall(c->number, BAD, BAD, BAD, BAD, BAD, BAD) < 0 ? errno : 0);
}

/* The same through the other table: a filter for one ABI only is no filter. */
static int try_i386(char **a)
{
    long rc = call_i386(find_call(a[0])->i386, NONE, NONE, NONE, NONE);

    return rc == NO_I386 ? ENOSYS : judge(rc < 0 ? (int)-rc : 0);
}

static int try_x32(char **a)
{
    long rc = syscall(0x40000000 | find_call(a[0])->number, BAD, BAD, BAD, BAD, BAD, BAD);

    return judge(rc < 0 ? errno : 0);
}

static int try_all_names(char **a)
{
    (void)a;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        printf("%s\n", calls[i].name);
    return SAID;
}

/* FAMILY TYPE PROTOCOL, as numbers. EINVAL and the like come from behind the wall; EPERM of the
 * kernel, for raw sockets of a user without capabilities, looks the same: hence the control. */
static int try_socket(char **a)
{
    int fd = socket(number(a[0]), number(a[1]), number(a[2]));

    return judge(fd < 0 ? errno : 0);
}

static int try_personality(char **a)
{
    return judge(personality(strtoul(a[0], NULL, 0)) < 0 ? errno : 0);
}

const attempt call_attempts[] = {{"call", 1, try_call},
                                 {"call-i386", 1, try_i386},
                                 {"call-x32", 1, try_x32},
                                 {"call-names", 0, try_all_names},
                                 {"socket", 3, try_socket},
                                 {"personality", 1, try_personality},
                                 {NULL, 0, NULL}};
