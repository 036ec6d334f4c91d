/* gen-seccomp.c: compiles os/seccomp_policy.h into BPF programs at build time.
 *
 *     gen-seccomp filters > seccomp_filters.inc     the programs that os/seccomp.c installs
 *     gen-seccomp names > seccomp_names.inc         every call of every ABI, for the tests
 *
 * libseccomp serves only to translate names and numbers. It cannot express "any number above N"
 * or "one of these arguments", and its programs are longer: installing its tree takes 80 us,
 * its list 200 us, this program 60 us (kernel 6.18); a call costs the same with each.
 *
 * A start pays for each instruction (0.2 us), because the kernel translates the program and
 * runs it for every number when it is installed. Hence conditions of several calls are written
 * once, and so is the tree of the numbers that both ABIs have.
 *
 * The numbers of an ABI are divided into intervals with the same answer. A binary search tree
 * over them, found by dynamic programming, has frequent calls near the root. It uses only
 * instructions that the kernel evaluates at install time (5.11 and later: load, and, jump,
 * return); a call that is always allowed then costs one bit test and the program does not run.
 *
 * Programs are written backwards, last instruction first, so that the target of
 * each jump is written before the jump. Invariants: the same table gives the same bytes; a row
 * that names no call is an error. */
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/seccomp.h"
#include "os/seccomp_policy.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* <linux/bpf_common.h>, <linux/seccomp.h> */
#define LOAD  0x20 /* BPF_LD | BPF_W | BPF_ABS */
#define AND   0x54 /* BPF_ALU | BPF_AND | BPF_K */
#define JUMP  0x05 /* BPF_JMP | BPF_JA */
#define JEQ   0x15 /* BPF_JMP | BPF_JEQ | BPF_K */
#define JGE   0x35 /* BPF_JMP | BPF_JGE | BPF_K */
#define JSET  0x45 /* BPF_JMP | BPF_JSET | BPF_K */
#define RET   0x06 /* BPF_RET | BPF_K */
#define ALLOW 0x7fff0000u
#define ERRNO 0x00050000u

#define AT_NUMBER 0u /* in struct seccomp_data */
#define AT_ARCH   4u
#define AT_ARG(n) (16u + 8u * (n)) /* low half: every ABI here is little-endian */

#define NUMBERS      1024 /* no ABI has more, but for arm's private ones */
#define ARM_PRIVATE  0xf0001u
#define ARM_PRIVATES 6
#define PROGRAM_MAX  4096 /* the kernel's limit */
#define INTERVAL_MAX 400
#define NEAR         250 /* a conditional jump reaches 255; slack for jumps put between */
#define CHAIN_MAX    8   /* exceptions tested one by one at a leaf of the tree */
#define INSN_COST    400 /* of installing an instruction, in executions of one; measured */

/* An answer: ANSWER_ALLOW, an errno, or ANSWER_RULES + the position of the code of the call's
 * rows. */
#define ANSWER_ALLOW 0u
#define ANSWER_RULES 0x10000u

typedef struct abi {
    const char *name;
    uint32_t audit; /* AUDIT_ARCH_*, also libseccomp's token */
    char *calls[NUMBERS];
} abi;

typedef struct interval {
    uint32_t first; /* up to the first of the next interval */
    uint32_t answer;
    uint32_t weight;
} interval;

/* The code of a condition, and where it leads. */
typedef struct test {
    const csn_seccomp_cond *cond;
    int yes, no, at;
} test;

typedef struct program {
    uint32_t variant;
    const abi *abi;
    csn_seccomp_insn insns[PROGRAM_MAX]; /* last instruction first */
    int len;
    int blocks[COUNT(csn_seccomp_rules)]; /* code of a call's rows, by the first one; or -1 */
    test tests[COUNT(csn_seccomp_rules) * CSN_SECCOMP_CONDS];
    int test_count;
    interval intervals[INTERVAL_MAX];
    int count;
} program;

/* The tree over intervals i..j: its cost and where it splits. LEAF, LEAF - 1: it is a chain of
 * tests, and else the answer of interval i, i + 1. */
#define LEAF (-1)
static uint64_t tree_cost[INTERVAL_MAX][INTERVAL_MAX];
static int tree_split[INTERVAL_MAX][INTERVAL_MAX];

/* The calls that builds, tests and servers make most, with rough frequencies. */
static const struct {
    const char *call;
    uint32_t weight;
} hot[] = {
    {"read", 40},       {"write", 30},        {"openat", 20},
    {"close", 25},      {"futex", 30},        {"newfstatat", 20},
    {"fstat", 15},      {"lseek", 10},        {"mmap", 15},
    {"munmap", 8},      {"mprotect", 6},      {"rt_sigaction", 10},
    {"ioctl", 8},       {"epoll_wait", 10},   {"epoll_pwait", 10},
    {"epoll_ctl", 4},   {"poll", 10},         {"ppoll", 5},
    {"recvmsg", 8},     {"sendmsg", 6},       {"recvfrom", 10},
    {"sendto", 8},      {"clock_gettime", 6}, {"rt_sigprocmask", 8},
    {"getpid", 4},      {"brk", 4},           {"readlink", 4},
    {"access", 4},      {"stat", 6},          {"lstat", 6},
    {"getdents64", 4},  {"statx", 6},         {"madvise", 4},
    {"sched_yield", 6}, {"fcntl", 6},         {"pread64", 8},
    {"pwrite64", 6},    {"writev", 6},        {"readv", 3},
    {"clone", 2},       {"wait4", 3},         {"clock_nanosleep", 3},
};

static void die(const char *what, const char *which)
{
    fprintf(stderr, "gen-seccomp: %s: %s\n", what, which);
    exit(1);
}

/* ---- names and numbers ---- */

static void abi_load(abi *a)
{
    for (uint32_t n = 0; n <= CSN_SECCOMP_NEWEST; n++)
        a->calls[n] = seccomp_syscall_resolve_num_arch(a->audit, (int)n);
    for (size_t i = 0; i < COUNT(csn_seccomp_newer); i++) {
        const csn_seccomp_newer_call *c = &csn_seccomp_newer[i];
        if (c->x86_64_only && a->audit != SCMP_ARCH_X86_64)
            continue;
        if (c->number > CSN_SECCOMP_NEWEST)
            die("newer than CSN_SECCOMP_NEWEST", c->call);
        char *known = a->calls[c->number];
        if (known && strcmp(known, c->call) != 0)
            die("libseccomp has another name for the number of", c->call);
        if (!known && !(a->calls[c->number] = strdup(c->call)))
            die("memory", c->call);
    }
}

static void abi_free(abi *a)
{
    for (size_t n = 0; n < NUMBERS; n++)
        free(a->calls[n]);
}

static bool has_call(const abi *a, const char *call)
{
    for (size_t n = 0; n < NUMBERS; n++) {
        if (a->calls[n] && strcmp(a->calls[n], call) == 0)
            return true;
    }
    return false;
}

/* i386 and arm have chown with ids of 16 bits, and chown32. */
static bool has_short_ids(const abi *a, const char *call)
{
    char longer[64];

    snprintf(longer, sizeof(longer), "%s32", call);
    return has_call(a, longer);
}

static bool has_rule(const csn_seccomp_rule *r, const abi *a, uint32_t variant)
{
    if (r->variants == CSN_RULE_ONE_ID)
        return !(variant & (CSN_SECCOMP_USERNS | CSN_SECCOMP_NO_SOCKETS)) &&
               !has_short_ids(a, r->call);
    if (r->variants == CSN_RULE_NO_USERNS)
        return !(variant & CSN_SECCOMP_USERNS);
    if (r->variants == CSN_RULE_NOSUID)
        return variant & CSN_SECCOMP_NOSUID;
    if (r->variants == CSN_RULE_NO_SOCKETS)
        return variant & CSN_SECCOMP_NO_SOCKETS;
    return true;
}

/* Refuses misspelt rows, which would match no call. */
static void check_rules(const abi *abis, size_t count)
{
    for (size_t i = 0; i < COUNT(csn_seccomp_rules); i++) {
        const char *call = csn_seccomp_rules[i].call;
        bool found = false;
        for (size_t a = 0; a < count; a++)
            found = found || has_call(&abis[a], call);
        if (!found)
            die("no ABI has the call", call);
    }
}

/* The index of the first row of a call, or -1. */
static int first_rule(const program *p, const abi *a, const char *call)
{
    for (size_t i = 0; i < COUNT(csn_seccomp_rules); i++) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        if (strcmp(r->call, call) == 0 && has_rule(r, a, p->variant))
            return (int)i;
    }
    return -1;
}

/* The code of rows must have been written. */
static uint32_t answer_for(const program *p, const abi *a, uint32_t number)
{
    const char *call = number < NUMBERS ? a->calls[number] : NULL;

    if (number == UINT32_MAX) /* the number with which ptrace skips a call */
        return ANSWER_ALLOW;
    if (a->audit == SCMP_ARCH_ARM && number - ARM_PRIVATE < ARM_PRIVATES)
        return ANSWER_ALLOW;
    if (!call)
        return ENOSYS;
    int rule = first_rule(p, a, call);
    if (rule < 0)
        return ANSWER_ALLOW;
    const csn_seccomp_insn *in = &p->insns[p->blocks[rule]];
    if (in->code != RET)
        return ANSWER_RULES + (uint32_t)p->blocks[rule];
    return in->k == ALLOW ? ANSWER_ALLOW : in->k - ERRNO;
}

static uint32_t weight_for(const abi *a, uint32_t number)
{
    const char *call = number < NUMBERS ? a->calls[number] : NULL;

    for (size_t i = 0; call && i < COUNT(hot); i++) {
        if (strcmp(hot[i].call, call) == 0)
            return hot[i].weight;
    }
    return number <= CSN_SECCOMP_NEWEST;
}

static void add_number(program *p, uint32_t number)
{
    uint32_t answer = answer_for(p, p->abi, number);

    if (p->count == 0 || p->intervals[p->count - 1].answer != answer) {
        if (p->count == INTERVAL_MAX)
            die("too many intervals", p->abi->name);
        p->intervals[p->count++] = (interval){.first = number, .answer = answer};
    }
    p->intervals[p->count - 1].weight += weight_for(p->abi, number);
}

/* Of the numbers first..last. Those that are left out have the answer of the one before. */
static void make_intervals(program *p, uint32_t first, uint32_t last)
{
    p->count = 0;
    for (uint32_t n = first; n < NUMBERS && n <= last; n++)
        add_number(p, n);
    for (uint32_t n = ARM_PRIVATE; n <= ARM_PRIVATE + ARM_PRIVATES && n <= last; n++)
        add_number(p, n);
    if (last == UINT32_MAX)
        add_number(p, UINT32_MAX);
}

/* ---- the tree ---- */

static uint32_t width(const program *p, int k)
{
    return k + 1 < p->count ? p->intervals[k + 1].first - p->intervals[k].first : UINT32_MAX;
}

/* The cost of testing, number by number, the intervals of i..j that have another answer:
 * instructions and the weighted number of those executed. UINT64_MAX: too many numbers. */
static uint64_t chain_cost(const program *p, int i, int j, uint32_t answer)
{
    uint64_t cost = 0, others = 0, tests = 0;

    for (int k = i; k <= j; k++) {
        if (p->intervals[k].answer == answer) {
            others += p->intervals[k].weight;
            continue;
        }
        if (width(p, k) > CHAIN_MAX || tests + width(p, k) > CHAIN_MAX)
            return UINT64_MAX;
        tests += width(p, k);
        cost += p->intervals[k].weight * tests;
    }
    return cost + (others + INSN_COST) * tests;
}

static void plan_node(const program *p, int i, int j, uint64_t weight)
{
    uint64_t best = UINT64_MAX;

    tree_split[i][j] = LEAF;
    for (int k = i; k <= j && k <= i + 1; k++) {
        uint64_t cost = chain_cost(p, i, j, p->intervals[k].answer);
        if (cost < best) {
            best = cost;
            tree_split[i][j] = LEAF - (k - i);
        }
    }
    for (int k = i; k < j; k++) {
        uint64_t cost = tree_cost[i][k] + tree_cost[k + 1][j] + weight + INSN_COST;
        if (cost < best) {
            best = cost;
            tree_split[i][j] = k;
        }
    }
    tree_cost[i][j] = best;
}

static void plan_tree(const program *p)
{
    for (int i = p->count - 1; i >= 0; i--) {
        uint64_t weight = 0;
        for (int j = i; j < p->count; j++) {
            weight += p->intervals[j].weight;
            plan_node(p, i, j, weight);
        }
    }
}

/* ---- instructions, last first: positions count from the end ---- */

static int put(program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (p->len == PROGRAM_MAX)
        die("program too long", p->abi->name);
    p->insns[p->len] = (csn_seccomp_insn){.code = code, .jt = jt, .jf = jf, .k = k};
    return p->len++;
}

/* Returns a position that the next conditional jump can reach and that leads to `at`. */
static int reach(program *p, int at)
{
    return p->len - at <= NEAR ? at : put(p, JUMP, 0, 0, (uint32_t)(p->len - at - 1));
}

static int put_test(program *p, uint16_t code, uint32_t k, int yes, int no)
{
    yes = reach(p, yes);
    no = reach(p, no);
    return put(p, code, (uint8_t)(p->len - yes - 1), (uint8_t)(p->len - no - 1), k);
}

static int put_ret(program *p, uint32_t answer)
{
    uint32_t k = answer == ANSWER_ALLOW ? ALLOW : ERRNO | answer;

    for (int at = p->len - 1; at >= 0 && p->len - at < NEAR; at--) {
        if (p->insns[at].code == RET && p->insns[at].k == k)
            return at;
    }
    return put(p, RET, 0, 0, k);
}

static bool same_cond(const csn_seccomp_cond *a, const csn_seccomp_cond *b)
{
    return a->op == b->op && a->arg == b->arg && a->mask == b->mask && a->count == b->count &&
           memcmp(a->values, b->values, a->count * sizeof(a->values[0])) == 0;
}

static int write_cond(program *p, const csn_seccomp_cond *c, int yes, int no)
{
    if (c->op == CSN_COND_NOT_IN) {
        int other = yes;
        yes = no;
        no = other;
    }
    if (c->count == 1 && c->values[0] == 0 && c->mask != UINT32_MAX) {
        put_test(p, JSET, c->mask, no, yes);
    } else {
        for (int i = c->count - 1; i >= 0; i--)
            no = put_test(p, JEQ, c->values[i], yes, no);
        if (c->mask != UINT32_MAX)
            put(p, AND, 0, 0, c->mask);
    }
    return put(p, LOAD, 0, 0, AT_ARG(c->arg));
}

/* Writes a condition, or finds it where another row has it. */
static int put_cond(program *p, const csn_seccomp_cond *c, int yes, int no)
{
    if (yes == no)
        return yes;
    for (int i = 0; i < p->test_count; i++) {
        const test *t = &p->tests[i];
        if (t->yes == yes && t->no == no && same_cond(t->cond, c))
            return t->at;
    }
    int at = write_cond(p, c, yes, no);
    p->tests[p->test_count++] = (test){.cond = c, .yes = yes, .no = no, .at = at};
    return at;
}

/* The rows of one call, in table order; code is written backwards, so the last row comes
 * first. Calls whose last rows are the same share their code. */
static int put_rules(program *p, const abi *a, const char *call)
{
    int next = put_ret(p, ANSWER_ALLOW);

    for (size_t i = COUNT(csn_seccomp_rules); i-- > 0;) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        if (strcmp(r->call, call) != 0 || !has_rule(r, a, p->variant))
            continue;
        int yes = put_ret(p, r->error);
        for (int c = CSN_SECCOMP_CONDS - 1; c >= 0; c--) {
            if (r->conds[c].op != CSN_COND_NONE)
                yes = put_cond(p, &r->conds[c], yes, next);
        }
        next = yes;
    }
    return next;
}

/* Writes the code of rows for the calls of `a`; ABIs share it. */
static void put_blocks(program *p, const abi *a)
{
    for (uint32_t n = 0; n < NUMBERS; n++) {
        int rule = a->calls[n] ? first_rule(p, a, a->calls[n]) : -1;
        if (rule >= 0 && p->blocks[rule] < 0)
            p->blocks[rule] = put_rules(p, a, a->calls[n]);
    }
}

static int put_answer(program *p, uint32_t answer)
{
    return answer >= ANSWER_RULES ? (int)(answer - ANSWER_RULES) : put_ret(p, answer);
}

/* The intervals of i..j that have another answer are tested number by number. */
static int put_chain(program *p, int i, int j, uint32_t answer)
{
    int no = put_answer(p, answer);

    for (int k = j; k >= i; k--) {
        uint32_t other = p->intervals[k].answer;
        for (uint32_t n = other == answer ? 0 : width(p, k); n-- > 0;)
            no = put_test(p, JEQ, p->intervals[k].first + n, put_answer(p, other), no);
    }
    return no;
}

static int put_tree(program *p, int i, int j)
{
    int split = tree_split[i][j];

    if (split < 0)
        return put_chain(p, i, j, p->intervals[i + LEAF - split].answer);
    int right = put_tree(p, split + 1, j);
    int left = put_tree(p, i, split);
    return put_test(p, JGE, p->intervals[split + 1].first, right, left);
}

/* Writes the tree of the numbers first..last. */
static int put_range(program *p, const abi *a, uint32_t first, uint32_t last)
{
    p->abi = a;
    make_intervals(p, first, last);
    plan_tree(p);
    return put_tree(p, 0, p->count - 1);
}

/* From this number on both ABIs have the same calls, but for arm's private ones. */
static uint32_t first_shared(const program *p, const abi *native, const abi *compat)
{
    uint32_t n = NUMBERS;

    while (n > 1 && answer_for(p, native, n - 1) == answer_for(p, compat, n - 1))
        n--;
    return n;
}

/* Writes the tree of one ABI; that of the numbers from `from` on is at `shared`. Returns the
 * position of its first instruction. */
static int put_abi(program *p, const abi *a, uint32_t from, int shared)
{
    if (a->audit == SCMP_ARCH_ARM)
        shared =
            put_test(p, JGE, ARM_PRIVATE, put_range(p, a, ARM_PRIVATE, UINT32_MAX), shared);
    int below = put_range(p, a, 0, from - 1);
    put_test(p, JGE, from, shared, below);
    return put(p, LOAD, 0, 0, AT_NUMBER);
}

/* In order of execution: the test of the ABI, the native tree, the other tree, the tree of the
 * numbers that both have, the rows. */
static void build(program *p, const abi *native, const abi *compat, uint32_t variant)
{
    p->variant = variant;
    p->len = p->test_count = 0;
    p->abi = native;
    for (size_t i = 0; i < COUNT(p->blocks); i++)
        p->blocks[i] = -1;
    put_blocks(p, native);
    put_blocks(p, compat);
    uint32_t from = first_shared(p, native, compat);
    int shared = put_range(p, native, from, UINT32_MAX);
    int second = put_abi(p, compat, from, shared);
    int other = put_test(p, JEQ, compat->audit, second, put_ret(p, ENOSYS));
    int first = put_abi(p, native, from, shared);
    put_test(p, JEQ, native->audit, first, other);
    put(p, LOAD, 0, 0, AT_ARCH);
}

/* ---- output ---- */

static void print_family(program *p, const char *macro, const abi *native, const abi *compat)
{
    int longest = 0;

    printf("#if defined(%s) || defined(CSN_SECCOMP_FAMILIES)\n", macro);
    for (uint32_t v = 0; v < CSN_SECCOMP_VARIANTS; v++) {
        build(p, native, compat, v);
        longest = p->len > longest ? p->len : longest;
        printf("static const csn_seccomp_insn %s_%u[] = {\n", native->name, v);
        for (int i = p->len - 1; i >= 0; i--) {
            const csn_seccomp_insn *in = &p->insns[i];
            printf("    {0x%02x, %u, %u, 0x%08x},\n", in->code, in->jt, in->jf, in->k);
        }
        printf("};\n");
    }
    printf("enum { %s_longest = %d };\n", native->name, longest);
    printf("static const csn_seccomp_program %s_filters[] = {\n", native->name);
    for (uint32_t v = 0; v < CSN_SECCOMP_VARIANTS; v++)
        printf("    {sizeof(%s_%u) / sizeof(%s_%u[0]), %s_%u},\n", native->name, v,
               native->name, v, native->name, v);
    printf("};\n#endif\n");
}

static void print_filters(const abi *abis)
{
    static program p;

    printf("/* Generated by gen-seccomp from os/seccomp_policy.h; do not edit. */\n");
    print_family(&p, "__x86_64__", &abis[0], &abis[1]);
    print_family(&p, "__aarch64__", &abis[2], &abis[3]);
    printf("#if defined(__x86_64__)\n"
           "#define filters x86_64_filters\n#define FILTER_LONGEST x86_64_longest\n"
           "#elif defined(__aarch64__)\n"
           "#define filters aarch64_filters\n#define FILTER_LONGEST aarch64_longest\n"
           "#else /* no policy for this processor */\n"
           "#define FILTER_LONGEST 1\n"
           "static const csn_seccomp_program filters[%u];\n#endif\n",
           CSN_SECCOMP_VARIANTS);
}

static void print_names(const abi *abis, size_t count)
{
    printf("/* Generated by gen-seccomp: every call of every ABI; do not edit. */\n");
    for (size_t a = 0; a < count; a++) {
        printf("static const char *const %s_calls[%d] = {\n", abis[a].name, NUMBERS);
        for (size_t n = 0; n < NUMBERS; n++) {
            if (abis[a].calls[n])
                printf("    [%zu] = \"%s\",\n", n, abis[a].calls[n]);
        }
        printf("};\n");
    }
}

int main(int argc, char **argv)
{
    static abi abis[] = {{.name = "x86_64", .audit = SCMP_ARCH_X86_64},
                         {.name = "i386", .audit = SCMP_ARCH_X86},
                         {.name = "aarch64", .audit = SCMP_ARCH_AARCH64},
                         {.name = "arm", .audit = SCMP_ARCH_ARM}};

    for (size_t a = 0; a < COUNT(abis); a++)
        abi_load(&abis[a]);
    check_rules(abis, COUNT(abis));
    if (argc == 2 && strcmp(argv[1], "filters") == 0)
        print_filters(abis);
    else if (argc == 2 && strcmp(argv[1], "names") == 0)
        print_names(abis, COUNT(abis));
    else
        die("usage", "gen-seccomp filters|names");
    for (size_t a = 0; a < COUNT(abis); a++)
        abi_free(&abis[a]);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
