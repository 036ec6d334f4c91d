/* threads.c: many threads of one program make, use and destroy the same sandboxes.
 *
 *   threads [user] [jail|local] [STEPS] [SEED]
 *
 * Eight threads take random steps on a few ids that all of them know, so that every call races
 * with a destroy of the same sandbox. Each call may return only the statuses that the interface
 * names for it. At the end no process, record, name, control group, mount, thread or descriptor
 * may be left. The main thread reaps the keepers, which are children of this program (a
 * subreaper), and ends the program when no thread finishes a step for minutes. Speaks TAP. */
#include <ftw.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "race/leftover.h"
#include "support/support.h"

#define THREADS       8
#define IDS           5
#define NAMES         2
#define STEPS_DEFAULT 800
#define USER          65534
#define GROUP_PREFIX  "caisson-"
#define WAIT_MS       60000
#define HANG_MS       180000

/* ---- what the threads share ---- */

typedef struct shared {
    const char *backend, *workspace;
    pthread_mutex_t lock;
    char ids[IDS][64]; /* "": free */
    atomic_long steps; /* left */
    atomic_int running;
    atomic_uint wrong;
} shared;

typedef struct worker {
    shared *all;
    unsigned number, seed;
    const char *_Atomic doing;
    _Atomic int64_t since;
} worker;

static unsigned pick(worker *w, unsigned n)
{
    return (unsigned)rand_r(&w->seed) / 7 % n;
}

/* The id at a random place; false: there is none. */
static bool some_id(worker *w, char id[64])
{
    pthread_mutex_lock(&w->all->lock);
    memcpy(id, w->all->ids[pick(w, IDS)], 64);
    pthread_mutex_unlock(&w->all->lock);
    return id[0] != '\0';
}

/* false: no place is free. */
static bool publish(worker *w, const char *id)
{
    bool found = false;

    pthread_mutex_lock(&w->all->lock);
    for (int i = 0; i < IDS && !found; i++)
        if (w->all->ids[i][0] == '\0') {
            snprintf(w->all->ids[i], 64, "%s", id);
            found = true;
        }
    pthread_mutex_unlock(&w->all->lock);
    return found;
}

static void withdraw(worker *w, const char *id)
{
    pthread_mutex_lock(&w->all->lock);
    for (int i = 0; i < IDS; i++)
        if (strcmp(w->all->ids[i], id) == 0)
            w->all->ids[i][0] = '\0';
    pthread_mutex_unlock(&w->all->lock);
}

/* ---- calls with the statuses they may have ---- */

static void begin(worker *w, const char *what)
{
    atomic_store(&w->since, csn_child_now_ms());
    atomic_store(&w->doing, what);
}

/* The statuses end with CSN_OK, which every call may return. Frees the error. */
static bool allowed(worker *w, csn_status st, csn_error *err, ...)
{
    va_list ap;
    bool good = st == CSN_OK;
    int other;

    va_start(ap, err);
    while (!good && (other = va_arg(ap, int)) != CSN_OK)
        good = st == (csn_status)other;
    va_end(ap);
    if (!good) {
        atomic_fetch_add(&w->all->wrong, 1);
        printf("# thread %u: %s: %s: %s\n", w->number, atomic_load(&w->doing),
               csn_status_name(st), err ? csn_error_message(err) : "no message");
    }
    csn_error_free(err);
    return st == CSN_OK;
}

static csn_sandbox *open_one(worker *w, uint32_t flags, const char *name)
{
    const csn_config config = {
        .size = sizeof(config),
        .flags = flags,
        .backend = w->all->backend,
        .workspace = w->all->workspace,
        .name = name,
        .pids_max = pick(w, 4) == 0 && strcmp(w->all->backend, "jail") == 0 ? 64 : 0};
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    begin(w, name ? "open with a name" : "open");
    csn_status st = csn_open(&config, &sb, &err);
    (void)allowed(w, st, err, name ? CSN_EXISTS : CSN_OK, CSN_OK);
    return sb;
}

static void exec_in(worker *w, csn_sandbox *sb)
{
    const char *argv[] = {"/bin/true", NULL};
    csn_exec_result *r = NULL;
    csn_error *err = NULL;

    begin(w, "exec");
    csn_status st = csn_exec(sb, argv, NULL, &r, &err);
    (void)allowed(w, st, err, CSN_GONE, CSN_OK);
    csn_exec_result_free(r);
}

static void start_in(worker *w, csn_sandbox *sb)
{
    const char *argv[] = {"/bin/sleep", "86400", NULL};
    csn_process *p = NULL;
    csn_error *err = NULL;

    begin(w, "start");
    csn_status st = csn_start(sb, argv, NULL, &p, &err);
    if (!allowed(w, st, err, CSN_GONE, CSN_OK))
        return;
    err = NULL;
    begin(w, "signal a process");
    if (pick(w, 2)) {
        st = csn_process_signal(p, SIGKILL, &err);
        (void)allowed(w, st, err, CSN_GONE, CSN_NOT_FOUND, CSN_OK);
    }
    csn_process_free(p);
}

static void write_in(worker *w, csn_sandbox *sb)
{
    char path[32], text[32];
    csn_error *err = NULL;
    csn_read_result *r = NULL;

    snprintf(path, sizeof(path), "file%u", w->number); /* its own: the content is known */
    snprintf(text, sizeof(text), "%u\n", pick(w, 1000000));
    begin(w, "write");
    csn_status st = csn_write(sb, path, text, strlen(text), NULL, NULL, &err);
    if (!allowed(w, st, err, CSN_GONE, CSN_OK))
        return;
    err = NULL;
    begin(w, "read");
    st = csn_read(sb, path, NULL, &r, &err);
    if (allowed(w, st, err, CSN_GONE, CSN_OK) && strcmp(r->content, text) != 0) {
        atomic_fetch_add(&w->all->wrong, 1);
        printf("# thread %u: read %s instead of %s\n", w->number, r->content, text);
    }
    csn_read_result_free(r);
}

static void info_of(worker *w, csn_sandbox *sb)
{
    csn_info_result *r = NULL;
    csn_error *err = NULL;

    begin(w, "info");
    csn_status st = csn_info(sb, &r, &err);
    (void)allowed(w, st, err, CSN_GONE, CSN_OK);
    csn_info_free(r);
}

static void close_one(worker *w, csn_sandbox *sb)
{
    begin(w, "close");
    csn_close(sb);
}

/* ---- steps ---- */

static void use(worker *w, csn_sandbox *sb)
{
    for (unsigned i = 1 + pick(w, 3); i > 0; i--)
        switch (pick(w, 4)) {
        case 0:
            exec_in(w, sb);
            break;
        case 1:
            start_in(w, sb);
            break;
        case 2:
            write_in(w, sb);
            break;
        default:
            info_of(w, sb);
            break;
        }
}

/* Destroys through the handle. Of a sandbox that another thread has destroyed nothing is left
 * to do, which is a success or CSN_GONE. */
static void destroy_one(worker *w, csn_sandbox *sb)
{
    csn_error *err = NULL;

    withdraw(w, csn_id(sb));
    begin(w, "destroy");
    csn_status st = csn_destroy(sb, &err);
    (void)allowed(w, st, err, CSN_GONE, CSN_OK);
}

static void step_detached(worker *w)
{
    static const char *const names[NAMES] = {"one", "two"};
    csn_sandbox *sb = open_one(w, CSN_OPEN_DETACHED, pick(w, 2) ? names[pick(w, NAMES)] : NULL);

    if (!sb)
        return;
    if (publish(w, csn_id(sb)))
        use(w, sb);
    else
        destroy_one(w, sb);
    close_one(w, sb);
}

static void step_owned(worker *w)
{
    csn_sandbox *sb = open_one(w, 0, NULL);

    if (!sb)
        return;
    use(w, sb);
    if (pick(w, 2))
        destroy_one(w, sb);
    close_one(w, sb);
}

static void step_connect(worker *w)
{
    char id[64];
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    if (!some_id(w, id))
        return;
    begin(w, "connect");
    csn_status st = csn_connect(id, &sb, &err);
    if (!allowed(w, st, err, CSN_GONE, CSN_NOT_FOUND, CSN_OK))
        return;
    use(w, sb);
    if (pick(w, 4) == 0)
        destroy_one(w, sb);
    close_one(w, sb);
}

static void step_destroy(worker *w)
{
    char id[64];
    csn_error *err = NULL;

    if (!some_id(w, id))
        return;
    if (pick(w, 2))
        withdraw(w, id); /* or leave it known, so that several threads destroy it */
    begin(w, "destroy by id");
    csn_status st = csn_destroy_id(id, &err);
    (void)allowed(w, st, err, CSN_NOT_FOUND, CSN_OK);
    withdraw(w, id);
}

static void step_list(worker *w)
{
    csn_sandbox_list *l = NULL;
    csn_error *err = NULL;

    begin(w, "list");
    csn_status st = csn_sandboxes(&l, &err);
    (void)allowed(w, st, err, CSN_OK);
    csn_sandbox_list_free(l);
}

static void *work(void *arg)
{
    worker *w = arg;

    while (atomic_fetch_sub(&w->all->steps, 1) > 0)
        switch (pick(w, 10)) {
        case 0:
        case 1:
        case 2:
            step_detached(w);
            break;
        case 3:
            step_owned(w);
            break;
        case 4:
        case 5:
        case 6:
            step_connect(w);
            break;
        case 7:
        case 8:
            step_destroy(w);
            break;
        default:
            step_list(w);
            break;
        }
    atomic_store(&w->since, INT64_MAX);
    atomic_fetch_sub(&w->all->running, 1);
    return NULL;
}

/* ---- the main thread ---- */

static void expect_progress(worker *workers)
{
    for (int i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        if (csn_child_now_ms() - atomic_load(&w->since) > HANG_MS) {
            printf("not ok 1 - thread %u hangs in %s\n1..1\n", w->number,
                   atomic_load(&w->doing));
            fflush(NULL);
            _exit(1);
        }
    }
}

static void run(shared *all, long steps, unsigned seed)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];

    atomic_store(&all->steps, steps);
    atomic_store(&all->running, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = all, .number = i, .seed = seed * 1000 + i};
        begin(&workers[i], "begin");
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            abort();
    }
    while (atomic_load(&all->running) > 0) {
        (void)leftover_no_children();
        expect_progress(workers);
        csn_child_nap(2);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* What the threads did not destroy: the list knows all of it. */
static unsigned destroy_rest(void)
{
    csn_sandbox_list *l = NULL;
    unsigned bad = 0;

    if (csn_sandboxes(&l, NULL) < 0)
        return 1;
    for (size_t i = 0; i < l->count; i++) {
        csn_error *err = NULL;
        if (csn_destroy_id(l->items[i].id, &err) < 0) {
            printf("# destroy %s: %s\n", l->items[i].id, csn_error_message(err));
            bad++;
        }
        csn_error_free(err);
    }
    csn_sandbox_list_free(l);
    if (csn_sandboxes(&l, NULL) < 0)
        return bad + 1;
    bad += l->count != 0;
    csn_sandbox_list_free(l);
    return bad;
}

static bool children_end(void)
{
    int64_t until = csn_child_now_ms() + WAIT_MS;

    while (!leftover_no_children()) {
        if (csn_child_now_ms() > until) {
            csn_test_print_children();
            csn_test_kill_children();
            return false;
        }
        csn_child_nap(2);
    }
    return true;
}

/* Groups of sandboxes of this program, which are those with an audit log in its directory:
 * other programs make groups at the same time. */
static const char *audit_dir;
static size_t groups_left;

static int count_group(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    const char *name = path + at->base;

    (void)st;
    if (kind != FTW_D || strncmp(name, GROUP_PREFIX, strlen(GROUP_PREFIX)) != 0)
        return 0;
    char *log = csn_test_format("%s/%s.jsonl", audit_dir, name + strlen(GROUP_PREFIX));
    groups_left += csn_test_exists(log);
    free(log);
    return 0;
}

/* The sweepers have ended, and with them their work. */
static size_t count_groups(const char *state)
{
    char *dir = csn_test_join(state, "audit");

    audit_dir = dir;
    groups_left = 0;
    (void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
    free(dir);
    return groups_left;
}

static unsigned failed;

static void report(bool ok, const char *what, size_t found)
{
    static int number;

    printf("%sok %d - %s: %zu\n", ok ? "" : "not ", ++number, what, found);
    failed += !ok;
}

static void check(shared *all, leftover_base *base, size_t fds, long steps)
{
    unsigned wrong = atomic_load(&all->wrong), rest = destroy_rest();
    size_t n;

    report(wrong == 0, "calls with a status that they may not have", wrong);
    report(rest == 0, "sandboxes that cannot be destroyed at the end", rest);
    report(children_end(), "processes are gone after steps", (size_t)steps);
    n = leftover_directories(base);
    report(n == 0, "records, names and directories left", n);
    n = leftover_mounts(base);
    report(n == 0, "mounts left", n);
    n = count_groups(base->state);
    report(n == 0, "control groups left", n);
    n = csn_test_fd_count();
    report(n == fds, "descriptors, as many as before", n);
    printf("1..7\n");
}

/* Becomes an ordinary user and starts again, so that /proc/self belongs to that user. */
static void become_user(char **argv)
{
    if (getuid() != 0 || setgroups(0, NULL) < 0 || setresgid(USER, USER, USER) < 0 ||
        setresuid(USER, USER, USER) < 0) {
        printf("1..0 # SKIP the caller is an ordinary user already\n");
        exit(0);
    }
    execv("/proc/self/exe", argv);
    printf("1..0 # SKIP a user cannot reach the program\n");
    exit(0);
}

static bool works_here(shared *all)
{
    worker w = {.all = all};
    csn_sandbox *sb = open_one(&w, 0, NULL);

    csn_close(sb);
    (void)children_end();
    return sb || getenv("CSN_MUST_WORK");
}

/* Directories of its own, so that everything in them is of this program. */
typedef struct place {
    char *top, *workspace, *run, *state, *run_own, *state_own;
} place;

static place place_make(void)
{
    place p = {.top = csn_test_tmpdir()};

    p.workspace = csn_test_join(p.top, "ws");
    p.run = csn_test_join(p.top, "run");
    p.state = csn_test_join(p.top, "state");
    p.run_own = csn_test_join(p.run, "caisson");
    p.state_own = csn_test_join(p.state, "caisson");
    csn_test_mkdir(p.workspace);
    csn_test_mkdir(p.run);
    csn_test_mkdir(p.state);
    setenv("XDG_RUNTIME_DIR", p.run, 1);
    setenv("XDG_STATE_HOME", p.state, 1);
    return p;
}

static void place_remove(place *p)
{
    csn_test_remove(p->top);
    free(p->top);
    free(p->workspace);
    free(p->run);
    free(p->state);
    free(p->run_own);
    free(p->state_own);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "user") == 0)
        become_user(argv + 1);
    place p = place_make();
    shared all = {.backend = argc > 1 ? argv[1] : "jail",
                  .workspace = p.workspace,
                  .lock = PTHREAD_MUTEX_INITIALIZER};
    long steps = argc > 2 ? strtol(argv[2], NULL, 10) : STEPS_DEFAULT;
    unsigned seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
    leftover_base base;

    setvbuf(stdout, NULL, _IOLBF, 0);
    csn_child_adopt();
    printf("# %s, %ld steps, seed %u\n", all.backend, steps, seed);
    leftover_note(&base, p.top, p.run_own, p.state_own);
    if (!works_here(&all)) {
        printf("1..0 # SKIP no %s here\n", all.backend);
    } else {
        atomic_store(&all.wrong, 0);
        run(&all, 100, seed); /* what the library opens once and keeps */
        (void)destroy_rest();
        size_t fds = csn_test_fd_count();
        run(&all, steps, seed + 1);
        check(&all, &base, fds, steps);
    }
    leftover_release(&base);
    place_remove(&p);
    return failed != 0;
}
