/* os_seccomp.c: the compiled programs against the table they were compiled from.
 *
 * The programs of every processor family are run here by a small interpreter, for every number
 * and for arguments drawn around what the table names, and must answer as the table says. Then
 * the table itself against lists written down a second time, so that a lost row is seen; and
 * what installing does to a process. What the kernel makes of it is in
 * tests/escape/seccomp_table.c. */
#include "os/seccomp.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define CSN_SECCOMP_FAMILIES /* all programs, not only this processor's */
#include "child.h"
#include "seccomp_filters.inc"
#include "seccomp_oracle.h"

#define ALLOW     0x7fff0000u
#define ERRNO     0x00050000u
#define NOTHING   UINT32_MAX /* the program is broken */
#define STEPS_HOT 14         /* most instructions for a call that is made all the time */

typedef struct family {
    const csn_seccomp_program *programs;
    const oracle_abi *abis[2];
} family;

static const family families[] = {
    {x86_64_filters, {&oracle_x86_64, &oracle_i386}},
    {aarch64_filters, {&oracle_aarch64, &oracle_arm}},
};

/* clang-format off */
typedef struct numbered {
    const char *call;
    int number;
} numbered;

static const numbered native_numbers[] = {
    {"mount", SYS_mount}, {"umount2", SYS_umount2}, {"unshare", SYS_unshare},
    {"setns", SYS_setns}, {"clone", SYS_clone}, {"clone3", SYS_clone3}, {"bpf", SYS_bpf},
    {"ioctl", SYS_ioctl}, {"socket", SYS_socket}, {"keyctl", SYS_keyctl},
    {"add_key", SYS_add_key}, {"reboot", SYS_reboot}, {"personality", SYS_personality},
    {"io_uring_setup", SYS_io_uring_setup}, {"userfaultfd", SYS_userfaultfd},
    {"perf_event_open", SYS_perf_event_open}, {"move_mount", SYS_move_mount},
    {"mount_setattr", SYS_mount_setattr}, {"openat2", SYS_openat2}, {"fchmodat", SYS_fchmodat},
    {"pidfd_getfd", SYS_pidfd_getfd}, {"futex_waitv", SYS_futex_waitv},
};

static const numbered i386_numbers[] = {
    {"mount", 21}, {"umount", 22}, {"stime", 25}, {"ioctl", 54}, {"socketcall", 102},
    {"clone", 120}, {"init_module", 128}, {"personality", 136}, {"vm86", 166}, {"keyctl", 288},
    {"unshare", 310}, {"perf_event_open", 336}, {"bpf", 357}, {"socket", 359},
    {"socketpair", 360}, {"clock_settime64", 404}, {"io_uring_setup", 425},
};

static const numbered aarch64_numbers[] = {
    {"ioctl", 29}, {"mount", 40}, {"unshare", 97}, {"reboot", 142}, {"socket", 198},
    {"clone", 220}, {"bpf", 280}, {"clone3", 435},
};

/* The policy written down again: a row that is lost from the table is missed here. */
static const char *const refused[] = {
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount",
    "open_tree_attr", "setns", "clone3", "bpf", "perf_event_open", "keyctl", "add_key",
    "request_key", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "iopl", "ioperm", "swapon", "swapoff", "reboot", "quotactl",
    "quotactl_fd", "acct", "syslog", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "nfsservctl", "lookup_dcookie", "open_by_handle_at", "name_to_handle_at",
    "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "fanotify_init",
    "vhangup", "uselib", "ustat", "sysfs", "_sysctl", "create_module", "query_module",
    "get_kernel_syms", "move_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node",
    "migrate_pages", "pidfd_getfd", "kcmp", "modify_ldt", "sethostname", "setdomainname",
};

/* Calls that set ids: which arguments are user ids and group ids, as bits. */
static const struct {
    const char *call;
    unsigned uids, gids;
} setters[] = {
    {"chown", 2, 4}, {"lchown", 2, 4}, {"fchown", 2, 4}, {"fchownat", 4, 8},
    {"setuid", 1, 0}, {"setreuid", 3, 0}, {"setresuid", 7, 0},
    {"setgid", 0, 1}, {"setregid", 0, 3}, {"setresgid", 0, 7},
};

static const char *const allowed[] = {
    "ptrace", "process_vm_readv", "process_vm_writev", "seccomp", "prctl",
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "memfd_create",
    "memfd_secret", "map_shadow_stack", "lsm_get_self_attr", "lsm_set_self_attr", "mseal",
    "pidfd_open", "pidfd_send_signal", "process_madvise", "futex_waitv", "futex_wait",
    "membarrier", "rseq", "io_setup", "shmget", "mlockall", "openat2", "close_range",
    "epoll_pwait2", "uretprobe", "statx", "fchmodat2", "file_setattr", "setxattrat",
    "get_mempolicy", "sched_setattr",
};
/* clang-format on */

/* As the kernel runs it over struct seccomp_data; *ret_steps counts instructions. */
static uint32_t run(const csn_seccomp_program *p, uint32_t arch, uint32_t number,
                    const uint64_t args[6], int *ret_steps)
{
    uint32_t data[16] = {number, arch, 0x1234, 0}, acc = 0;
    uint32_t pc = 0;

    for (int i = 0; i < 6; i++) {
        data[4 + 2 * i] = (uint32_t)args[i];
        data[5 + 2 * i] = (uint32_t)(args[i] >> 32);
    }
    for (*ret_steps = 1; pc < p->len; (*ret_steps)++) {
        const csn_seccomp_insn *in = &p->insns[pc++];
        switch (in->code) {
        case 0x20:
            if (in->k % 4 != 0 || in->k >= sizeof(data))
                return NOTHING;
            acc = data[in->k / 4];
            break;
        case 0x54:
            acc &= in->k;
            break;
        case 0x05:
            pc += in->k;
            break;
        case 0x15:
            pc += acc == in->k ? in->jt : in->jf;
            break;
        case 0x35:
            pc += acc >= in->k ? in->jt : in->jf;
            break;
        case 0x45:
            pc += acc & in->k ? in->jt : in->jf;
            break;
        case 0x06:
            return in->k;
        default: /* the kernel could not tell at install time what is always allowed */
            return NOTHING;
        }
    }
    return NOTHING;
}

static uint64_t dice(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Arguments near what a row of the call looks at: its values, its bits, with and without
 * garbage in the upper half. */
static void draw_args(const char *call, uint64_t args[6])
{
    for (int i = 0; i < 6; i++)
        args[i] = dice() % 4 == 0 ? dice() : dice() % 20;
    for (size_t i = 0; call && i < ORACLE_COUNT(csn_seccomp_rules); i++) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        for (int c = 0; c < CSN_SECCOMP_CONDS && strcmp(r->call, call) == 0; c++) {
            const csn_seccomp_cond *cond = &r->conds[c];
            if (cond->op == CSN_COND_NONE || dice() % 3 == 0)
                continue;
            uint64_t v = cond->values[dice() % cond->count];
            if (cond->mask != UINT32_MAX)
                v |= dice() % 2 ? dice() & ~cond->mask & UINT32_MAX : 1u << dice() % 32;
            if (dice() % 4 == 0)
                v ^= 1u << dice() % 32;
            if (dice() % 2)
                v |= dice() << 32;
            args[cond->arg] = v;
        }
    }
}

static int has_rows(const char *call)
{
    int rows = 0;

    for (size_t i = 0; call && i < ORACLE_COUNT(csn_seccomp_rules); i++)
        rows += strcmp(csn_seccomp_rules[i].call, call) == 0 &&
                csn_seccomp_rules[i].conds[0].op != CSN_COND_NONE;
    return rows;
}

/* How many draws for this number get another answer than the table's. */
static int wrong_answers(const csn_seccomp_program *p, const oracle_abi *abi, uint32_t variant,
                         uint32_t number)
{
    const char *call = oracle_name(abi, number);
    int draws = has_rows(call) ? 2000 : 4, wrong = 0, steps;

    for (int i = 0; i < draws; i++) {
        uint64_t args[6];
        draw_args(call, args);
        int e = oracle_errno(abi, variant, number, args);
        uint32_t want = e == 0 ? ALLOW : ERRNO | (uint32_t)e;
        uint32_t got = run(p, abi->audit, number, args, &steps);
        if (got == want)
            continue;
        if (wrong++ == 0)
            print_error("%s variant %u: call %u (%s): %#x, not %#x\n", abi->name, variant,
                        number, call ? call : "?", got, want);
    }
    return wrong;
}

static void programs_answer_as_the_table_on_every_abi(void **state)
{
    static const uint32_t far[] = {0x000f0000, 0x000f0001, 0x000f0005, 0x000f0006, 0x000f0007,
                                   0x3fffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    int wrong = 0;

    (void)state;
    for (size_t f = 0; f < ORACLE_COUNT(families); f++) {
        for (uint32_t v = 0; v < CSN_SECCOMP_VARIANTS; v++) {
            const csn_seccomp_program *p = &families[f].programs[v];
            for (size_t a = 0; a < 2; a++) {
                const oracle_abi *abi = families[f].abis[a];
                for (uint32_t n = 0; n < 1100; n++) {
                    wrong += wrong_answers(p, abi, v, n);
                    wrong += wrong_answers(p, abi, v, 0x40000000u + n); /* x32 */
                }
                for (size_t i = 0; i < ORACLE_COUNT(far); i++)
                    wrong += wrong_answers(p, abi, v, far[i]);
            }
        }
    }
    assert_int_equal(wrong, 0);
}

static void foreign_architectures_get_enosys_for_everything(void **state)
{
    static const uint32_t foreign[] = {0, 0x00000008 /* mips */, 0xc000f032, 0xffffffff};
    const uint64_t args[6] = {0};
    int steps;

    (void)state;
    for (size_t f = 0; f < ORACLE_COUNT(families); f++) {
        for (size_t i = 0; i < ORACLE_COUNT(foreign); i++) {
            for (uint32_t n = 0; n < 500; n++)
                assert_int_equal(run(&families[f].programs[0], foreign[i], n, args, &steps),
                                 ERRNO | ENOSYS);
        }
        uint32_t other = families[1 - f].abis[0]->audit;
        assert_int_equal(run(&families[f].programs[0], other, 0, args, &steps), ERRNO | ENOSYS);
    }
}

static void names_mean_the_numbers_of_the_system_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(native_numbers); i++)
        assert_int_equal(oracle_number(&ORACLE_NATIVE, native_numbers[i].call),
                         native_numbers[i].number);
    for (size_t i = 0; i < ORACLE_COUNT(i386_numbers); i++)
        assert_int_equal(oracle_number(&oracle_i386, i386_numbers[i].call),
                         i386_numbers[i].number);
    for (size_t i = 0; i < ORACLE_COUNT(aarch64_numbers); i++)
        assert_int_equal(oracle_number(&oracle_aarch64, aarch64_numbers[i].call),
                         aarch64_numbers[i].number);
}

static void host_calls_are_refused(void **state)
{
    const uint64_t args[6] = {0};
    int steps;

    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(refused); i++) {
        int n = oracle_number(&oracle_x86_64, refused[i]);
        assert_true(n >= 0);
        uint32_t got = run(&x86_64_filters[0], oracle_x86_64.audit, (uint32_t)n, args, &steps);
        if (got != (ERRNO | EPERM) && got != (ERRNO | ENOSYS))
            fail_msg("%s answers %#x", refused[i], got);
        n = oracle_number(&oracle_i386, refused[i]);
        if (n >= 0)
            assert_int_equal(
                run(&x86_64_filters[0], oracle_i386.audit, (uint32_t)n, args, &steps), got);
    }
}

/* What a call answers when each argument named in `foreign` is an id that is not the caller's,
 * the others that are ids are the caller's or -1, and the rest is neither. */
static uint32_t set_ids(const csn_seccomp_program *p, const oracle_abi *abi, size_t setter,
                        unsigned foreign, bool none)
{
    uint64_t args[6] = {77, 77, 77, 77, 77, 77};
    const char *call = setters[setter].call;
    char longer[32];
    int steps;

    for (unsigned i = 0; i < 6; i++) {
        if ((setters[setter].uids | setters[setter].gids) & 1u << i)
            args[i] = none                             ? UINT32_MAX
                      : setters[setter].uids & 1u << i ? CSN_SECCOMP_OWN_UID
                                                       : CSN_SECCOMP_OWN_GID;
        if (foreign & 1u << i)
            args[i] = 4242;
    }
    snprintf(longer, sizeof(longer), "%s32", call);
    int n = oracle_number(abi, longer);
    n = n >= 0 ? n : oracle_number(abi, call);
    return n < 0 ? NOTHING : run(p, abi->audit, (uint32_t)n, args, &steps);
}

static void only_the_callers_own_ids_can_be_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(setters); i++) {
        const unsigned ids = setters[i].uids | setters[i].gids;
        for (unsigned a = 0; a < 2; a++) {
            const oracle_abi *abi = families[0].abis[a];
            const csn_seccomp_program *p = &x86_64_filters[a ? CSN_SECCOMP_NOSUID : 0];
            for (unsigned foreign = 0; foreign <= ids; foreign++) {
                if (foreign & ~ids)
                    continue;
                const uint32_t want = foreign ? ERRNO | EPERM : ALLOW;
                assert_int_equal(set_ids(p, abi, i, foreign, true), want);
                assert_int_equal(set_ids(p, abi, i, foreign, false), want);
            }
            assert_int_equal(set_ids(&x86_64_filters[1], abi, i, ids, true), ALLOW);
            assert_int_equal(set_ids(&x86_64_filters[4], abi, i, ids, true), ALLOW);
        }
    }
}

static void calls_with_ids_of_16_bits_are_the_kernels(void **state)
{
    const uint64_t args[6] = {4242, 4242, 4242, 4242};
    int steps;

    (void)state;
    assert_int_equal(run(&x86_64_filters[0], oracle_i386.audit, 23 /* setuid */, args, &steps),
                     ALLOW);
    assert_int_equal(run(&x86_64_filters[0], oracle_i386.audit, 182 /* chown */, args, &steps),
                     ALLOW);
}

static void debuggers_and_self_sandboxing_programs_keep_their_calls(void **state)
{
    const uint64_t args[6] = {0};
    int steps;

    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(allowed); i++) {
        int n = oracle_number(&oracle_x86_64, allowed[i]);
        if (n < 0 ||
            run(&x86_64_filters[0], oracle_x86_64.audit, (uint32_t)n, args, &steps) != ALLOW)
            fail_msg("%s is refused", allowed[i]);
    }
}

static void userns_allows_only_namespaces_and_mounts(void **state)
{
    const uint64_t user[6] = {0x10000000 /* CLONE_NEWUSER */};
    int lifted = 0, steps;

    (void)state;
    for (uint32_t n = 0; n < ORACLE_NUMBERS; n++) {
        uint32_t strict = run(&x86_64_filters[0], oracle_x86_64.audit, n, user, &steps);
        uint32_t nested = run(&x86_64_filters[1], oracle_x86_64.audit, n, user, &steps);
        lifted += strict != nested;
        if (strict != nested)
            assert_int_equal(nested, ALLOW);
    }
    assert_int_equal(lifted,
                     27); /* clone unshare clone3 setns, 11 of mounts, 2 of names, 10 of ids */
    const uint64_t vsock[6] = {40, 1, 0};
    assert_int_equal(run(&x86_64_filters[1], oracle_x86_64.audit, SYS_socket, vsock, &steps),
                     ERRNO | EAFNOSUPPORT);
}

static void rows_have_a_reason_and_none_is_unreachable(void **state)
{
    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(csn_seccomp_rules); i++) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        assert_true(r->why && r->why[0] && r->error > 0 && r->error < 4096);
        for (size_t j = 0; j < i; j++) {
            const csn_seccomp_rule *before = &csn_seccomp_rules[j];
            if (strcmp(before->call, r->call) == 0 && before->variants == CSN_RULE_ALL)
                assert_int_not_equal(before->conds[0].op, CSN_COND_NONE);
        }
    }
}

static void hot_calls_are_answered_early(void **state)
{
    static const char *const hot[] = {"read",          "write",     "openat", "close",
                                      "fstat",         "mmap",      "futex",  "epoll_wait",
                                      "clock_gettime", "newfstatat"};
    const uint64_t args[6] = {0};

    (void)state;
    for (size_t i = 0; i < ORACLE_COUNT(hot); i++) {
        int n = oracle_number(&oracle_x86_64, hot[i]), steps = 0;
        run(&x86_64_filters[0], oracle_x86_64.audit, (uint32_t)n, args, &steps);
        print_message("# %s: %d instructions of %u\n", hot[i], steps, x86_64_filters[0].len);
        assert_true(steps <= STEPS_HOT);
    }
    assert_true(x86_64_filters[0].len <= 288);
}

/* ---- what installing does ---- */

static long status_field(const char *field)
{
    char line[256];
    long value = -1;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, field, strlen(field)) == 0)
            value = strtol(line + strlen(field), NULL, 10);
    }
    if (f)
        fclose(f);
    return value;
}

static int install_and_look(void *ctx)
{
    uint32_t variant = *(uint32_t *)ctx;

    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0 && errno != EINVAL)
        return 10; /* EINVAL: a namespace where root is a user already */
    if (status_field("Seccomp:") != 0)
        return 77;
    if (csn_seccomp_install(variant) != 0)
        return 11;
    if (status_field("Seccomp:") != 2 || status_field("NoNewPrivs:") != 1)
        return 12;
    if (syscall(SYS_bpf, 0, NULL, 0) != -1 || errno != EPERM)
        return 13;
    return csn_seccomp_install(variant) == 0 ? 0 : 14; /* a second wall */
}

/* In a user namespace without a map, where the kernel answers EINVAL for every id. */
static int install_and_set_ids(void *ctx)
{
    const uid_t uid = 4242;

    (void)ctx;
    if (unshare(CLONE_NEWUSER) < 0)
        return 77;
    if (setresuid(uid, uid, uid) == 0 || errno != EINVAL)
        return 10;
    if (csn_seccomp_install(CSN_SECCOMP_DEFAULT) != 0)
        return 11;
    if (setresuid(uid, uid, uid) == 0 || errno != EPERM)
        return 12;
    if (setresgid((gid_t)-1, uid, (gid_t)-1) == 0 || errno != EPERM)
        return 13;
    if (setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1) != 0)
        return 14;
    return setuid(geteuid()) < 0 && errno == EINVAL ? 0 : 15; /* the kernel's own answer */
}

static void the_ids_of_the_caller_are_filled_in(void **state)
{
    (void)state;
    csn_child_end end = csn_child_run(install_and_set_ids, NULL, -1, 60000);
    if (end.exit_code == 77) /* no user namespaces: a jail, a container */
        skip();
    assert_int_equal(end.exit_code, 0);
}

static void an_ordinary_user_can_install_every_variant(void **state)
{
    (void)state;
    for (uint32_t v = 0; v < CSN_SECCOMP_VARIANTS; v++) {
        csn_child_end end = csn_child_run(install_and_look, &v, -1, 60000);
        if (end.exit_code == 77) /* this process is filtered already: a jail, a container */
            skip();
        assert_int_equal(end.exit_code, 0);
    }
}

static int install_unknown(void *ctx)
{
    long before = status_field("NoNewPrivs:");

    (void)ctx;
    if (csn_seccomp_install(CSN_SECCOMP_VARIANTS) != -ENOTSUP)
        return 1;
    return status_field("NoNewPrivs:") == before ? 0 : 2;
}

static void unknown_variants_change_nothing(void **state)
{
    (void)state;
    assert_null(csn_seccomp_find(CSN_SECCOMP_VARIANTS));
    assert_null(csn_seccomp_find(UINT32_MAX));
    assert_non_null(csn_seccomp_find(CSN_SECCOMP_USERNS | CSN_SECCOMP_NOSUID));
    assert_int_equal(csn_child_run(install_unknown, NULL, -1, 60000).exit_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_answer_as_the_table_on_every_abi),
        cmocka_unit_test(foreign_architectures_get_enosys_for_everything),
        cmocka_unit_test(names_mean_the_numbers_of_the_system_headers),
        cmocka_unit_test(host_calls_are_refused),
        cmocka_unit_test(only_the_callers_own_ids_can_be_set),
        cmocka_unit_test(calls_with_ids_of_16_bits_are_the_kernels),
        cmocka_unit_test(debuggers_and_self_sandboxing_programs_keep_their_calls),
        cmocka_unit_test(userns_allows_only_namespaces_and_mounts),
        cmocka_unit_test(rows_have_a_reason_and_none_is_unreachable),
        cmocka_unit_test(hot_calls_are_answered_early),
        cmocka_unit_test(the_ids_of_the_caller_are_filled_in),
        cmocka_unit_test(an_ordinary_user_can_install_every_variant),
        cmocka_unit_test(unknown_variants_change_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
