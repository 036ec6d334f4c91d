/* threads.c: one sandbox, many threads. Mixed operations at once, the first call racing the
 * opening of a lazy backend, close and destroy under load. Threads only collect; the test's own
 * thread checks. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backends/bash.h"

enum { THREADS = 64 };

typedef struct mixer {
    csn_sandbox *sb;
    int id, rounds;
    char trouble[256];
} mixer;

static void trouble(mixer *m, const char *what, csn_status st, csn_error *err)
{
    if (!m->trouble[0])
        snprintf(m->trouble, sizeof(m->trouble), "thread %d: %s: %s %s", m->id, what,
                 csn_status_name(st), err ? csn_error_message(err) : "");
    csn_error_free(err);
}

/* Each thread works in files of its own and checks every byte. */
static void mix_files(mixer *m, int round)
{
    char path[64], text[128];
    csn_error *err = NULL;
    csn_read_result *r = NULL;
    csn_file_list *l = NULL;
    csn_edit_item e = {.old_string = "round", .new_string = "lap"};

    snprintf(path, sizeof(path), "t%d/file", m->id);
    snprintf(text, sizeof(text), "thread %d round %d\n", m->id, round);
    csn_status st = csn_write(m->sb, path, text, strlen(text), NULL, NULL, &err);
    if (st == CSN_OK)
        st = csn_read(m->sb, path, NULL, &r, &err);
    if (st != CSN_OK || strcmp(r->content, text) != 0)
        trouble(m, "write and read", st, err);
    err = NULL;
    st = csn_edit(m->sb, path, &e, 1, 0, NULL, &err);
    if (st != CSN_OK)
        trouble(m, "edit", st, err);
    err = NULL;
    st = csn_stat(m->sb, path, 0, &l, &err);
    if (st != CSN_OK)
        trouble(m, "stat", st, err);
    csn_read_result_free(r);
    csn_file_list_free(l);
}

static void mix_exec(mixer *m, int round)
{
    char cmd[128], want[64];
    csn_error *err = NULL;
    csn_exec_result *r = NULL;

    snprintf(cmd, sizeof(cmd), "echo %d-%d; exit %d", m->id, round, m->id);
    snprintf(want, sizeof(want), "%d-%d\n", m->id, round);
    csn_status st = csn_sh(m->sb, cmd, EXEC(.timeout_ms = 150000), &r, &err);
    if (st != CSN_OK || strcmp(r->out.data, want) != 0 || r->exit_code != m->id)
        trouble(m, "exec", st, err);
    csn_exec_result_free(r);
}

static void mix_search(mixer *m)
{
    char dir[32];
    csn_error *err = NULL;
    csn_grep_result *g = NULL;
    csn_file_list *l = NULL;
    csn_info_result *i = NULL;

    snprintf(dir, sizeof(dir), "t%d", m->id);
    csn_status st = csn_list(m->sb, dir, 0, &l, &err);
    if (st != CSN_OK || l->count != 1)
        trouble(m, "list", st, err);
    err = NULL;
    st = csn_grep(m->sb, "thread", CSN_OPTS(csn_grep_opts, .path = dir), &g, &err);
    if (st != CSN_OK || g->count != 1)
        trouble(m, "grep", st, err);
    err = NULL;
    st = csn_info(m->sb, &i, &err);
    if (st != CSN_OK)
        trouble(m, "info", st, err);
    csn_file_list_free(l);
    csn_grep_result_free(g);
    csn_info_free(i);
}

static void *mix(void *ctx)
{
    mixer *m = ctx;

    for (int i = 0; i < m->rounds && !m->trouble[0]; i++) {
        mix_files(m, i);
        mix_search(m);
        mix_exec(m, i);
    }
    return NULL;
}

static void run_mixers(csn_fx *f, void *(*fn)(void *), int rounds)
{
    pthread_t t[THREADS];
    mixer m[THREADS];

    for (int i = 0; i < THREADS; i++) {
        m[i] = (mixer){.sb = f->sb, .id = i, .rounds = rounds};
        assert_int_equal(pthread_create(&t[i], NULL, fn, &m[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (m[i].trouble[0])
            print_message("%s\n", m[i].trouble);
        assert_string_equal(m[i].trouble, "");
    }
}

/* S1: TestLocalSandbox_Concurrent */
static void sixty_four_threads_share_a_sandbox(csn_fx *f)
{
    AUTO(csn_audit_report, rep);

    run_mixers(f, mix, csn_fx_can(f->sb, "files_native") ? 6 : 1);
    ok(csn_audit_verify(csn_id(f->sb), &rep, E)); /* the chain held under all of them */
    assert_int_equal(rep->ok, 1);
}

/* ---- the first call ---- */

typedef struct first {
    csn_sandbox *sb;
    pthread_barrier_t *gate;
    csn_status st;
    bool right;
} first;

static void *first_call(void *ctx)
{
    first *c = ctx;
    csn_exec_result *r = NULL;

    pthread_barrier_wait(c->gate);
    c->st = csn_sh(c->sb, "echo hi", EXEC(.timeout_ms = 150000), &r, NULL);
    c->right = c->st == CSN_OK && strcmp(r->out.data, "hi\n") == 0;
    csn_exec_result_free(r);
    return NULL;
}

static unsigned race_first_calls(csn_sandbox *sb)
{
    pthread_barrier_t gate;
    pthread_t t[THREADS];
    first c[THREADS];
    unsigned right = 0;

    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        c[i] = (first){.sb = sb, .gate = &gate};
        pthread_create(&t[i], NULL, first_call, &c[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        right += c[i].right;
    }
    pthread_barrier_destroy(&gate);
    return right;
}

static void first_calls_may_race(csn_fx *f)
{
    assert_int_equal(race_first_calls(f->sb), THREADS);
}

/* S2: lazy singleton: one creation, however many ask at once, deferred to the first call. The
 * backend is bash with an open that is slow, counted, and may fail. */
static atomic_uint opened, closed;
static unsigned fail_opens;
static const csn_backend_ops *bash_ops;

static csn_status counted_open(const csn_config *config, const char *id, void *data,
                               void **ret_state, csn_error **err)
{
    (void)config;
    (void)id;
    unsigned n = atomic_fetch_add(&opened, 1) + 1;
    csn_test_nap(50);
    if (n <= fail_opens)
        return csn_error_set(err, CSN_UNAVAILABLE, "no machine yet");
    *ret_state = data;
    return CSN_OK;
}

static void counted_close(void *state)
{
    if (state)
        atomic_fetch_add(&closed, 1);
}

static csn_backend_ops lazy_ops;

static void register_lazy(csn_fx *f, uint32_t caps)
{
    void *state = NULL;

    bash_ops = csn_test_bash_ops(f->ws, &state);
    assert_non_null(bash_ops);
    lazy_ops = *bash_ops;
    lazy_ops.name = "counted";
    lazy_ops.open = counted_open;
    lazy_ops.close = counted_close;
    lazy_ops.caps = caps;
    ok(csn_register_backend(&lazy_ops, state, E));
}

static void lazy_backend_is_opened_once(csn_fx *f)
{
    AUTO(csn_sandbox, sb);
    AUTO(csn_info_result, info);

    register_lazy(f, CSN_CAP_LAZY);
    ok(csn_open(&CFG(.backend = "counted"), &sb, E));
    assert_int_equal(opened, 0); /* nothing before the first call */
    ok(csn_info(sb, &info, E));
    assert_string_equal(info->state, "new");
    assert_int_equal(opened, 0);
    assert_int_equal(race_first_calls(sb), THREADS);
    assert_int_equal(opened, 1);
    csn_close(sb);
    sb = NULL;
    assert_int_equal(closed, 1);
}

static void lazy_opening_that_fails_is_tried_again(csn_fx *f)
{
    AUTO(csn_sandbox, sb);
    AUTO(csn_exec_result, r);
    csn_exec_result *none = NULL;

    register_lazy(f, CSN_CAP_LAZY);
    fail_opens = 1;
    ok(csn_open(&CFG(.backend = "counted"), &sb, E));
    fails(CSN_UNAVAILABLE, csn_sh(sb, "echo hi", NULL, &none, E));
    says("no machine yet");
    ok(csn_sh(sb, "echo hi", NULL, &r, E));
    assert_int_equal(opened, 2);
    assert_string_equal(r->out.data, "hi\n");
}

static void lazy_sandbox_nobody_used_is_never_opened(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    register_lazy(f, CSN_CAP_LAZY);
    ok(csn_open(&CFG(.backend = "counted"), &sb, E));
    ok(csn_destroy(sb, E));
    csn_close(sb);
    assert_int_equal(opened, 0);
    assert_int_equal(closed, 0);
}

static void eager_backend_is_opened_by_open(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    register_lazy(f, 0);
    fail_opens = 1;
    fails(CSN_UNAVAILABLE, csn_open(&CFG(.backend = "counted"), &sb, E));
    assert_null(sb);
    ok(csn_open(&CFG(.backend = "counted"), &sb, E));
    assert_int_equal(opened, 2);
    csn_close(sb);
    assert_int_equal(closed, 1);
}

static csn_status no_watch(void *state, const char *path, uint32_t flags, void **ret_watch,
                           csn_error **err)
{
    (void)state;
    (void)path;
    (void)flags;
    (void)ret_watch;
    return csn_error_set(err, CSN_UNSUPPORTED, "no watch");
}

/* S0: bring your own: only `exec` is required */
static void backend_tables_are_checked(csn_fx *f)
{
    static csn_backend_ops ops = {.size = sizeof(csn_backend_ops), .name = "mine"};

    (void)f;
    fails(CSN_INVALID, csn_register_backend(NULL, NULL, E));
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E)); /* no exec */
    register_lazy(f, 0);
    ops.exec = bash_ops->exec;
    ops.name = NULL;
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E));
    ops.name = "local";
    fails(CSN_EXISTS, csn_register_backend(&ops, NULL, E));
    ops.name = "counted";
    fails(CSN_EXISTS, csn_register_backend(&ops, NULL, E));
    ops.name = "mine";
    const csn_file_ops half_watch = {.size = sizeof(half_watch), .watch = no_watch};
    ops.files = &half_watch;
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E));
    says("files.watch");
    const csn_process_ops no_start = {.size = sizeof(no_start)};
    ops.files = NULL;
    ops.processes = &no_start;
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E));
    says("processes");
    const csn_network_ops no_rules = {.size = sizeof(no_rules)};
    ops.processes = NULL;
    ops.network = &no_rules;
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E));
    says("network");
    const csn_snapshot_ops no_take = {.size = sizeof(no_take)};
    ops.network = NULL;
    ops.snapshots = &no_take;
    fails(CSN_INVALID, csn_register_backend(&ops, NULL, E));
    says("snapshots");
    ops.snapshots = NULL;
    ok(csn_register_backend(&ops, NULL, E));
}

/* ---- the end under load ---- */

static void *hammer(void *ctx)
{
    mixer *m = ctx;

    for (;;) {
        csn_error *err = NULL;
        csn_exec_result *r = NULL;
        csn_status st = m->id % 2 ? csn_write(m->sb, "f", "x", 1, NULL, NULL, &err)
                                  : csn_sh(m->sb, "sleep 0.05", NULL, &r, &err);
        bool stopped = st == CSN_OK && r && r->interrupted;

        csn_exec_result_free(r);
        if (st == CSN_GONE) {
            csn_error_free(err);
            return NULL;
        }
        if (st != CSN_OK && st != CSN_CANCELLED)
            trouble(m, "call during destroy", st, err);
        else
            csn_error_free(err);
        if (m->trouble[0])
            return NULL;
        (void)stopped;
    }
}

static void destroy_under_load_ends_every_thread(csn_fx *f)
{
    pthread_t t[16];
    mixer m[16];

    for (int i = 0; i < 16; i++) {
        m[i] = (mixer){.sb = f->sb, .id = i};
        pthread_create(&t[i], NULL, hammer, &m[i]);
    }
    csn_test_nap(300);
    ok(csn_destroy(f->sb, E));
    for (int i = 0; i < 16; i++) {
        pthread_join(t[i], NULL);
        if (m[i].trouble[0])
            print_message("%s\n", m[i].trouble);
        assert_string_equal(m[i].trouble, "");
    }
}

static void *destroy_it(void *ctx)
{
    first *c = ctx;

    pthread_barrier_wait(c->gate);
    c->st = csn_destroy(c->sb, NULL);
    return NULL;
}

static void destroy_from_many_threads(csn_fx *f)
{
    pthread_barrier_t gate;
    pthread_t t[16];
    first c[16];

    csn_fx_run(f, "true");
    pthread_barrier_init(&gate, NULL, 16);
    for (int i = 0; i < 16; i++) {
        c[i] = (first){.sb = f->sb, .gate = &gate};
        pthread_create(&t[i], NULL, destroy_it, &c[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(c[i].st, CSN_OK);
    }
    pthread_barrier_destroy(&gate);
}

static void *open_and_close(void *ctx)
{
    mixer *m = ctx;

    for (int i = 0; i < m->rounds; i++) {
        csn_sandbox *sb = NULL;
        csn_exec_result *r = NULL;
        csn_error *err = NULL;
        csn_fx *f = (csn_fx *)m->sb;
        csn_status st = csn_fx_try_open(f, CFG(0), &sb, &err);

        if (st == CSN_OK)
            st = csn_sh(sb, "echo x", EXEC(.timeout_ms = 150000), &r, &err);
        if (st != CSN_OK || r->exit_code != 0)
            trouble(m, "open and exec", st, err);
        csn_exec_result_free(r);
        csn_close(sb);
    }
    return NULL;
}

/* For a root caller file calls change the identity of their thread, which must not get in the
 * way of sandboxes that others open meanwhile. */
static void *open_and_touch(void *ctx)
{
    mixer *m = ctx;
    csn_fx *f = (csn_fx *)m->sb;
    /* a backend that has nothing but exec runs commands for each */
    int touches = f->be->traits & CONF_LAYERS && f->be->traits & CONF_HERE ? 20 : 1;

    for (int i = 0; i < m->rounds && !m->trouble[0]; i++) {
        mixer own = {.id = m->id};
        csn_error *err = NULL;
        csn_status st = csn_fx_try_open(f, CFG(0), &own.sb, &err);
        if (st != CSN_OK) {
            trouble(m, "open", st, err);
            break;
        }
        for (int k = 0; k < touches && !own.trouble[0]; k++)
            mix_files(&own, k);
        csn_close(own.sb);
        memcpy(m->trouble, own.trouble, sizeof(m->trouble));
    }
    return NULL;
}

static void run_openers(csn_fx *f, void *(*fn)(void *))
{
    pthread_t t[16];
    mixer m[16];

    int rounds = f->be->traits & CONF_HERE ? 5 : 2; /* elsewhere each is dear */

    for (int i = 0; i < 16; i++) {
        m[i] = (mixer){.sb = (csn_sandbox *)f, .id = i, .rounds = rounds};
        pthread_create(&t[i], NULL, fn, &m[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(t[i], NULL);
        if (m[i].trouble[0])
            print_message("%s\n", m[i].trouble);
        assert_string_equal(m[i].trouble, "");
    }
}

static void many_sandboxes_at_once(csn_fx *f)
{
    run_openers(f, open_and_close);
}

static void sandboxes_open_while_others_touch_files(csn_fx *f)
{
    run_openers(f, open_and_touch);
}

const csn_conf_test csn_conf_threads[] = {
    T(sixty_four_threads_share_a_sandbox),
    T(first_calls_may_race),
    T_CLOSED(lazy_backend_is_opened_once),
    T_CLOSED(lazy_opening_that_fails_is_tried_again),
    T_CLOSED(lazy_sandbox_nobody_used_is_never_opened),
    T_CLOSED(eager_backend_is_opened_by_open),
    T_CLOSED(backend_tables_are_checked),
    T(destroy_under_load_ends_every_thread),
    T(destroy_from_many_threads),
    T_CLOSED(many_sandboxes_at_once),
    T_CLOSED(sandboxes_open_while_others_touch_files),
    T_END,
};
