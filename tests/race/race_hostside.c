/* race_hostside.c: every operation of the host side, while another process swaps links.
 *
 *   race_hostside [N [NAME]]     N rounds in all (default 2000), shared out among the
 * operations, or all for the operation NAME
 *
 * The operations are those of the public interface, on the backends local and jail. A hostile
 * process exchanges BASE/x (a directory) with BASE/y (a link to the outside) as fast as the
 * kernel does it; BASE is the workspace or, for transfers, the host directory. For the scan of
 * a jail, which a command triggers, it also plants protected files; outside there are some that
 * look new. The audit log has a file that is exchanged with a link.
 *
 * The outside holds canaries. An escape is a byte read from there, or anything there that
 * changed, appeared or went away; it is looked at after every batch. A round counts as
 * "directory" if the operation succeeded and as "link" if it was refused; a part that has not
 * seen both, or no swap during a round, has not raced, and goes on. Speaks TAP; exit status 1:
 * escaped, or did not race. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "support/support.h"

#define OUTSIDE   "outside bytes"
#define INSIDE    "inside bytes"
#define BATCH     64
#define N_DEFAULT 2000
#define PATIENCE  200 /* times the rounds of a part, until both outcomes were seen */
#define ENTRIES   9   /* outside, with the directory itself */

typedef struct shared {
    _Atomic bool stop;
    _Atomic long swaps;
} shared;

static shared *racer_state;
static char *top, *root, *outside, *source, *target, *audit_dir;
static csn_sandbox *sandbox;
static long escapes;
static bool found_outside;
static int entries;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    printf("Bail out! %s: %s\n", what, strerrordesc_np(errno));
    exit(2);
}

static void put(const char *dir, const char *name, const char *text)
{
    char *path = csn_test_join(dir, name);

    csn_test_put(path, text, strlen(text));
    free(path);
}

static void make(const char *dir, const char *name)
{
    char *path = csn_test_join(dir, name);

    must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
    free(path);
}

static void drop(const char *dir, const char *name)
{
    char *path = csn_test_join(dir, name);

    csn_test_remove(path);
    free(path);
}

/* ---- the outside ---- */

static int look_at(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    entries++;
    if (type != FTW_F)
        return 0;
    size_t len = 0;
    char *text = csn_test_get(path, &len);
    bool same = text && len == strlen(OUTSIDE) && memcmp(text, OUTSIDE, len) == 0;
    if (same)
        found_outside = true;
    else
        entries = -1000; /* a canary with other bytes */
    free(text);
    (void)st;
    return 0;
}

static bool outside_intact(void)
{
    entries = 0;
    return nftw(outside, look_at, 16, FTW_PHYS) == 0 && entries == ENTRIES;
}

/* Whether bytes of the outside arrived in a directory; links are not followed. */
static bool holds_outside(const char *dir)
{
    found_outside = false;
    (void)nftw(dir, look_at, 16, FTW_PHYS);
    return found_outside;
}

/* The canaries look as if they had just been written, for ever. */
static void build_outside(void)
{
    static const char *const files[] = {"secret", "sub/secret", ".envrc",
                                        ".git/hooks/pre-commit", "log"};
    const struct timespec late[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};

    make(outside, "sub");
    make(outside, ".git");
    make(outside, ".git/hooks");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = csn_test_join(outside, files[i]);
        csn_test_put(path, OUTSIDE, strlen(OUTSIDE));
        must(utimensat(AT_FDCWD, path, late, 0) == 0, path);
        free(path);
    }
}

/* ---- the hostile process ---- */

static void plant(int base)
{
    static const char *const files[] = {".envrc", ".git/hooks/pre-commit"};
    int dir = openat(base, "x", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0) /* the link has this name just now */
        dir = openat(base, "y", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return;
    mkdirat(dir, ".git", 0755);
    mkdirat(dir, ".git/hooks", 0755);
    for (size_t i = 0; i < 2; i++) {
        int fd =
            openat(dir, files[i], O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0755);
        if (fd >= 0) {
            (void)!write(fd, INSIDE, strlen(INSIDE));
            close(fd);
        }
    }
    close(dir);
}

static pid_t start_racer(const char *base, bool plants)
{
    racer_state->stop = false;
    racer_state->swaps = 0;
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long i = 0; !racer_state->stop; i++) {
        if (renameat2(fd, "x", fd, "y", RENAME_EXCHANGE) == 0)
            racer_state->swaps++;
        if (plants && i % 64 == 0)
            plant(fd);
    }
    _exit(0);
}

/* What is in the tree that is swapped, made again since operations remove it. */
static void refill(const char *base)
{
    for (int i = 0; i < 2; i++) {
        char *path = csn_test_format("%s/%c", base, "xy"[i]);
        struct stat st;
        if (lstat(path, &st) < 0)
            must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            mkdirat(fd, "sub", 0755);
            for (int k = 0; k < 2; k++) {
                int f = openat(fd, k ? "sub/secret" : "secret",
                               O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
                if (f >= 0 && write(f, INSIDE, strlen(INSIDE)) < 0)
                    must(false, path);
                if (f >= 0)
                    close(f);
            }
            close(fd);
        }
        free(path);
    }
}

/* ---- one round of each operation; true: it succeeded ---- */

static int sink(void *ctx, const void *data, size_t len)
{
    (void)ctx;
    if (len >= 7 && memmem(data, len, OUTSIDE, strlen(OUTSIDE)))
        escapes++;
    return 0;
}

static bool done(csn_status st, csn_error *err)
{
    csn_error_free(err);
    return st == CSN_OK;
}

/* The control: a program that opens by path. It must be led outside. */
static bool try_naive(long i)
{
    char *path = csn_test_join(root, i % 2 ? "x/secret" : "x/sub/secret");
    char *text = csn_test_get(path, NULL);
    bool inside = text && strcmp(text, INSIDE) == 0;

    if (text)
        (void)sink(NULL, text, strlen(text));
    free(text);
    free(path);
    return inside;
}

static bool try_read(long i)
{
    csn_error *err = NULL;
    csn_status st =
        csn_read_bytes(sandbox, i % 2 ? "x/secret" : "x/sub/secret", NULL, sink, NULL, &err);

    return done(st, err);
}

static bool try_grep(long i)
{
    csn_error *err = NULL;
    csn_grep_result *r = NULL;
    const csn_grep_opts opts = {.size = sizeof(opts), .path = i % 2 ? "x" : "x/sub"};
    csn_status st = csn_grep(sandbox, "bytes", &opts, &r, &err);

    for (size_t k = 0; st == CSN_OK && k < r->count; k++)
        (void)sink(NULL, r->items[k].text, r->items[k].text_len);
    csn_grep_result_free(r);
    return done(st, err);
}

static bool try_list(long i)
{
    csn_error *err = NULL;
    csn_file_list *list = NULL;
    csn_status st = i % 2 ? csn_list(sandbox, "x", 0, &list, &err)
                          : csn_glob(sandbox, "**", "x", 0, &list, &err);

    for (size_t k = 0; st == CSN_OK && k < list->count; k++)
        if (strcmp(list->items[k].path, "log") == 0) /* only the outside has it */
            escapes++;
    csn_file_list_free(list);
    return done(st, err);
}

static bool try_write(long i)
{
    static const char *const paths[] = {"x/secret", "x/new", "x/sub/secret", "x/a/b/new"};
    csn_error *err = NULL;
    const csn_write_opts opts = {.size = sizeof(opts),
                                 .flags = i % 8 < 4 ? 0 : CSN_FILE_APPEND};

    return done(csn_write(sandbox, paths[i % 4], INSIDE, strlen(INSIDE), &opts, NULL, &err),
                err);
}

static bool try_edit(long i)
{
    csn_error *err = NULL;
    const csn_edit_item item = {.old_string = "s", .new_string = "S", .replace_all = 1};
    const csn_edit_item back = {.old_string = "S", .new_string = "s", .replace_all = 1};

    return done(csn_edit(sandbox, "x/secret", i % 2 ? &item : &back, 1, 0, NULL, &err), err);
}

static bool try_rename(long i)
{
    static const char *const moves[][2] = {{"x/secret", "x/sub/moved"},
                                           {"x/sub/moved", "x/secret"},
                                           {"keep", "x/keep"},
                                           {"x/keep", "keep"}};
    csn_error *err = NULL;

    return done(csn_rename(sandbox, moves[i % 4][0], moves[i % 4][1], 0, &err), err);
}

static bool try_remove(long i)
{
    csn_error *err = NULL;
    bool ok =
        done(csn_delete(sandbox, i % 2 ? "x/sub" : "x/secret", CSN_FILE_RECURSIVE, &err), err);

    if (i % 4 == 3)
        refill(root);
    return ok;
}

static bool try_mkdir(long i)
{
    csn_error *err = NULL;
    bool ok = done(csn_mkdir(sandbox, "x/made/deep", 0, &err), err);

    if (i % 8 == 7)
        (void)done(csn_delete(sandbox, "x/made", CSN_FILE_RECURSIVE, &err), NULL);
    return ok;
}

static bool try_export(long i)
{
    csn_error *err = NULL;
    char *to = csn_test_join(top, "copy");
    bool ok = done(csn_export(sandbox, i % 2 ? "x" : "x/sub", to, NULL, &err), err);

    if (csn_test_exists(to) && holds_outside(to))
        escapes++;
    csn_test_remove(to);
    free(to);
    return ok;
}

static bool try_export_into(long i)
{
    csn_error *err = NULL;

    (void)i;
    return done(csn_export(sandbox, "plain", target, NULL, &err), err);
}

static bool try_import(long i)
{
    csn_error *err = NULL;
    char *from = csn_test_join(root, "plain/x");
    bool ok = done(csn_import(sandbox, from, i % 2 ? "x" : "x/sub", NULL, &err), err);

    free(from);
    return ok;
}

static bool try_import_from(long i)
{
    csn_error *err = NULL;
    char *in = csn_test_join(root, "in");

    (void)i;
    drop(root, "in");
    bool ok = done(csn_import(sandbox, source, "in", NULL, &err), err);
    if (csn_test_exists(in) && holds_outside(in))
        escapes++;
    /* what came as a link was seen as one */
    char *x = csn_test_join(in, "x/secret");
    ok = ok && csn_test_exists(x);
    free(x);
    free(in);
    return ok;
}

/* The scan and what it sets aside; a round succeeded if something was found. */
static bool try_scan(long i)
{
    const char *argv[] = {"/bin/true", NULL};
    csn_error *err = NULL;
    csn_exec_result *r = NULL;
    csn_status st = csn_exec(sandbox, argv, NULL, &r, &err);
    bool found = st == CSN_OK && r->denial_count > 0;

    (void)i;
    if (st < 0)
        printf("# scan: %s\n", csn_error_message(err));
    csn_exec_result_free(r);
    (void)done(st, err);
    return found;
}

/* A log whose file another process exchanges with a link to the outside. */
static bool try_audit(long i)
{
    char *log = csn_test_join(audit_dir, "x");
    const csn_config config = {
        .size = sizeof(config), .backend = "local", .workspace = root, .audit = log};
    csn_error *err = NULL;
    csn_sandbox *sb = NULL;
    csn_file_list *list = NULL;
    csn_status st = csn_open(&config, &sb, &err);

    (void)i;
    if (st == CSN_OK)
        st = csn_stat(sb, ".", 0, &list, &err);
    csn_file_list_free(list);
    csn_close(sb);
    free(log);
    drop(audit_dir, "x.head");
    return done(st, err);
}

/* ---- the parts ---- */

typedef struct part {
    const char *name, *backend;
    bool (*attempt)(long i);
    char **base;
    unsigned weight; /* of the rounds */
    bool plants;
} part;

/* clang-format off */
static const part parts[] = {
    {"control", NULL, try_naive, &root, 10, false},
    {"read", "local", try_read, &root, 60, false},
    {"grep", "local", try_grep, &root, 20, false},
    {"list and glob", "local", try_list, &root, 20, false},
    {"write", "local", try_write, &root, 60, false},
    {"edit", "local", try_edit, &root, 60, false},
    {"rename", "local", try_rename, &root, 60, false},
    {"remove", "local", try_remove, &root, 60, false},
    {"mkdir", "local", try_mkdir, &root, 60, false},
    {"export", "local", try_export, &root, 10, false},
    {"export into", "local", try_export_into, &target, 20, false},
    {"import", "local", try_import, &root, 20, false},
    {"import from", "local", try_import_from, &source, 10, false},
    {"audit", NULL, try_audit, &audit_dir, 1, false},
    {"read", "jail", try_read, &root, 60, false},
    {"write", "jail", try_write, &root, 60, false},
    {"edit", "jail", try_edit, &root, 60, false},
    {"rename", "jail", try_rename, &root, 60, false},
    {"remove", "jail", try_remove, &root, 60, false},
    {"export", "jail", try_export, &root, 10, false},
    {"import", "jail", try_import, &root, 20, false},
    {"scan and set aside", "jail", try_scan, &root, 2, true},
};
/* clang-format on */
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static void open_sandbox(const char *backend)
{
    const csn_config config = {
        .size = sizeof(config), .backend = backend, .workspace = root, .audit = "none"};
    csn_error *err = NULL;

    if (csn_open(&config, &sandbox, &err) < 0) {
        printf("Bail out! %s: %s\n", backend, csn_error_message(err));
        exit(2);
    }
}

static long run(const part *p, long rounds, int number)
{
    long as_directory = 0, as_link = 0, raced = 0, i = 0;
    bool intact = true;

    escapes = 0;
    refill(root);
    put(root, "keep", INSIDE);
    if (p->backend)
        open_sandbox(p->backend);
    pid_t racer = start_racer(*p->base, p->plants);
    for (; intact &&
           (i < rounds || ((!as_directory || !as_link || !raced) && i < PATIENCE * rounds));
         i++) {
        long before = racer_state->swaps;
        if (p->attempt(i))
            as_directory++;
        else
            as_link++;
        raced += racer_state->swaps != before;
        if (i % BATCH == BATCH - 1)
            intact = outside_intact();
    }
    racer_state->stop = true;
    must(waitpid(racer, NULL, 0) == racer, "waitpid");
    csn_close(sandbox);
    sandbox = NULL;
    escapes += !intact || !outside_intact();
    bool control = p->attempt == try_naive;
    bool ok = (escapes > 0) == control && as_directory > 0 && as_link > 0 && raced > 0;
    printf("%sok %d - %s, %s: %ld rounds, %ld swaps, %ld rounds with a swap in them, %ld as "
           "directory, %ld as link, %ld escapes\n",
           ok ? "" : "not ", number, p->name, p->backend ? p->backend : "no sandbox", i,
           (long)racer_state->swaps, raced, as_directory, as_link, escapes);
    fflush(stdout);
    return ok ? i : -1;
}

static void build(void)
{
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* in memory a racer is a hundred times faster */
    top = csn_test_tmpdir();
    root = csn_test_join(top, "root");
    outside = csn_test_join(top, "out");
    source = csn_test_join(top, "source");
    target = csn_test_join(top, "target");
    audit_dir = csn_test_join(top, "log");
    char *const dirs[] = {root, outside, source, target, audit_dir};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        csn_test_mkdir(dirs[i]);
    setenv("XDG_RUNTIME_DIR", top, 1);
    setenv("XDG_STATE_HOME", top, 1);
    build_outside();
    make(root, "plain");
    char *plain = csn_test_join(root, "plain");
    char *const bases[] = {plain, root, source, target};
    for (size_t i = 0; i < 4; i++) {
        char *y = csn_test_join(bases[i], "y");
        make(bases[i], "x");
        if (i > 0)
            must(symlink("../out", y) == 0, y);
        refill(bases[i]);
        free(y);
    }
    drop(plain, "y");
    free(plain);
    char *y = csn_test_join(audit_dir, "y");
    must(symlink("../out/log", y) == 0, y);
    put(audit_dir, "x", "");
    free(y);
    racer_state = mmap(NULL, sizeof(*racer_state), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(racer_state != MAP_FAILED, "mmap");
    must(outside_intact(), "the outside as it was built");
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : N_DEFAULT, all = 0, weights = 0;
    bool failed = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    build();
    for (size_t i = 0; i < PARTS; i++)
        weights += parts[i].weight;
    printf("1..%zu\n", PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        bool named = argc > 2 && strcmp(argv[2], parts[i].name) == 0;
        if (argc > 2 && !named) {
            printf("ok %zu - %s # SKIP not asked for\n", i + 1, parts[i].name);
            continue;
        }
        long rounds = named ? n : n * (long)parts[i].weight / weights + 1;
        long ran = run(&parts[i], rounds, (int)i + 1);
        failed |= ran < 0;
        all += ran < 0 ? 0 : ran;
    }
    printf("# %ld rounds in all\n", all);
    csn_test_remove(top);
    return failed ? 1 : 0;
}
