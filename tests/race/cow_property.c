/* cow_property.c: a copy-on-write workspace against a plain directory, with random operations.
 *
 *   cow_property [user] [--seed S] [--ops N]     as an ordinary user, if root calls
 *
 * cow_guest changes files in batches, in the workspace of a jail and in a plain copy of the
 * tree; each operation must end the same way. Between batches the sandbox is snapshotted,
 * rolled back, forked, committed, or starts again, and the plain tree is treated likewise (a
 * snapshot is a copy of it). After each step both trees must have the same names, types, modes,
 * contents, symbolic links and attributes. Where files move between layers
 * the times of modification stay exactly the same, too; a commit keeps those of files.
 *
 * An overlay separates hard links when it first writes to a file of a lower layer. Therefore
 * hard links are given up before a layer is frozen and when a base is taken; within a layer
 * they must hold, and a commit must write them. Snapshots are not used after a commit, which
 * changes what is below them. Speaks TAP. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "leftover.h"
#include "support/support.h"

#define OPS_DEFAULT 1000
#define BATCH_MAX   120
#define SAVED_MAX   40
#define NAMES_MAX   256
#define NOBODY      65534

typedef struct saved {
    char name[32];
    char *dir, *tree;
} saved;

static char *top, *run_dir, *state_dir, *base, *model, *guest, *guest_dir;
static csn_sandbox *sb;
static saved snapshots[SAVED_MAX];
static size_t snapshot_count;
static uint64_t seed, first_seed;
static unsigned steps, counts[16];
static bool failed;

/* ---- helpers ---- */

static unsigned below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % n);
}

static void fail(const char *what, const char *why)
{
    printf("# step %u, seed %llu: %s: %s\n", steps, (unsigned long long)first_seed, what,
           why ? why : "?");
    failed = true;
}

static bool check(csn_status st, csn_error **err, const char *what)
{
    if (st < 0)
        fail(what, csn_error_message(*err));
    csn_error_free(*err);
    *err = NULL;
    return st == CSN_OK;
}

/* Runs a program in `dir`; an ordinary user if `plain`. Returns its output, malloc'd, or NULL
 * if it failed. */
static char *run_in(const char *dir, bool plain, char *const argv[], const char *input)
{
    char *in = csn_test_join(top, "in"), *out = csn_test_join(top, "out"), *text = NULL;
    int status = -1;

    csn_test_put(in, input ? input : "", input ? strlen(input) : 0);
    csn_test_put(out, "", 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd0 = open(in, O_RDONLY | O_CLOEXEC), fd1 = open(out, O_WRONLY | O_CLOEXEC);
        if (fd0 < 0 || fd1 < 0 || dup2(fd0, 0) < 0 || dup2(fd1, 1) < 0 || chdir(dir) < 0)
            _exit(120);
        if (plain && geteuid() == 0 &&
            (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
             setresuid(NOBODY, NOBODY, NOBODY) < 0))
            _exit(121);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        text = csn_test_get(out, NULL);
    free(in);
    free(out);
    return text;
}

static bool run_tool(const char *dir, bool plain, char *const argv[], const char *input)
{
    char *out = run_in(dir, plain, argv, input);
    bool good = out != NULL;

    if (!good)
        fail(argv[0], argv[1]);
    free(out);
    return good;
}

/* Makes the directory `to` a copy of `from`; what plain operations work on is NOBODY's. */
static bool copy_tree(const char *from, const char *to)
{
    char *cp[] = {"cp", "-a", (char *)(uintptr_t)from, (char *)(uintptr_t)to, NULL};
    char *own[] = {"chown", "-R", "65534:65534", (char *)(uintptr_t)to, NULL};

    csn_test_remove(to);
    return run_tool(top, false, cp, NULL) &&
           (geteuid() != 0 || run_tool(top, false, own, NULL));
}

static char *exec_guest(csn_sandbox *in, const char *const argv[])
{
    csn_exec_result *r = NULL;
    csn_error *err = NULL;
    char *out = NULL;

    if (check(csn_exec(in, argv, NULL, &r, &err), &err, "exec")) {
        if (r->failed || r->truncated)
            fail(argv[1], r->err.data);
        else
            out = strdup(r->out.data);
    }
    csn_exec_result_free(r);
    return out;
}

static char *show_in(csn_sandbox *in)
{
    const char *argv[] = {guest, "show", NULL};

    return exec_guest(in, argv);
}

static char *show_dir(const char *dir)
{
    char *argv[] = {guest, "show", NULL};

    return run_in(dir, dir != base, argv, NULL);
}

/* ---- comparing ---- */

/* How many columns at the end of a line are not compared. */
typedef enum closeness {
    EXACT = 0,
    COMMITTED = 1, /* and two more for directories and symbolic links: the host's times */
    LOOSE = 2,     /* without times, but for those that were set; without holes */
} closeness;

static size_t line_length(const char *line, closeness c)
{
    const char *mode = strchr(line, ' ');
    bool file = mode && strncmp(mode + 1, "100", 3) == 0;
    size_t len = strcspn(line, "\n");

    for (int drop = c == COMMITTED && !file ? 3 : (int)c; drop > 0; drop--)
        while (len > 0 && line[--len] != ' ')
            ;
    return len;
}

/* The time of the top directory, which comes first, is not promised. */
static bool same_trees(const char *a, const char *b, closeness c, const char *what)
{
    const char *p = a ? strchr(a, '\n') : NULL, *q = b ? strchr(b, '\n') : NULL;

    while (p && q && *p && *q) {
        p++;
        q++;
        size_t m = line_length(p, c), n = line_length(q, c);
        if (m != n || memcmp(p, q, n) != 0) {
            printf("# %.*s\n# %.*s\n", (int)strcspn(p, "\n"), p, (int)strcspn(q, "\n"), q);
            fail(what, "the trees differ");
            return false;
        }
        p += strcspn(p, "\n");
        q += strcspn(q, "\n");
    }
    if (!p || !q || *p != *q)
        fail(what, "a tree is missing or shorter");
    return p && q && *p == *q;
}

/* Compares the sandbox with the plain tree. Returns its tree, malloc'd. */
static char *compare(csn_sandbox *in, const char *what)
{
    char *inside = show_in(in), *outside = show_dir(model);

    same_trees(inside, outside, LOOSE, what);
    free(outside);
    return inside;
}

static bool is_tree(csn_sandbox *in, const char *want, const char *what)
{
    char *now = show_in(in);
    bool same = same_trees(now, want, EXACT, what);

    free(now);
    return same;
}

/* ---- steps ---- */

static void batch(csn_sandbox *in, const char *dir, unsigned count)
{
    char first[24], number[16];

    snprintf(first, sizeof(first), "%llu", (unsigned long long)seed);
    snprintf(number, sizeof(number), "%u", count);
    const char *argv[] = {guest, "run", first, number, NULL};
    char *replay[] = {guest, "replay", first, number, NULL};
    char *out = exec_guest(in, argv);
    char *tree = out ? strstr(out, "tree\n") : NULL;
    if (tree)
        *tree = '\0';
    if (tree && run_tool(dir, true, replay, out)) {
        char *outside = show_dir(dir);
        same_trees(tree + strlen("tree\n"), outside, LOOSE, "operations");
        free(outside);
    }
    free(out);
    (void)below(2); /* the next batch has other operations */
}

static bool split_links(void)
{
    const char *argv[] = {guest, "split", NULL};
    char *plain[] = {guest, "split", NULL};
    char *out = exec_guest(sb, argv);
    bool good = out && run_tool(model, true, plain, NULL);

    free(out);
    return good;
}

static void forget_snapshots(void)
{
    while (snapshot_count > 0) {
        saved *s = &snapshots[--snapshot_count];
        csn_test_remove(s->dir);
        free(s->dir);
        free(s->tree);
    }
}

static void step_snapshot(void)
{
    static unsigned number;
    csn_snapshot_result *r = NULL;
    csn_error *err = NULL;

    if (snapshot_count == SAVED_MAX || !split_links())
        return;
    saved *s = &snapshots[snapshot_count];
    snprintf(s->name, sizeof(s->name), "s%u", ++number);
    s->dir = csn_test_join(top, s->name);
    s->tree = compare(sb, "before a snapshot");
    snapshot_count++;
    if (check(csn_snapshot_as(sb, s->name, &r, &err), &err, "snapshot"))
        is_tree(sb, s->tree, "after a snapshot");
    csn_snapshot_result_free(r);
    copy_tree(model, s->dir);
}

static void step_rollback(void)
{
    csn_error *err = NULL;

    if (snapshot_count == 0)
        return;
    const saved *s = &snapshots[below((unsigned)snapshot_count)];
    if (check(csn_rollback(sb, s->name, &err), &err, "rollback"))
        is_tree(sb, s->tree, "rollback");
    copy_tree(s->dir, model);
}

/* Goes on in the fork, or in the sandbox that was forked. */
static void step_fork(void)
{
    csn_sandbox *fork = NULL;
    csn_error *err = NULL;
    char *other = csn_test_join(top, "other");

    char *tree = split_links() ? compare(sb, "before a fork") : NULL;
    if (tree && check(csn_fork(sb, NULL, &fork, &err), &err, "fork")) {
        is_tree(fork, tree, "fork");
        copy_tree(model, other);
        batch(fork, other, 1 + below(BATCH_MAX));
        is_tree(sb, tree, "the forked sandbox");
    }
    if (fork && below(2)) {
        csn_sandbox *old = sb;
        sb = fork;
        fork = old;
        copy_tree(other, model);
        forget_snapshots();
    }
    if (fork) {
        check(csn_destroy(fork, &err), &err, "destroy");
    }
    csn_close(fork);
    csn_test_remove(other);
    free(other);
    free(tree);
}

/* ---- holes and hard links after a commit ---- */

static bool is_sparse(const char *tree, const char *path)
{
    char start[80];

    snprintf(start, sizeof(start), "\n./%s ", path);
    const char *line = strstr(tree, start), *end = line ? strchr(line + 1, '\n') : NULL;
    return end && strncmp(end - strlen("sparse"), "sparse", strlen("sparse")) == 0;
}

/* A file that the host had may be as it was there. */
static void compare_holes(const csn_commit_result *r, const char *inside, const char *host)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->changes[i].kind == CSN_CHANGE_ADDED && is_sparse(inside, r->changes[i].path) &&
            !is_sparse(host, r->changes[i].path))
            fail(r->changes[i].path, "is not sparse any more");
}

typedef struct name {
    char path[64], first[64];
    bool changed;
} name;

static size_t read_names(const char *dir, const csn_commit_result *r, name *ret)
{
    char *argv[] = {guest, "names", NULL};
    char *text = run_in(dir, dir != base, argv, NULL);
    size_t n = 0;

    for (const char *line = text; line && *line && n < NAMES_MAX;
         line = strchr(line, '\n') + 1) {
        if (sscanf(line, "./%63s ./%63s", ret[n].path, ret[n].first) != 2)
            abort();
        ret[n].changed = false;
        for (size_t i = 0; i < r->count; i++)
            ret[n].changed |= r->changes[i].outcome == CSN_OUTCOME_APPLIED &&
                              strcmp(r->changes[i].path, ret[n].path) == 0;
        n++;
    }
    free(text);
    return n;
}

static bool are_linked(const name *v, size_t n, const name *a, const name *b)
{
    const char *x = NULL, *y = NULL;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(v[i].path, a->path) == 0)
            x = v[i].first;
        if (strcmp(v[i].path, b->path) == 0)
            y = v[i].first;
    }
    return x && y && strcmp(x, y) == 0;
}

/* Names that a commit wrote together are linked as in the sandbox; a link to a file that the
 * sandbox did not change becomes a copy. What a commit writes is linked to nothing else. */
static void compare_links(const csn_commit_result *r)
{
    static name host[NAMES_MAX], plain[NAMES_MAX];
    size_t n = read_names(base, r, host), m = read_names(model, r, plain);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(host[i].first, host[j].first) == 0 &&
                (host[i].changed || host[j].changed) &&
                !are_linked(plain, m, &host[i], &host[j]))
                fail(host[i].path, "is linked to another file");
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(plain[i].first, plain[j].first) == 0 && plain[i].changed &&
                plain[j].changed && !are_linked(host, n, &plain[i], &plain[j]))
                fail(plain[i].path, "is not linked");
}

static void step_commit(void)
{
    csn_commit_result *r = NULL;
    csn_error *err = NULL;
    char *tree = compare(sb, "before a commit");

    if (check(csn_commit(sb, NULL, &r, &err), &err, "commit")) {
        for (size_t i = 0; i < r->count; i++)
            if (r->changes[i].outcome != CSN_OUTCOME_APPLIED &&
                r->changes[i].outcome != CSN_OUTCOME_SAME)
                fail(r->changes[i].path, r->changes[i].why);
        char *host = show_dir(base);
        same_trees(host, tree, COMMITTED, "commit");
        is_tree(sb, tree, "the sandbox after a commit");
        compare_holes(r, tree, host);
        compare_links(r);
        forget_snapshots();
        split_links(); /* the layer is frozen */
        free(host);
    }
    csn_commit_result_free(r);
    free(tree);
}

static void step_open(void)
{
    char *plain[] = {guest, "split", NULL};
    const char *read[] = {guest_dir, NULL};
    csn_config config = {.size = sizeof(config),
                         .flags = CSN_OPEN_COW,
                         .backend = "jail",
                         .workspace = base,
                         .read = read};
    csn_error *err = NULL;

    if (run_tool(base, false, plain, NULL) && copy_tree(base, model) &&
        check(csn_open(&config, &sb, &err), &err, "open"))
        free(compare(sb, "open"));
}

static void step_discard(void)
{
    csn_error *err = NULL;
    char *host = show_dir(base);

    if (check(csn_discard(sb, &err), &err, "discard"))
        is_tree(sb, host, "discard");
    check(csn_destroy(sb, &err), &err, "destroy");
    csn_close(sb);
    sb = NULL;
    forget_snapshots();
    if (!failed)
        step_open();
    free(host);
}

static void (*const kinds[])(void) = {step_snapshot, step_rollback, step_fork, step_commit,
                                      step_discard};
static const char *const kind_names[] = {"snapshots", "rollbacks", "forks", "commits",
                                         "starts"};

/* Of 16 steps: none, snapshots, rollbacks, forks, commits, a new start. */
static void one_step(unsigned count)
{
    static const unsigned which[16] = {9, 9, 9, 9, 0, 0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 4};
    unsigned kind = which[below(16)];

    batch(sb, model, count);
    if (kind < 5 && !failed) {
        kinds[kind]();
        counts[kind]++;
    }
    steps++;
}

/* ---- the program ---- */

/* Becomes an ordinary user and starts again, so that /proc/self belongs to that user. */
static void become_user(char **argv)
{
    if (geteuid() != 0) {
        printf("1..0 # SKIP the caller is an ordinary user already\n");
        exit(0);
    }
    if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
        setresuid(NOBODY, NOBODY, NOBODY) == 0)
        execv("/proc/self/exe", argv);
    printf("1..0 # SKIP a user cannot reach the program\n");
    exit(0);
}

static void find_guest(void)
{
    char self[4096] = "";

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        abort();
    *strrchr(self, '/') = '\0';
    guest_dir = strdup(self);
    guest = csn_test_join(self, "cow_guest");
}

static bool all_ops(unsigned long ops)
{
    char *fill[] = {guest, "run", "7", "400", NULL};

    if (!run_tool(base, false, fill, NULL))
        return false;
    step_open();
    for (unsigned long done = 0; done < ops && !failed;) {
        unsigned count = 1 + below(BATCH_MAX);
        one_step(count);
        done += count;
    }
    if (!failed)
        step_commit();
    if (sb)
        (void)csn_destroy(sb, NULL);
    csn_close(sb);
    forget_snapshots();
    return !failed;
}

int main(int argc, char **argv)
{
    unsigned long ops = OPS_DEFAULT;
    leftover_base before;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "user") == 0)
        become_user(argv + 1);
    first_seed = (uint64_t)csn_child_now_ms() * 2654435761u ^ (uint64_t)getpid();
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            first_seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--ops") == 0 && i + 1 < argc)
            ops = strtoul(argv[++i], NULL, 10);
    }
    seed = first_seed * 0x9e3779b97f4a7c15ull | 1;
    printf("# seed %llu, %lu operations\n", (unsigned long long)first_seed, ops);
    csn_child_adopt();
    find_guest();
    top = leftover_make_place(&run_dir, &state_dir);
    if (chmod(top, 0711) < 0)
        abort();
    leftover_note(&before, top, run_dir, state_dir);
    base = csn_test_join(top, "base");
    model = csn_test_join(top, "model");
    csn_test_mkdir(base);
    bool good = all_ops(ops);
    printf("%sok 1 - a workspace is like a directory:", good ? "" : "not ");
    for (size_t i = 0; i < 5; i++)
        printf(" %u %s", counts[i], kind_names[i]);
    char *layers = csn_test_join(state_dir, "layers");
    int clean = rmdir(layers);
    good &= clean == 0;
    printf("\n%sok 2 - no layer is left\n1..2\n", clean == 0 ? "" : "not ");
    leftover_release(&before);
    csn_test_remove(top);
    return good ? 0 : 1;
}
