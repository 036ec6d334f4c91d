/* seccomp_table.c: the wall as the kernel keeps it.
 *
 * Every number of every ABI is called for real, each in a child of its own, behind the wall
 * and, as the control, without it. A refused call must give exactly the written errno; an
 * allowed one what it gives without the wall. The control also proves that the tests can fail:
 * without the wall most refused calls answer something else. All arguments are -1: bad
 * pointers, descriptors and flags, so that no call does anything. Then both sides of each
 * condition, and ordinary programs. CSN_MUST_WORK=1 turns a missing program or ABI into a
 * failure. */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "os/seccomp.h"
#include "seccomp_oracle.h"

#define NO_WALL    UINT32_MAX
#define LAST_TRIED 500u
#define X32_BIT    0x40000000u
#define ONES                                                                                   \
    {                                                                                          \
        ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull                                               \
    }

typedef struct attempt {
    const oracle_abi *abi;
    uint32_t variant, number;
    uint64_t args[6];
    long *result; /* shared with the child */
} attempt;

static long *shared;

/* Not called, and why. */
static const struct {
    const char *call, *why;
} skipped[] = {
    {"exit", "ends the child"},
    {"exit_group", "ends the child"},
    {"fork", "two children would answer"},
    {"vfork", "two children would answer"},
    {"pause", "waits for ever"},
    {"sigsuspend", "waits for ever"},
    {"rt_sigreturn", "takes the stack for a signal frame"},
    {"sigreturn", "takes the stack for a signal frame"},
    {"msgget", "makes a queue that outlives the child"},
    {"uretprobe", "raises SIGILL unless the kernel made the call"},
    {"uprobe", "raises SIGILL unless the kernel made the call"},
};

/* ---- calling ---- */

static bool must_work(void)
{
    const char *e = getenv("CSN_MUST_WORK");

    return e && *e && strcmp(e, "0") != 0;
}

/* The kernel's answer: negative errno, or the result. No libc between. */
static long call_raw(const oracle_abi *abi, uint32_t number, const uint64_t a[6])
{
#if defined(__x86_64__)
    long ret;

    if (abi == &oracle_i386) {
        int ret32;
        __asm__ volatile("int $0x80"
                         : "=a"(ret32)
                         : "a"(number), "b"((uint32_t)a[0]), "c"((uint32_t)a[1]),
                           "d"((uint32_t)a[2]), "S"((uint32_t)a[3]), "D"((uint32_t)a[4])
                         : "memory", "r8", "r9", "r10", "r11");
        return ret32;
    }
    register uint64_t r10 __asm__("r10") = a[3];
    register uint64_t r8 __asm__("r8") = a[4];
    register uint64_t r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"((uint64_t)number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10),
                       "r"(r8), "r"(r9)
                     : "memory", "rcx", "r11");
    return ret;
#else
    (void)abi;
    long ret = syscall((long)number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return ret == -1 ? -errno : ret;
#endif
}

static void attempt_in_child(const attempt *t)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    alarm(5);
    prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L); /* the control differs by the wall alone */
    if (t->variant != NO_WALL && csn_seccomp_install(t->variant) != 0)
        _exit(2);
    *t->result = call_raw(t->abi, t->number, t->args);
    syscall(SYS_exit_group, 0);
}

/* -errno, 0 for any success, or 1000 + signal. A plain fork: 2000 of these are made. */
static long try_call(const oracle_abi *abi, uint32_t variant, uint32_t number,
                     const uint64_t args[6])
{
    attempt t = {.abi = abi, .variant = variant, .number = number, .result = shared};
    int ws = 0;

    memcpy(t.args, args, sizeof(t.args));
    *shared = 5000;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        attempt_in_child(&t);
    assert_int_equal(waitpid(pid, &ws, 0), pid);
    if (WIFSIGNALED(ws))
        return 1000 + WTERMSIG(ws);
    assert_int_equal(WEXITSTATUS(ws), 0);
    return *shared < 0 && *shared > -4096 ? *shared : 0;
}

static const char *why_skipped(const char *call)
{
    for (size_t i = 0; call && i < ORACLE_COUNT(skipped); i++) {
        if (strcmp(skipped[i].call, call) == 0)
            return skipped[i].why;
    }
    return NULL;
}

/* ---- every number ---- */

typedef struct tally {
    int refused, allowed, wrong, skipped;
    int control_differs; /* refused calls that answer something else without the wall */
} tally;

static void try_number(const oracle_abi *abi, uint32_t variant, uint32_t number, tally *sum)
{
    const uint64_t args[6] = ONES;
    const char *call = oracle_name(abi, number);

    if (why_skipped(call)) {
        sum->skipped++;
        return;
    }
    int e = oracle_errno(abi, variant, number, args);
    bool quiet = call && strcmp(call, "vhangup") == 0; /* would do it without the wall */
    long control = quiet ? 0 : try_call(abi, NO_WALL, number, args);
    long got = try_call(abi, variant, number, args);
    long want = e == 0 ? control : -e;
    sum->refused += e != 0;
    sum->allowed += e == 0;
    sum->control_differs += e != 0 && control != got;
    if (got == want)
        return;
    sum->wrong++;
    print_error("%s %u (%s) variant %u: %ld, not %ld\n", abi->name, number, call ? call : "?",
                variant, got, want);
}

static tally try_all(const oracle_abi *abi, uint32_t variant)
{
    tally sum = {0};

    for (uint32_t n = 0; n <= LAST_TRIED; n++)
        try_number(abi, variant, n, &sum);
    print_message(
        "# %s variant %u: %d refused, %d as without the wall, %d skipped; without the "
        "wall %d refused ones answer something else\n",
        abi->name, variant, sum.refused, sum.allowed, sum.skipped, sum.control_differs);
    return sum;
}

static void every_native_number_answers_as_written(void **state)
{
    (void)state;
    tally sum = try_all(&ORACLE_NATIVE, CSN_SECCOMP_DEFAULT);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.control_differs >= (geteuid() == 0 ? 45 : 15));
    assert_int_equal(try_all(&ORACLE_NATIVE, CSN_SECCOMP_USERNS | CSN_SECCOMP_NOSUID).wrong, 0);
}

static void every_i386_number_answers_as_written(void **state)
{
    const uint64_t args[6] = {0};

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    if (try_call(&oracle_i386, NO_WALL, 20 /* getpid */, args) != 0) {
        print_message("# skipped: this kernel runs no i386 calls\n");
        assert_false(must_work());
        skip();
    }
    tally sum = try_all(&oracle_i386, CSN_SECCOMP_DEFAULT);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.control_differs >= (geteuid() == 0 ? 45 : 15));
}

static void every_x32_number_answers_enosys(void **state)
{
    const uint64_t args[6] = ONES;

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    for (uint32_t n = 0; n <= 560; n++)
        assert_int_equal(try_call(&oracle_x86_64, CSN_SECCOMP_DEFAULT, X32_BIT | n, args),
                         -ENOSYS);
}

/* ---- both sides of each condition ---- */

typedef struct side {
    const char *call;
    uint64_t args[6];
    int want; /* errno; 0: as without the wall */
} side;

#define UPPER 0xdead00000000ull /* garbage that the kernel does not look at */

static const side default_sides[] = {
    {"clone", {0x10000000 | SIGCHLD}, EPERM},             /* CLONE_NEWUSER */
    {"clone", {0x40000000 | SIGCHLD}, EPERM},             /* CLONE_NEWNET */
    {"clone", {0x20000 | SIGCHLD}, EPERM},                /* CLONE_NEWNS */
    {"clone", {UPPER | 0x10000000 | SIGCHLD}, EPERM},     /* with garbage above */
    {"clone", {0x10000 /* THREAD without SIGHAND */}, 0}, /* EINVAL of the kernel's */
    {"unshare", {0x10000000}, EPERM},
    {"unshare", {0x80 /* CLONE_NEWTIME */}, EPERM},
    {"unshare", {0x400 /* CLONE_FILES */}, 0},
    {"unshare", {0x200 /* CLONE_FS */}, 0},
    {"clone3", {0, 0}, ENOSYS},
    {"socket", {1, 1}, 0},
    {"socket", {1, 5 | SOCK_CLOEXEC}, 0},
    {"socket", {2, 1}, 0},
    {"socket", {2, 2 | SOCK_NONBLOCK | SOCK_CLOEXEC, 17}, 0},
    {"socket", {2, 2, 1}, 0}, /* ping */
    {"socket", {10, 1, 6}, 0},
    {"socket", {16, 3, 0}, 0},
    {"socket", {UPPER | 2, UPPER | 1, UPPER}, 0},
    {"socket", {16, 3, 9}, EPROTONOSUPPORT},  /* audit */
    {"socket", {16, 3, 12}, EPROTONOSUPPORT}, /* netfilter */
    {"socket", {2, 3, 1}, EPERM},
    {"socket", {2, 3 | SOCK_CLOEXEC, 255}, EPERM},
    {"socket", {UPPER | 2, UPPER | 3, 1}, EPERM},
    {"socket", {2, 10, 0x300}, EPERM}, /* SOCK_PACKET */
    {"socket", {10, 3, 58}, EPERM},
    {"socket", {2, 1, 132}, EPROTONOSUPPORT}, /* SCTP */
    {"socket", {2, 1, 262}, EPROTONOSUPPORT}, /* MPTCP */
    {"socket", {17, 3, 0x300}, EAFNOSUPPORT}, /* packet */
    {"socket", {40, 1, 0}, EAFNOSUPPORT},     /* vsock */
    {"socket", {38, 5, 0}, EAFNOSUPPORT},     /* alg */
    {"socket", {15, 3, 2}, EAFNOSUPPORT},     /* key */
    {"socket", {44, 3, 0}, EAFNOSUPPORT},     /* xdp */
    {"socket", {29, 3, 1}, EAFNOSUPPORT},     /* can */
    {"socket", {31, 3, 1}, EAFNOSUPPORT},     /* bluetooth */
    {"socket", {30, 1, 0}, EAFNOSUPPORT},     /* tipc */
    {"socket", {21, 5, 0}, EAFNOSUPPORT},     /* rds */
    {"socket", {UPPER | 40, 1, 0}, EAFNOSUPPORT},
    {"socketpair", {1, 1, 0, ~0ull}, 0},
    {"socketpair", {30, 1, 0, ~0ull}, EAFNOSUPPORT},
    {"ioctl", {~0ull, 0x5401 /* TCGETS */}, 0},
    {"ioctl", {~0ull, 0x5413 /* TIOCGWINSZ */}, 0},
    {"ioctl", {~0ull, 0x5412 /* TIOCSTI */}, EPERM},
    {"ioctl", {~0ull, UPPER | 0x5412}, EPERM},
    {"ioctl", {~0ull, 0xffffffff00005412}, EPERM},
    {"ioctl", {~0ull, 0x541c /* TIOCLINUX */}, EPERM},
    {"ioctl", {~0ull, UPPER | 0x5423 /* TIOCSETD */}, EPERM},
    {"personality", {0xffffffff}, 0},
    {"personality", {0}, 0},
    {"personality", {0x40000 /* ADDR_NO_RANDOMIZE */}, 0},
    {"personality", {8 /* PER_LINUX32 */}, 0},
    {"personality", {0x400000 /* READ_IMPLIES_EXEC */}, EPERM},
    {"personality", {0x100000 /* MMAP_PAGE_ZERO */}, EPERM},
    {"mknodat", {~0ull, ~0ull, 0010644}, 0},
    {"mknodat", {~0ull, ~0ull, 0020644}, EPERM},
    {"mknodat", {~0ull, ~0ull, UPPER | 0060644}, EPERM},
    {"renameat2", {~0ull, ~0ull, ~0ull, ~0ull, 3 /* NOREPLACE, EXCHANGE */}, 0},
    {"renameat2", {~0ull, ~0ull, ~0ull, ~0ull, UPPER | 5 /* WHITEOUT, NOREPLACE */}, EINVAL},
    {"fchmod", {~0ull, 04755}, 0},
    {"openat", {~0ull, ~0ull, O_CREAT, 04755}, 0},
    {"setuid", {4242}, EPERM},
    {"setuid", {UPPER | 4242}, EPERM},
    {"setuid", {UPPER | UINT32_MAX}, 0}, /* EINVAL of the kernel's */
    {"setgid", {4242}, EPERM},
    {"setreuid", {4242, UINT32_MAX}, EPERM},
    {"setreuid", {UINT32_MAX, 4242}, EPERM},
    {"setreuid", {UINT32_MAX, UPPER | UINT32_MAX}, 0},
    {"setregid", {UINT32_MAX, 4242}, EPERM},
    {"setresuid", {4242, UINT32_MAX, UINT32_MAX}, EPERM},
    {"setresuid", {UINT32_MAX, UINT32_MAX, UPPER | 4242}, EPERM},
    {"setresuid", {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0},
    {"setresgid", {UINT32_MAX, UINT32_MAX, 4242}, EPERM},
    {"setresgid", {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0},
    {"chown", {~0ull, 4242, UINT32_MAX}, EPERM},
    {"chown", {~0ull, UINT32_MAX, 4242}, EPERM},
    {"chown", {~0ull, UINT32_MAX, UINT32_MAX}, 0},
    {"lchown", {~0ull, 4242, 4242}, EPERM},
    {"fchown", {~0ull, UPPER | 4242, UINT32_MAX}, EPERM},
    {"fchown", {~0ull, UPPER | UINT32_MAX, UINT32_MAX}, 0},
    {"fchownat", {~0ull, ~0ull, 4242, UINT32_MAX}, EPERM},
    {"fchownat", {~0ull, ~0ull, UINT32_MAX, 4242}, EPERM},
    {"fchownat", {~0ull, ~0ull, UINT32_MAX, UINT32_MAX, 4242}, 0},
};

static const side i386_sides[] = {
    {"setuid32", {4242}, EPERM},
    {"setgid32", {4242}, EPERM},
    {"setreuid32", {UINT32_MAX, 4242}, EPERM},
    {"setregid32", {UINT32_MAX, 4242}, EPERM},
    {"setresuid32", {UINT32_MAX, UINT32_MAX, 4242}, EPERM},
    {"setresuid32", {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0},
    {"setresgid32", {UINT32_MAX, 4242, UINT32_MAX}, EPERM},
    {"chown32", {~0ull, 4242, UINT32_MAX}, EPERM},
    {"lchown32", {~0ull, UINT32_MAX, 4242}, EPERM},
    {"fchown32", {~0ull, 4242, UINT32_MAX}, EPERM},
    {"fchown32", {~0ull, UINT32_MAX, UINT32_MAX}, 0},
    {"fchownat", {~0ull, ~0ull, UINT32_MAX, 4242}, EPERM},
    {"fchown", {~0ull, 0xffff, 4242}, 0}, /* ids of 16 bits */
};

static const side nosuid_sides[] = {
    {"fchmod", {~0ull, 04755}, EPERM},
    {"fchmod", {~0ull, UPPER | 02755}, EPERM},
    {"fchmod", {~0ull, 01777}, 0},
    {"fchmodat", {~0ull, ~0ull, 06755}, EPERM},
    {"fchmodat", {~0ull, ~0ull, 0755}, 0},
    {"fchmodat2", {~0ull, ~0ull, 04755}, EPERM},
    {"openat", {~0ull, ~0ull, O_CREAT, 04755}, EPERM},
    {"openat", {~0ull, ~0ull, O_TMPFILE, 04755}, EPERM},
    {"openat", {~0ull, ~0ull, O_CREAT, 0755}, 0},
    {"openat", {~0ull, ~0ull, O_RDONLY, 04755 /* not looked at */}, 0},
    {"openat2", {~0ull, ~0ull, ~0ull, 24}, ENOSYS},
    {"mknodat", {~0ull, ~0ull, 0104755}, EPERM},
    {"mknodat", {~0ull, ~0ull, 0100755}, 0},
    {"unshare", {0x10000000}, EPERM},
};

static const side alone_sides[] = {
    {"socket", {1, 1, 0}, EACCES},
    {"socket", {UPPER | 2, 1, 0}, EACCES},
    {"socket", {10, 2, 0}, EACCES},
    {"socket", {16, 3, 0}, EACCES},
    {"socketpair", {1, 1, 0, ~0ull}, 0},
    {"socketpair", {1, 5 | 02000000 /* SOCK_CLOEXEC */, 0, ~0ull}, 0},
    {"socketpair", {1, 2, 0, ~0ull}, EACCES},
    {"socketpair", {1, 3, 0, ~0ull}, EACCES},
    {"shmget", {0, 4096, 0}, ENOSYS},
    {"shmat", {~0ull, 0, 0}, ENOSYS},
    {"msgget", {0, 0}, ENOSYS},
    {"mq_unlink", {~0ull}, ENOSYS},
    {"fchown", {~0ull, 4242, 4242}, 0},
    {"setresuid", {4242, 4242, 4242}, 0},
};

static const side nested_sides[] = {
    {"unshare", {0x10000000}, 0},
    {"clone3", {0, 0}, 0},
    {"setns", {~0ull, 0}, 0},
    {"mount", {~0ull, ~0ull, ~0ull, 0, 0}, 0},
    {"umount2", {~0ull, 0}, 0},
    {"open_tree", {~0ull, 0, 0x80001}, 0},
    {"open_tree", {~0ull, 0, 2 /* OPEN_TREE_NAMESPACE */}, EPERM},
    {"open_tree", {~0ull, 0, UPPER | 3}, EPERM},
    {"open_tree_attr", {~0ull, 0, 1}, EPERM},
    {"fsmount", {~0ull, 1, 0}, 0},
    {"fsmount", {~0ull, 2 /* FSMOUNT_NAMESPACE */, 0}, EPERM},
    {"move_mount", {~0ull, 0, ~0ull, 0, 4}, 0},
    {"move_mount", {~0ull, 0, ~0ull, 0, 0x200 /* MOVE_MOUNT_BENEATH */}, EPERM},
    {"listmount", {0, 0, 0, 0}, ENOSYS},
    {"keyctl", {0, 0, 0}, EPERM},
    {"bpf", {~0ull}, EPERM},
    {"socket", {40, 1, 0}, EAFNOSUPPORT},
    {"ioctl", {~0ull, 0x5412}, EPERM},
    {"fchown", {~0ull, 4242, 4242}, 0},
    {"setresuid", {4242, 4242, 4242}, 0},
};

static int wrong_sides(const oracle_abi *abi, uint32_t variant, const side *sides, size_t count)
{
    int wrong = 0;

    for (size_t i = 0; i < count; i++) {
        int n = oracle_number(abi, sides[i].call);
        if (n < 0)
            continue; /* mknod and the like on newer ABIs */
        long want =
            sides[i].want ? -sides[i].want : try_call(abi, NO_WALL, (uint32_t)n, sides[i].args);
        long got = try_call(abi, variant, (uint32_t)n, sides[i].args);
        if (got != want && variant != NO_WALL)
            print_error("%s row %zu variant %u: %ld, not %ld\n", sides[i].call, i, variant, got,
                        want);
        wrong += got != want;
    }
    return wrong;
}

static void conditions_hold_on_both_sides(void **state)
{
    (void)state;
    assert_int_equal(wrong_sides(&ORACLE_NATIVE, CSN_SECCOMP_DEFAULT, default_sides,
                                 ORACLE_COUNT(default_sides)),
                     0);
    assert_int_equal(wrong_sides(&ORACLE_NATIVE, CSN_SECCOMP_NOSUID, nosuid_sides,
                                 ORACLE_COUNT(nosuid_sides)),
                     0);
    assert_int_equal(wrong_sides(&ORACLE_NATIVE, CSN_SECCOMP_USERNS, nested_sides,
                                 ORACLE_COUNT(nested_sides)),
                     0);
    assert_int_equal(wrong_sides(&ORACLE_NATIVE, CSN_SECCOMP_NO_SOCKETS, alone_sides,
                                 ORACLE_COUNT(alone_sides)),
                     0);
    assert_true(wrong_sides(&ORACLE_NATIVE, NO_WALL, default_sides,
                            ORACLE_COUNT(default_sides)) > 15); /* control */
}

static void i386_conditions_hold_on_both_sides(void **state)
{
    const uint64_t args[6] = {0};

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    if (try_call(&oracle_i386, NO_WALL, 20 /* getpid */, args) != 0) {
        assert_false(must_work());
        skip();
    }
    assert_int_equal(
        wrong_sides(&oracle_i386, CSN_SECCOMP_DEFAULT, i386_sides, ORACLE_COUNT(i386_sides)),
        0);
}

static void i386_socketcall_hides_no_socket(void **state)
{
    const uint64_t make[6] = {1}, pair[6] = {8}, recv[6] = {10, ~0ull};

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    if (try_call(&oracle_i386, NO_WALL, 20, make) != 0) {
        assert_false(must_work());
        skip();
    }
    assert_int_equal(try_call(&oracle_i386, NO_WALL, 102, make), -EFAULT);
    assert_int_equal(try_call(&oracle_i386, CSN_SECCOMP_DEFAULT, 102, make), -EPERM);
    assert_int_equal(try_call(&oracle_i386, CSN_SECCOMP_DEFAULT, 102, pair), -EPERM);
    assert_int_equal(try_call(&oracle_i386, CSN_SECCOMP_DEFAULT, 102, recv), -EFAULT);
}

/* ---- ordinary work ---- */

/* A shell line behind the wall, in a directory of its own. 0: it ended with 0. */
static int work(void *ctx)
{
    char dir[] = "/tmp/csn-seccomp-XXXXXX";

    if (!mkdtemp(dir) || chdir(dir) < 0)
        return 90;
    pid_t pid = fork();
    if (pid == 0) {
        unsetenv("LD_PRELOAD");
        setenv("HOME", dir, 1);
        setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
        if (csn_seccomp_install(CSN_SECCOMP_DEFAULT) != 0)
            _exit(91);
        execlp("timeout", "timeout", "-k", "1", "45", "bash", "-ec", (const char *)ctx,
               (char *)NULL); /* kills what the line left running, too */
        _exit(92);
    }
    int ws = -1;
    waitpid(pid, &ws, 0);
    if (chdir("/") == 0 && fork() == 0) {
        execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(93);
    }
    return WIFEXITED(ws) ? WEXITSTATUS(ws) : 94;
}

static void ordinary_programs_do_not_notice_the_wall(void **state)
{
    static const struct {
        const char *program, *line;
    } jobs[] = {
        {"gcc", "printf 'int main(void){return 0;}' > a.c && gcc -O2 -pthread a.c -o a && ./a"},
        {"make",
         "printf 'all: x y\\nx y:\\n\\t@echo $@ > $@\\n' > Makefile && make -j2 && test -s y"},
        {"git",
         "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty "
         "-m c && git log --oneline | grep -q c && git gc -q"},
        {"python3",
         "python3 -c 'import threading as t; a=[t.Thread(target=print) for i in range(9)];"
         "[x.start() for x in a]; [x.join() for x in a]' > out && test $(wc -l < out) = 9"},
        {"python3",
         "python3 -c 'import socket as s,threading as t; l=s.create_server((\"127.0.0.1\",0));"
         "t.Thread(target=lambda: l.accept()[0].sendall(b\"ok\"),daemon=True).start();"
         "c=s.create_connection(l.getsockname()); assert c.recv(2)==b\"ok\";"
         "u=s.socket(s.AF_UNIX); u.bind(\"./u\"); u.listen(); s.socketpair();"
         "assert s.if_nameindex()'"},
        {"python3",
         "python3 -c 'import pty,sys; sys.exit(pty.spawn([\"tty\"]))' < /dev/null > /dev/null"},
        {"python3", "python3 -c 'import multiprocessing as m; p=m.Pool(2); "
                    "assert p.map(abs,[-1,-2])==[1,2]; p.terminate()'"},
        {"node",
         "node -e 'require(\"http\").createServer((q,r)=>r.end(\"x\")).listen(0,function(){"
         "require(\"http\").get({port:this.address().port},r=>r.on(\"data\",d=>"
         "process.exit(d==\"x\"?0:1)))})'"},
        {"strace", "strace -f -o log sh -c '/bin/true; :' && grep -q execve log"},
        {"gdb",
         "gdb -nx -batch -ex run -ex 'info inferiors' /bin/true 2>&1 | tee log | grep -q "
         "'exited normally' && ! grep -q 'disabling address space randomization' log"},
        {"tar", "mkdir d && echo x > d/f && mkfifo d/p && tar cf t.tar d && tar tf t.tar | "
                "grep -q d/f"},
        {"setarch", "setarch -R true && setarch linux32 true"},
        {"ip", "ip addr > out && test -s out"},
    };
    int failed = 0;

    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(jobs); i++) {
        char line[1024];
        snprintf(line, sizeof(line), "command -v %s > /dev/null || exit 77; %s",
                 jobs[i].program, jobs[i].line);
        csn_child_end end = csn_child_run(work, line, -1, 60000);
        if (end.exit_code == 77)
            print_message("# skipped: no %s here\n", jobs[i].program);
        else if (end.exit_code != 0)
            print_error("%s ends with %d: %s\n", jobs[i].program, end.exit_code, jobs[i].line);
        failed += end.exit_code != 0 && (end.exit_code != 77 || must_work());
    }
    assert_int_equal(failed, 0);
}

static int setup(void **state)
{
    (void)state;
    shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return munmap(shared, sizeof(*shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_native_number_answers_as_written),
        cmocka_unit_test(every_i386_number_answers_as_written),
        cmocka_unit_test(every_x32_number_answers_enosys),
        cmocka_unit_test(conditions_hold_on_both_sides),
        cmocka_unit_test(i386_conditions_hold_on_both_sides),
        cmocka_unit_test(i386_socketcall_hides_no_socket),
        cmocka_unit_test(ordinary_programs_do_not_notice_the_wall),
    };

    (void)setsid(); /* no call here may reach a terminal */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
