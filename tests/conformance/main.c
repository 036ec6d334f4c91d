/* main.c: runs the conformance tests on one backend and speaks TAP.
 *
 *   conformance --backend NAME [--list] [FILTER...]
 *
 * Every test gets a process, a scratch directory, and a state and runtime directory of its own,
 * so a crash or a hang is one failed test and nothing a test sets (environment, signals,
 * limits) reaches the next. After each test two things must hold whatever it did: no process
 * that it caused is left, and the runtime directory holds nothing. A test whose capability the
 * backend does not report becomes the check that it is refused. */
#include "conformance/conformance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"

#define DEADLINE_MS  180000 /* a test that takes this long hangs */
#define NOT_PROMISED "the backend does not promise this"

typedef struct run {
    const csn_conf_backend *be;
    const csn_conf_test *test;
    const char *dir;
    csn_fx fx;
} run;

static const csn_conf_test *const families[] = {
#define CONF_X(family) csn_conf_##family,
    CSN_CONF_FAMILIES(CONF_X)
#undef CONF_X
};
static const char *const family_names[] = {
#define CONF_X(family) #family,
    CSN_CONF_FAMILIES(CONF_X)
#undef CONF_X
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* ---- one test, in its child ---- */

static void fx_init(run *r)
{
    csn_fx *f = &r->fx;
    char *canary;

    f->be = r->be;
    f->dir = strdup(r->dir);
    f->root = csn_test_join(r->dir, "root");
    f->ws = r->be->workspace ? csn_test_join(f->root, r->be->workspace) : strdup(f->root);
    f->outside = csn_test_join(r->dir, "outside");
    csn_test_mkdir(f->root);
    csn_test_mkdir(f->outside);
    canary = csn_test_join(f->outside, "canary");
    csn_test_put(canary, "outside\n", 8);
    if (chmod(canary, 0640) < 0)
        abort();
    free(canary);
}

static void fx_release(csn_fx *f)
{
    csn_fx_close(f);
    for (size_t i = 0; i < f->kept_count; i++)
        free(f->kept[i]);
    free(f->dir);
    free(f->root);
    free(f->ws);
    free(f->outside);
    csn_conf_reset();
}

static void test_body(void **state)
{
    run *r = *state;
    csn_fx *f = &r->fx;

    if (!(r->test->flags & CONF_CLOSED) || r->test->need)
        csn_fx_open(f, CFG(0));
    if (r->test->need && !csn_fx_can(f->sb, r->test->need)) {
        print_message("REFUSES %s\n", r->test->need);
        csn_conf_refuse(f, r->test->need);
        return;
    }
    if (r->test->traits & ~r->be->traits)
        csn_conf_skip(NOT_PROMISED);
    if (r->test->flags & CONF_CLOSED)
        csn_fx_close(f);
    r->test->fn(f);
}

static int child_body(void *ctx)
{
    run *r = ctx;
    const struct CMUnitTest one = {r->test->name, test_body, NULL, NULL, r};

    if (!r->test->need && (r->test->traits & ~r->be->traits))
        csn_conf_skip(NOT_PROMISED);
    fx_init(r);
    if (r->be->setup && r->be->setup(r->fx.root) != 0)
        csn_conf_skip(r->be->why ? r->be->why() : "the backend does not work here");
    csn_test_mkdir(r->fx.ws);
    int failed = _cmocka_run_group_tests(r->test->name, &one, 1, NULL, NULL);
    fx_release(&r->fx);
    return failed ? 1 : 0;
}

/* ---- the parent ---- */

static void print_log(const char *log)
{
    for (const char *p = log; p && *p;) {
        size_t n = strcspn(p, "\n");
        printf("#   %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

/* What a test must not leave, in the runtime and state directories. */
static bool nothing_left(const char *dir)
{
    static const char *const places[] = {"run/caisson", "state/caisson/sandboxes",
                                         "state/caisson/run"};
    bool clean = true;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *path = csn_test_join(dir, places[i]);
        DIR *d = opendir(path);
        struct dirent *e;

        while (d && (e = readdir(d))) {
            if (e->d_name[0] == '.')
                continue;
            printf("#   left behind: %s/%s\n", places[i], e->d_name);
            clean = false;
        }
        if (d)
            closedir(d);
        free(path);
    }
    return clean;
}

/* 0 passed, 1 failed, 2 skipped. */
static int judge(const char *dir, csn_child_end end, const char *log, const char **ret_note)
{
    const char *skip = log ? strstr(log, "SKIP ") : NULL;
    bool ended = csn_child_orphans_end(60000);
    bool clean = true;

    *ret_note = log ? strstr(log, "REFUSES ") : NULL;
    if (!ended) {
        csn_test_print_children();
        csn_test_kill_children();
        (void)csn_child_orphans_end(60000);
    }
    if (end.exit_code == CONF_EXIT_SKIP && skip) {
        *ret_note = skip;
        return getenv("CSN_MUST_WORK") && !strstr(skip, NOT_PROMISED) ? 1 : 2;
    }
    if (end.exit_code == 0)
        clean = nothing_left(dir);
    if (log && strstr(log, ": runtime error: ")) /* a sanitizer that goes on */
        clean = false;
    if (end.hung)
        printf("#   hung: killed after %d s\n", DEADLINE_MS / 1000);
    if (end.signal && !end.hung)
        printf("#   ended by signal %d\n", end.signal);
    return end.exit_code == 0 && ended && clean ? 0 : 1;
}

static int run_one(const csn_conf_backend *be, const csn_conf_test *t, const char *base,
                   unsigned number)
{
    /* static: the child's leak checker must still find them */
    static char *dir, *state, *rt, *log_path;

    dir = csn_test_format("%s/%u", base, number);
    state = csn_test_join(dir, "state");
    rt = csn_test_join(dir, "run");
    log_path = csn_test_join(dir, "log");
    run r = {.be = be, .test = t, .dir = dir};
    const char *note = NULL;

    csn_test_mkdir(dir);
    csn_test_mkdir(state);
    csn_test_mkdir(rt);
    setenv("XDG_STATE_HOME", state, 1);
    setenv("XDG_RUNTIME_DIR", rt, 1);
    int log_fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    csn_child_end end = csn_child_run(child_body, &r, log_fd, DEADLINE_MS);
    close(log_fd);
    char *log = csn_test_get(log_path, NULL);
    int verdict = judge(dir, end, log, &note);
    int note_len = note ? (int)strcspn(note, "\n") : 0;
    if (verdict == 1)
        print_log(log);
    if (verdict == 2)
        printf("ok %u - %s # %.*s\n", number, t->name, note_len, note);
    else
        printf("%sok %u - %s%s%.*s\n", verdict ? "not " : "", number, t->name,
               note_len ? " " : "", note_len, note ? note : "");
    fflush(stdout);
    if (!getenv("CSN_TEST_KEEP"))
        csn_test_remove(dir);
    free(log);
    free(log_path);
    free(rt);
    free(state);
    free(dir);
    return verdict;
}

static bool wanted(const char *family, const char *name, char **filters)
{
    if (!*filters)
        return true;
    for (; *filters; filters++) {
        if (strcmp(family, *filters) == 0 || strstr(name, *filters))
            return true;
    }
    return false;
}

static unsigned walk(const csn_conf_backend *be, char **filters, const char *base, bool list,
                     unsigned *ret_failed)
{
    unsigned n = 0;

    for (size_t i = 0; i < FAMILIES; i++) {
        for (const csn_conf_test *t = families[i]; t->name; t++) {
            if (!wanted(family_names[i], t->name, filters))
                continue;
            n++;
            if (list)
                printf("%s %s%s%s\n", family_names[i], t->name, t->need ? " needs " : "",
                       t->need ? t->need : "");
            else if (base && run_one(be, t, base, n) == 1)
                ++*ret_failed;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    const csn_conf_backend *be = csn_conf_backends;
    const char *name = NULL;
    unsigned failed = 0;
    int at = 1;
    bool list = false;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--backend") == 0 && at + 1 < argc)
            name = argv[++at];
        else if (strcmp(argv[at], "--list") == 0)
            list = true;
        else
            name = "?";
    }
    while (be->name && name && strcmp(be->name, name) != 0)
        be++;
    if (list) {
        (void)walk(be, argv + at, NULL, true, &failed);
        return 0;
    }
    if (!name || !be->name) {
        fprintf(stderr, "usage: conformance --backend NAME [--list] [FILTER...]\nbackends:");
        for (be = csn_conf_backends; be->name; be++)
            fprintf(stderr, " %s", be->name);
        fprintf(stderr, "\n");
        return 2;
    }
    csn_child_adopt();
    unsetenv("CAISSON_BACKEND");
    unsetenv("VERCEL");
    umask(022);
    for (int i = 1; i < 32; i++)
        (void)signal(i, SIG_DFL); /* a shell that starts us in the background ignores some */
    static char *base;            /* as in run_one */
    base = csn_test_tmpdir();
    printf("1..%u\n", walk(be, argv + at, NULL, false, &failed));
    (void)walk(be, argv + at, base, false, &failed);
    csn_test_remove(base);
    free(base);
    return failed ? 1 : 0;
}
