/* gen-seccomp.c: compiles os/seccomp_policy.h into BPF programs at build time.
 *
 *     gen-seccomp filters > seccomp_filters.inc     the programs that os/seccomp.c installs
 *     gen-seccomp names > seccomp_names.inc         every call of every ABI, for the tests
 *
 * libseccomp serves only to translate names and numbers. It cannot express "any number above N"
 * or "one of these arguments", and its programs are longer: installing its tree takes 80 us,
 * its list 200 us, this program 60 us (kernel 6.18); a call costs the same with each.
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
#define INSN_COST    66  /* of installing an instruction, in executions of one; measured */

/* An answer: ANSWER_ALLOW, an errno, or ANSWER_RULES + the index of the first row of the
 * call. */
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

typedef struct program {
    uint32_t variant;
    const abi *abi;
    csn_seccomp_insn insns[PROGRAM_MAX]; /* last instruction first */
    int len;
    int blocks[COUNT(csn_seccomp_rules)]; /* position of the code of a call's rows, or -1 */
    interval intervals[INTERVAL_MAX];
    int count;
} program;

/* The tree over intervals i..j: its cost and where it splits (< 0: a chain of exceptions). */
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

static bool has_rule(const csn_seccomp_rule *r, uint32_t variant)
{
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
        for (size_t a = 0; a < count; a++) {
            for (size_t n = 0; n < NUMBERS; n++)
                found = found || (abis[a].calls[n] && strcmp(abis[a].calls[n], call) == 0);
        }
        if (!found)
            die("no ABI has the call", call);
    }
}

static uint32_t answer_for(uint32_t variant, const abi *a, uint32_t number)
{
    const char *call = number < NUMBERS ? a->calls[number] : NULL;

    if (number == UINT32_MAX) /* the number with which ptrace skips a call */
        return ANSWER_ALLOW;
    if (a->audit == SCMP_ARCH_ARM && number - ARM_PRIVATE < ARM_PRIVATES)
        return ANSWER_ALLOW;
    if (!call)
        return ENOSYS;
    for (size_t i = 0; i < COUNT(csn_seccomp_rules); i++) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        if (strcmp(r->call, call) != 0 || !has_rule(r, variant))
            continue;
        return r->conds[0].op == CSN_COND_NONE ? r->error : ANSWER_RULES + (uint32_t)i;
    }
    return ANSWER_ALLOW;
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
    uint32_t answer = answer_for(p->variant, p->abi, number);

    if (p->count == 0 || p->intervals[p->count - 1].answer != answer) {
        if (p->count == INTERVAL_MAX)
            die("too many intervals", p->abi->name);
        p->intervals[p->count++] = (interval){.first = number, .answer = answer};
    }
    p->intervals[p->count - 1].weight += weight_for(p->abi, number);
}

static void make_intervals(program *p)
{
    p->count = 0;
    for (uint32_t n = 0; n < NUMBERS; n++)
        add_number(p, n);
    for (uint32_t n = 0; n <= ARM_PRIVATES; n++)
        add_number(p, ARM_PRIVATE + n);
    add_number(p, UINT32_MAX);
}

/* ---- the tree ---- */

/* Intervals i..j have one answer, with exceptions of a single number each. */
static bool is_chain(const program *p, int i, int j)
{
    if ((j - i) % 2 != 0 || (j - i) / 2 > CHAIN_MAX)
        return false;
    for (int k = i + 1; k < j; k += 2) {
        if (p->intervals[k + 1].first - p->intervals[k].first != 1 ||
            p->intervals[k + 1].answer != p->intervals[i].answer)
            return false;
    }
    return true;
}

/* Weighted number of instructions executed when the exceptions are tested in order. */
static uint64_t chain_cost(const program *p, int i, int j)
{
    uint64_t cost = 0, tests = (uint64_t)(j - i) / 2;

    for (int k = i; k <= j; k++)
        cost += p->intervals[k].weight * ((k - i) % 2 ? ((uint64_t)(k - i) + 1) / 2 : tests);
    return cost + tests * INSN_COST;
}

static void plan_tree(const program *p)
{
    for (int i = p->count - 1; i >= 0; i--) {
        uint64_t weight = 0;
        for (int j = i; j < p->count; j++) {
            uint64_t best = UINT64_MAX;
            weight += p->intervals[j].weight;
            tree_split[i][j] = -1;
            if (is_chain(p, i, j))
                best = chain_cost(p, i, j);
            for (int k = i; k < j; k++) {
                uint64_t cost = tree_cost[i][k] + tree_cost[k + 1][j] + weight + INSN_COST;
                if (cost < best) {
                    best = cost;
                    tree_split[i][j] = k;
                }
            }
            tree_cost[i][j] = best;
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

static int put_cond(program *p, const csn_seccomp_cond *c, int yes, int no)
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

/* The rows of one call, in table order; code is written backwards, so the last row comes
 * first. */
static int put_rules(program *p, const char *call)
{
    int next = put_ret(p, ANSWER_ALLOW);

    for (size_t i = COUNT(csn_seccomp_rules); i-- > 0;) {
        const csn_seccomp_rule *r = &csn_seccomp_rules[i];
        if (strcmp(r->call, call) != 0 || !has_rule(r, p->variant))
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
        uint32_t answer = answer_for(p->variant, a, n);
        if (answer >= ANSWER_RULES && p->blocks[answer - ANSWER_RULES] < 0)
            p->blocks[answer - ANSWER_RULES] = put_rules(p, a->calls[n]);
    }
}

static int put_answer(program *p, uint32_t answer)
{
    return answer >= ANSWER_RULES ? p->blocks[answer - ANSWER_RULES] : put_ret(p, answer);
}

static int put_tree(program *p, int i, int j)
{
    int split = tree_split[i][j];

    if (i == j)
        return put_answer(p, p->intervals[i].answer);
    if (split >= 0) {
        int right = put_tree(p, split + 1, j);
        int left = put_tree(p, i, split);
        return put_test(p, JGE, p->intervals[split + 1].first, right, left);
    }
    int no = put_answer(p, p->intervals[i].answer);
    for (int k = j - 1; k > i; k -= 2)
        no = put_test(p, JEQ, p->intervals[k].first, put_answer(p, p->intervals[k].answer), no);
    return no;
}

/* Writes the tree of one ABI. Returns the position of its first instruction. */
static int put_abi(program *p, const abi *a)
{
    p->abi = a;
    make_intervals(p);
    plan_tree(p);
    if (put_tree(p, 0, p->count - 1) != p->len - 1)
        die("the tree does not begin with its root", a->name);
    return put(p, LOAD, 0, 0, AT_NUMBER);
}

/* In order of execution: the test of the ABI, the native tree, the other tree, the rows. */
static void build(program *p, const abi *native, const abi *compat, uint32_t variant)
{
    p->variant = variant;
    p->len = 0;
    p->abi = native;
    for (size_t i = 0; i < COUNT(p->blocks); i++)
        p->blocks[i] = -1;
    put_blocks(p, native);
    put_blocks(p, compat);
    int second = put_abi(p, compat);
    int other = put_test(p, JEQ, compat->audit, second, put_ret(p, ENOSYS));
    int first = put_abi(p, native);
    put_test(p, JEQ, native->audit, first, other);
    put(p, LOAD, 0, 0, AT_ARCH);
}

/* ---- output ---- */

static void print_family(program *p, const char *macro, const abi *native, const abi *compat)
{
    printf("#if defined(%s) || defined(CSN_SECCOMP_FAMILIES)\n", macro);
    for (uint32_t v = 0; v < CSN_SECCOMP_VARIANTS; v++) {
        build(p, native, compat, v);
        printf("static const csn_seccomp_insn %s_%u[] = {\n", native->name, v);
        for (int i = p->len - 1; i >= 0; i--) {
            const csn_seccomp_insn *in = &p->insns[i];
            printf("    {0x%02x, %u, %u, 0x%08x},\n", in->code, in->jt, in->jf, in->k);
        }
        printf("};\n");
    }
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
    printf("#if defined(__x86_64__)\n#define filters x86_64_filters\n"
           "#elif defined(__aarch64__)\n#define filters aarch64_filters\n"
           "#else /* no policy for this processor */\n"
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
