/* refuse.c: the other half of every capability: a backend that does not report the word refuses
 * its calls with CSN_UNSUPPORTED and names itself, and nothing happens. Called by main.c in
 * place of the test. */
#include "conformance/conformance.h"

#include <signal.h>

static void refuse_background(csn_fx *f)
{
    csn_process *p = NULL;
    csn_process_list *l = NULL;

    fails(CSN_UNSUPPORTED, csn_start(f->sb, ARGV("touch", "ran"), NULL, &p, E));
    fails(CSN_UNSUPPORTED, csn_start_sh(f->sb, "touch ran", NULL, &p, E));
    fails(CSN_UNSUPPORTED,
          csn_start_sh(f->sb, "touch ran", EXEC(.flags = CSN_EXEC_PTY, .rows = 1, .cols = 1),
                       &p, E));
    fails(CSN_UNSUPPORTED, csn_process_open(f->sb, 1, &p, E));
    fails(CSN_UNSUPPORTED, csn_processes(f->sb, &l, E));
    fails(CSN_UNSUPPORTED, csn_wait_log(f->sb, "x", 10, E));
    assert_null(p);
    assert_null(l);
}

static void refuse_session(csn_fx *f)
{
    csn_exec_result *r = NULL;

    fails(CSN_UNSUPPORTED, csn_sh(f->sb, "touch ran", EXEC(.session = "a"), &r, E));
    fails(CSN_UNSUPPORTED,
          csn_sh(f->sb, "touch ran", EXEC(.session = "a", .flags = CSN_EXEC_RESTART), &r, E));
    assert_null(r);
}

static void refuse_watch(csn_fx *f)
{
    csn_watch *w = NULL;

    fails(CSN_UNSUPPORTED, csn_watch_open(f->sb, ".", 0, &w, E));
    fails(CSN_UNSUPPORTED, csn_watch_open(f->sb, ".", CSN_FILE_RECURSIVE, &w, E));
    assert_null(w);
}

static void refuse_detach(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED), &sb, E));
    fails(CSN_NOT_FOUND, csn_connect(csn_id(f->sb), &sb, E));
    assert_null(sb);
}

static void refuse_extend(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_UNSUPPORTED, csn_extend(f->sb, 1000, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.lifetime_ms = 1000), &sb, E));
    assert_null(sb);
}

/* Also on a backend whose sandboxes have no lifetime at all. */
static void refuse_shorten(csn_fx *f)
{
    csn_fx_run(f, "true");
    fails(CSN_UNSUPPORTED, csn_extend(f->sb, 1000, E));
    csn_fx_run(f, "true");
}

static void refuse_wait_port(csn_fx *f)
{
    fails(CSN_UNSUPPORTED, csn_wait_port(f->sb, 80, 10, E));
}

static void refuse_path_rules(csn_fx *f)
{
    csn_sandbox *sb = NULL;
    csn_rule rule = {.ops = CSN_OP_READ, .path = "/x"};

    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.read = ARGV(f->outside)), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.write = ARGV(f->outside)), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.deny = ARGV("secret")), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.rules = &rule, .rule_count = 1), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.flags = CSN_OPEN_NOFOLLOW), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.home = f->outside), &sb, E));
    fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.file_max = 1u << 20), &sb, E));
    if (!csn_fx_can(f->sb, CAP_LIMITS))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.memory_max = 1u << 30), &sb, E));
    assert_null(sb);
}

static void refuse_would_allow(csn_fx *f)
{
    csn_verdict *v = NULL;

    fails(CSN_UNSUPPORTED, csn_would_allow(f->sb, CSN_OP_READ, "file", &v, E));
    fails(CSN_UNSUPPORTED, csn_would_allow(f->sb, CSN_OP_WRITE, "file", &v, E));
    assert_null(v);
}

static void refuse_terminal(csn_fx *f)
{
    csn_process *p = NULL;

    fails(CSN_UNSUPPORTED,
          csn_start_sh(f->sb, "touch ran", EXEC(.flags = CSN_EXEC_PTY, .rows = 1, .cols = 1),
                       &p, E));
    assert_null(p);
}

/* Nothing is made up: the code is a code. */
static void refuse_signals(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "kill -KILL $$", NULL, &r, E));
    assert_int_equal(r->exit_code, 128 + SIGKILL);
    assert_null(r->signal);
    assert_int_equal(r->failed, 1);
}

/* Nothing is made up. */
static void refuse_usage(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done", NULL, &r, E));
    assert_true(r->cpu_ms == 0 && r->peak_memory == 0);
}

static int count_bytes(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    (void)data;
    *(size_t *)ctx += len;
    return 0;
}

/* Whoever listens gets everything, if only at the end. */
static void refuse_live(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    size_t bytes = 0;

    ok(csn_sh(f->sb, "echo one; echo two >&2",
              EXEC(.on_output = count_bytes, .on_output_ctx = &bytes), &r, E));
    assert_int_equal(bytes, 8);
}

static void refuse_snapshot(csn_fx *f)
{
    csn_snapshot_result *r = NULL;

    fails(CSN_UNSUPPORTED, csn_snapshot(f->sb, &r, E));
    assert_null(r);
}

static void refuse_rollback(csn_fx *f)
{
    fails(CSN_UNSUPPORTED, csn_rollback(f->sb, "snapshot:x", E));
}

static void refuse_fork(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_UNSUPPORTED, csn_fork(f->sb, NULL, &sb, E));
    assert_null(sb);
}

static void refuse_pause(csn_fx *f)
{
    fails(CSN_UNSUPPORTED, csn_pause(f->sb, E));
    fails(CSN_UNSUPPORTED, csn_resume(f->sb, E));
}

void csn_conf_refuse(csn_fx *f, const char *capability)
{
    static const struct {
        const char *word;
        void (*fn)(csn_fx *f);
    } table[] = {
        {CAP_PROCESS, refuse_background}, {CAP_SESSION, refuse_session},
        {CAP_WATCH, refuse_watch},        {CAP_DETACH, refuse_detach},
        {CAP_EXTEND, refuse_extend},      {CAP_SHORTEN, refuse_shorten},
        {CAP_PORT, refuse_wait_port},     {CAP_POLICY, refuse_path_rules},
        {CAP_JUDGE, refuse_would_allow},  {CAP_TERM, refuse_terminal},
        {CAP_USAGE, refuse_usage},        {CAP_SIGNALS, refuse_signals},
        {CAP_LIVE, refuse_live},          {CAP_SNAP, refuse_snapshot},
        {CAP_BACK, refuse_rollback},      {CAP_FORK, refuse_fork},
        {CAP_PAUSE, refuse_pause},
    };
    size_t i = 0, n = sizeof(table) / sizeof(table[0]);

    while (i < n && strcmp(table[i].word, capability) != 0)
        i++;
    if (i == n)
        print_message("no refusal is written for '%s'\n", capability);
    assert_true(i < n);
    table[i].fn(f);
    assert_false(csn_fx_exists(f, "ran")); /* refused means not done */
    csn_fx_run(f, "true");                 /* and nothing is broken */
}
