/* bench_grep.c: csn_grep compared with ripgrep on the same tree, warm.
 *
 * bench_grep [DIR [ROUNDS]]. Without DIR it copies the text that every Debian has (/usr/share,
 * /usr/include, Python's library) into a temporary directory. Each round runs, in a new order:
 * the library (results in memory), rg and rg --sort path (output to a memfd). rg gets -uu,
 * since the library reads hidden and ignored files too. Every run is checked for the same
 * number of lines as the one before it. What counts is the ratio of medians. */
#include <caisson/caisson.h>
#include <errno.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

#define ROUNDS     7
#define ROUNDS_MAX 101
#define SIDES      3

extern char **environ;

typedef struct row {
    const char *name, *pattern;
    uint32_t flags;
} row;

static const row rows[] = {
    {"rare literal", "createSocket", 0},
    {"frequent literal", "include", 0},
    {"no match", "zqxjkvbwpy", 0},
    {"ignore case", "permission denied", CSN_GREP_IGNORE_CASE},
    {"word-like", "\\w+Error\\(", CSN_GREP_REGEX},
    {"alternation", "foobar|quux|frobnicate", CSN_GREP_REGEX},
    {"anchored", "^static .*\\(void\\)", CSN_GREP_REGEX},
    {"classes", "[A-Z]{5}[0-9]{4}", CSN_GREP_REGEX},
    {"nearly every line", "[a-z]", CSN_GREP_REGEX},
};

static csn_sandbox *sandbox;
static const char *tree;

static uint64_t run_library(const row *r, size_t *ret_lines)
{
    csn_error *err = NULL;
    csn_grep_result *res = NULL;
    uint64_t start = bench_now_ns();

    if (csn_grep(sandbox, r->pattern,
                 CSN_OPTS(csn_grep_opts, .flags = r->flags, .max = UINT32_MAX), &res, &err) < 0)
        bench_die("csn_grep: %s", csn_error_message(err));
    uint64_t took = bench_now_ns() - start;
    *ret_lines = res->count;
    csn_grep_result_free(res);
    return took;
}

static size_t count_lines(int fd)
{
    struct stat st;
    size_t n = 0;

    if (fstat(fd, &st) < 0)
        bench_die("memfd: %m");
    char *text = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0) : "";
    if (text == MAP_FAILED)
        bench_die("memfd: %m");
    for (off_t i = 0; i < st.st_size; i++)
        n += text[i] == '\n';
    if (st.st_size)
        munmap(text, (size_t)st.st_size);
    return n;
}

static uint64_t run_rg(const row *r, bool sorted, size_t *ret_lines)
{
    const char *argv[16] = {"rg",           "-uu",           "-n",
                            "--no-heading", "--no-messages", "--color=never"};
    size_t n = 6;
    posix_spawn_file_actions_t fa;
    int status = 0, fd = memfd_create("rg", MFD_CLOEXEC);
    pid_t pid;

    if (sorted) {
        argv[n++] = "--sort";
        argv[n++] = "path";
    }
    if (!(r->flags & CSN_GREP_REGEX))
        argv[n++] = "-F";
    if (r->flags & CSN_GREP_IGNORE_CASE)
        argv[n++] = "-i";
    argv[n++] = "-e";
    argv[n++] = r->pattern;
    argv[n++] = tree;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, fd, 1);
    uint64_t start = bench_now_ns();
    if (fd < 0 || posix_spawnp(&pid, "rg", &fa, NULL, (char **)argv, environ) != 0)
        bench_die("rg does not start");
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 2)
        bench_die("rg failed");
    uint64_t took = bench_now_ns() - start;
    posix_spawn_file_actions_destroy(&fa);
    *ret_lines = count_lines(fd);
    close(fd);
    return took;
}

static double cpu_ms(size_t side)
{
    struct rusage u;

    getrusage(side == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Wall time in *ret_ms[0], processor time in [1]. */
static size_t run_side(size_t side, const row *r, double ret_ms[2])
{
    double before = cpu_ms(side);
    size_t lines = 0;

    ret_ms[0] =
        (double)(side == 0 ? run_library(r, &lines) : run_rg(r, side == 2, &lines)) / 1e6;
    ret_ms[1] = cpu_ms(side) - before;
    return lines;
}

static void print_row(const row *r, const double median[2][SIDES], const size_t *lines)
{
    printf("%-18s %-24s", r->name, r->pattern);
    for (size_t what = 0; what < 2; what++) {
        const double *m = median[what];
        printf(" %8.0f %8.0f %8.0f  %5.2f %5.2f |", m[0], m[1], m[2], m[0] / m[1], m[0] / m[2]);
    }
    printf(" %zu%s\n", lines[0], lines[0] == lines[1] ? "" : " lines, rg another number");
    fflush(stdout);
}

/* Returns the ratio of the wall times. */
static double measure_row(const row *r, size_t rounds)
{
    static double t[2][SIDES][ROUNDS_MAX];
    size_t lines[SIDES] = {0};
    double median[2][SIDES], ms[2];

    for (size_t i = 0; i <= rounds; i++) {
        size_t first = (size_t)random() % SIDES;
        for (size_t k = 0; k < SIDES; k++) {
            size_t side = (k + first) % SIDES, got = run_side(side, r, ms);
            if (i > 0 && got != lines[side])
                bench_die("%s: %zu lines, then %zu", r->pattern, lines[side], got);
            lines[side] = got;
            for (size_t what = 0; i > 0 && what < 2; what++) /* the first round warms up */
                t[what][side][i - 1] = ms[what];
        }
    }
    for (size_t what = 0; what < 2; what++)
        for (size_t k = 0; k < SIDES; k++)
            median[what][k] = bench_median(t[what][k], rounds);
    print_row(r, median, lines);
    return median[0][0] / median[0][1];
}

/* ---- the tree ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void make_tree(const char *top)
{
    char command[512];
    int status = 0;
    pid_t pid;

    snprintf(command, sizeof(command),
             "for d in /usr/share /usr/include /usr/lib/python3* /usr/lib/node_modules "
             "/usr/src; do if [ -d $d ]; then mkdir -p %s$d && cp -R $d/. %s$d/; fi; done "
             "2>/dev/null",
             top, top);
    const char *argv[] = {"sh", "-c", command, NULL};
    if (posix_spawnp(&pid, "sh", NULL, NULL, (char **)argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid) /* cp fails on files that this user may not read */
        bench_die("the tree cannot be copied");
}

static void open_sandbox(void)
{
    csn_error *err = NULL;

    if (csn_open(CSN_OPTS(csn_config, .backend = "local", .workspace = tree, .audit = "none"),
                 &sandbox, &err) < 0)
        bench_die("csn_open: %s", csn_error_message(err));
}

int main(int argc, char **argv)
{
    char top[] = "/tmp/caisson-bench-XXXXXX";
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS;
    const char *only = argc > 3 ? argv[3] : NULL;
    double worst = 0;

    if (rounds < 1 || rounds > ROUNDS_MAX)
        bench_die("1 to %d rounds", ROUNDS_MAX);
    tree = argc > 1 ? argv[1] : mkdtemp(top);
    if (!tree)
        bench_die("mkdtemp: %m");
    if (argc < 2)
        make_tree(tree);
    open_sandbox();
    printf("medians of %zu rounds, ms: wall time | processor time | lines\n%-43s", rounds, "");
    for (size_t what = 0; what < 2; what++)
        printf(" %8s %8s %8s  %5s %5s |", "caisson", "rg", "sorted", "/rg", "/srt");
    printf("\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (only && !strstr(rows[i].name, only))
            continue;
        double ratio = measure_row(&rows[i], rounds);
        worst = ratio > worst ? ratio : worst;
    }
    csn_close(sandbox);
    if (argc < 2)
        nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("slowest against rg: %.2f\n", worst);
    return 0;
}
