/* lifecycle.c: how a sandbox ends and what is left of it (nothing), what it says of itself, how
 * it is emptied, moved and kept alive. */
#include "conformance/conformance.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"

static void info_tells_who_and_what_it_is(csn_fx *f)
{
    AUTO(csn_info_result, info);

    csn_fx_run(f, "true");
    ok(csn_info(f->sb, &info, E));
    assert_int_equal(info->size, sizeof(*info));
    assert_string_equal(info->id, csn_id(f->sb));
    assert_string_equal(info->backend, f->be->name);
    assert_string_equal(info->isolation, f->be->isolation);
    assert_string_equal(info->state, "running");
    assert_null(info->name);
    assert_int_equal(info->detached, 0);
    assert_non_null(info->workdir);
    assert_non_null(info->home);
    assert_non_null(info->capabilities);
    assert_in_range(csn_test_now_ms() - info->created_ms + 1000, 0, 3601000);
    if (csn_fx_can(f->sb, "lifetime"))
        assert_true(info->expires_ms > csn_test_now_ms());
    else
        assert_int_equal(info->expires_ms, 0);
    if (f->be->traits & CONF_HOSTDIR)
        assert_string_equal(info->workspace, f->ws);
}

static void info_says_what_is_isolated(csn_fx *f)
{
    AUTO(csn_info_result, info);

    csn_fx_run(f, "true"); /* one that is not there yet has no layers */
    ok(csn_info(f->sb, &info, E));
    for (size_t i = 0; i < info->layer_count; i++) {
        const csn_layer *l = &info->layers[i];

        assert_true(l->name && *l->name && l->detail && *l->detail);
        assert_true(strcmp(l->status, "on") == 0 || strcmp(l->status, "off") == 0 ||
                    strcmp(l->status, "weaker") == 0);
        /* a backend that isolates nothing says so where agents look */
        if (strcmp(info->isolation, "none") == 0 && strcmp(l->name, "exec") == 0)
            assert_string_equal(l->status, "off");
    }
    assert_true(info->layer_count >= 2);
}

static void capabilities_are_words(csn_fx *f)
{
    AUTO(csn_info_result, info);
    size_t n = 0;

    ok(csn_info(f->sb, &info, E));
    for (; info->capabilities[n]; n++) {
        assert_true(strspn(info->capabilities[n], "abcdefghijklmnopqrstuvwxyz_") ==
                    strlen(info->capabilities[n]));
        for (size_t i = 0; i < n; i++)
            assert_string_not_equal(info->capabilities[i], info->capabilities[n]);
    }
    assert_true(n > 0);
    assert_true(csn_fx_can(f->sb, "exec"));
    assert_true(csn_fx_can(f->sb, "files"));
}

/* Every public call on a destroyed sandbox. */
static void every_call_after_destroy_is_gone(csn_fx *f)
{
    csn_sandbox *sb = f->sb;
    csn_exec_result *r = NULL;
    csn_process *p = NULL;
    csn_process_list *pl = NULL;
    csn_file_list *l = NULL;
    csn_watch *w = NULL;
    csn_edit_item edit = {.old_string = "a", .new_string = "b"};
    csn_file_content many = {.path = "m", .data = "x", .len = 1};

    csn_fx_put(f, "a", "a");
    ok(csn_destroy(sb, E));
    fails(CSN_GONE, csn_exec(sb, ARGV("true"), NULL, &r, E));
    fails(CSN_GONE, csn_sh(sb, "true", NULL, &r, E));
    fails(CSN_GONE, csn_start(sb, ARGV("true"), NULL, &p, E));
    fails(CSN_GONE, csn_process_open(sb, 1, &p, E));
    fails(CSN_GONE, csn_processes(sb, &pl, E));
    fails(CSN_GONE, csn_wait_port(sb, 1, 1, E));
    fails(CSN_GONE, csn_wait_log(sb, "x", 1, E));
    fails(CSN_GONE, csn_read(sb, "a", NULL, &(csn_read_result *){NULL}, E));
    fails(CSN_GONE, csn_write(sb, "b", "x", 1, NULL, NULL, E));
    fails(CSN_GONE, csn_write_many(sb, &many, 1, 0, E));
    fails(CSN_GONE, csn_edit(sb, "a", &edit, 1, 0, NULL, E));
    fails(CSN_GONE, csn_delete(sb, "a", 0, E));
    fails(CSN_GONE, csn_mkdir(sb, "d", 0, E));
    fails(CSN_GONE, csn_rename(sb, "a", "b", 0, E));
    fails(CSN_GONE, csn_stat(sb, "a", 0, &l, E));
    fails(CSN_GONE, csn_list(sb, ".", 0, &l, E));
    fails(CSN_GONE, csn_glob(sb, "*", NULL, 0, &l, E));
    fails(CSN_GONE, csn_grep(sb, "a", NULL, &(csn_grep_result *){NULL}, E));
    fails(CSN_GONE, csn_watch_open(sb, ".", 0, &w, E));
    fails(CSN_GONE, csn_export(sb, ".", f->outside, NULL, E));
    fails(CSN_GONE, csn_import(sb, f->outside, ".", NULL, E));
    fails(CSN_GONE, csn_set_workdir(sb, ".", E));
    fails(CSN_GONE, csn_cleanup(sb, E));
    fails(CSN_GONE, csn_extend(sb, 1000, E));
    says("ended");
    /* the workspace is the caller's: destroy does not touch it, and nothing came after */
    assert_true(csn_test_exists(csn_fx_host(f, "a")));
    assert_int_equal(csn_fx_strays(f, NULL), 1);
    csn_fx_canary(f);
}

static void info_after_destroy_says_gone(csn_fx *f)
{
    AUTO(csn_info_result, info);

    ok(csn_destroy(f->sb, E));
    csn_conf_reset();
    /* either is an honest answer; a running one is not */
    if (csn_info(f->sb, &info, E) == CSN_OK)
        assert_string_equal(info->state, "gone");
    else
        assert_int_equal(csn_error_code(csn_conf_err), CSN_GONE);
}

static void destroy_twice_is_fine(csn_fx *f)
{
    csn_fx_run(f, "true");
    ok(csn_destroy(f->sb, E));
    ok(csn_destroy(f->sb, E));
    assert_non_null(csn_id(f->sb));
}

static void null_handles_are_refused_not_fatal(csn_fx *f)
{
    csn_exec_result *r = NULL;

    (void)f;
    csn_close(NULL);
    fails(CSN_INVALID, csn_destroy(NULL, E));
    fails(CSN_INVALID, csn_sh(NULL, "true", NULL, &r, E));
    fails(CSN_INVALID, csn_cleanup(NULL, E));
    csn_exec_result_free(NULL);
    csn_read_result_free(NULL);
    csn_write_result_free(NULL);
    csn_edit_result_free(NULL);
    csn_file_list_free(NULL);
    csn_grep_result_free(NULL);
    csn_process_list_free(NULL);
    csn_process_free(NULL);
    csn_log_chunk_free(NULL);
    csn_watch_free(NULL);
    csn_verdict_free(NULL);
    csn_cancel_free(NULL);
    csn_config_free(NULL);
    csn_audit_report_free(NULL);
    csn_sandbox_list_free(NULL);
    csn_info_free(NULL);
    csn_error_free(NULL);
}

/* C9: when the sandbox is closed no process of it is left. */
static void close_ends_background_children(csn_fx *f)
{
    csn_fx_run(f, "sleep 1000 & echo $! > p1; setsid sh -c 'echo $$ > p2; exec sleep 1000' & "
                  "while ! test -s p2; do sleep 0.02; done");
    pid_t a = csn_fx_pid(f, "p1"), b = csn_fx_pid(f, "p2");
    assert_true(csn_test_alive(a)); /* a persistent sandbox: they live on after the command */
    assert_true(csn_test_alive(b));
    csn_fx_close(f);
    assert_true(csn_test_wait_dead(a));
    assert_true(csn_test_wait_dead(b));
}

static void destroy_ends_background_children(csn_fx *f)
{
    csn_fx_run(f,
               "(trap '' TERM HUP; echo ready > p0; while :; do sleep 1; done) & echo $! > p1; "
               "while ! test -s p0; do sleep 0.02; done");
    pid_t a = csn_fx_pid(f, "p1");
    ok(csn_destroy(f->sb, E));
    assert_true(csn_test_wait_dead(a));
}

static int open_run_and_die(void *ctx)
{
    csn_fx *f = ctx;
    csn_sandbox *sb = NULL;
    csn_exec_result *r = NULL;

    if (csn_fx_try_open(f, CFG(0), &sb, NULL) ||
        csn_sh(sb, "setsid sleep 1000 & echo $! > pid", NULL, &r, NULL))
        return 1;
    kill(getpid(), SIGKILL);
    return 1;
}

/* C9: ... or the owner dies in any way. */
static void nothing_survives_an_owner_that_is_killed(csn_fx *f)
{
    csn_child_end end = csn_child_run(open_run_and_die, f, -1, 60000);

    assert_int_equal(end.signal, SIGKILL);
    csn_fx_open(f, CFG(0));
    assert_true(csn_test_wait_dead(csn_fx_pid(f, "pid")));
}

typedef struct runner {
    csn_sandbox *sb;
    csn_status st;
    uint32_t interrupted;
    csn_error *err;
} runner;

static void *run_sleep(void *ctx)
{
    runner *w = ctx;
    csn_exec_result *r = NULL;

    w->st = csn_sh(w->sb, "echo $$ > pid; exec sleep 1000", EXEC(.timeout_ms = CSN_NO_LIMIT),
                   &r, &w->err);
    if (w->st == CSN_OK)
        w->interrupted = r->interrupted;
    csn_exec_result_free(r);
    return NULL;
}

static void end_of_running_call(const runner *w)
{
    /* told as an error, or as a result that says it was stopped: never as a success */
    if (w->st == CSN_OK)
        assert_int_equal(w->interrupted, 1);
    else
        assert_true(w->st == CSN_GONE || w->st == CSN_CANCELLED);
    csn_error_free(w->err);
}

static void destroy_ends_running_calls(csn_fx *f)
{
    runner w = {.sb = f->sb};
    pthread_t t;

    pthread_create(&t, NULL, run_sleep, &w);
    pid_t pid = csn_fx_pid(f, "pid");
    ok(csn_destroy(f->sb, E));
    pthread_join(t, NULL);
    end_of_running_call(&w);
    assert_true(csn_test_wait_dead(pid));
}

static void close_ends_running_calls(csn_fx *f)
{
    runner w = {.sb = f->sb};
    pthread_t t;

    pthread_create(&t, NULL, run_sleep, &w);
    pid_t pid = csn_fx_pid(f, "pid");
    csn_fx_close(f);
    pthread_join(t, NULL);
    end_of_running_call(&w);
    assert_true(csn_test_wait_dead(pid));
}

/* S3: "should remove all files from sandbox", "should recreate empty sandbox directory" */
static void cleanup_empties_the_workspace_and_keeps_it(csn_fx *f)
{
    struct stat before, after;

    csn_fx_run(f,
               "mkdir -p a/b/c .dot/x 'odd\nname' && echo 1 > a/b/c/f && echo 2 > .hidden && "
               "echo 3 > -dash && ln -s a/b link && mkfifo pipe && chmod 500 a/b");
    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    assert_int_equal(stat(f->ws, &before), 0);
    ok(csn_cleanup_with(f->sb, CSN_CLEANUP_FORCE, E));
    assert_int_equal(csn_fx_strays(f, NULL), 0);
    assert_int_equal(stat(f->ws, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    csn_fx_canary(f);
    csn_fx_put(f, "new", "works");
    csn_fx_run(f, "test -s new");
}

static void cleanup_of_an_empty_workspace_is_fine(csn_fx *f)
{
    ok(csn_cleanup_with(f->sb, CSN_CLEANUP_FORCE, E));
    ok(csn_cleanup_with(f->sb, CSN_CLEANUP_FORCE, E));
    fails(CSN_INVALID, csn_cleanup_with(f->sb, 1u << 30, E));
}

/* A directory of the user is emptied by force only; one that the sandbox made, without. */
static void cleanup_keeps_what_the_sandbox_did_not_make(csn_fx *f)
{
    csn_fx_put(f, "f", "mine");
    if (!(f->be->traits & CONF_HOSTDIR)) { /* the workspace is not the user's */
        ok(csn_cleanup(f->sb, E));
        assert_false(csn_fx_exists(f, "f"));
        return;
    }
    fails(CSN_DENIED, csn_cleanup(f->sb, E));
    hints("--force");
    csn_fx_holds(f, "f", "mine");
    ok(csn_cleanup_with(f->sb, CSN_CLEANUP_FORCE, E));
    assert_false(csn_fx_exists(f, "f"));
}

/* S2: a lazy singleton with reset */
static void reset_lets_the_next_call_open_a_new_sandbox(csn_fx *f)
{
    char *id = csn_fx_keep(f, strdup(csn_id(f->sb)));

    if (!csn_fx_can(f->sb, "lazy")) {
        fails(CSN_UNSUPPORTED, csn_reset(f->sb, E));
        csn_fx_run(f, "true");
        return;
    }
    ok(csn_reset(f->sb, E)); /* nothing was opened yet, or it is ended */
    csn_fx_run(f, "echo first > /tmp/mark && test -e /tmp/mark");
    ok(csn_reset(f->sb, E));
    ok(csn_reset(f->sb, E));
    if (f->be->traits & CONF_LIVES) /* the double of dagger has one /tmp for all containers */
        csn_fx_run(f, "test ! -e /tmp/mark");
    csn_fx_run(f, "true");
    assert_string_equal(csn_id(f->sb), id);
    ok(csn_destroy(f->sb, E));
    ok(csn_reset(f->sb, E));
    csn_fx_put(f, "g", "of the last");
    csn_fx_holds(f, "g", "of the last");
}

static void missing_workspace_is_made_when_asked(csn_fx *f)
{
    char *deep = csn_fx_host(f, "new/deep/ws"), *file = csn_fx_host(f, "file");
    csn_sandbox *sb = NULL;
    struct stat st;

    csn_fx_put(f, "file", "x");
    csn_fx_close(f);
    fails(CSN_NOT_FOUND, csn_fx_try_open(f, CFG(.workspace = deep), &sb, E));
    hints("--create-workspace");
    csn_fx_open(f, CFG(.workspace = deep, .flags = CSN_OPEN_CREATE));
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    csn_fx_run(f, "echo made > here");
    csn_fx_holds(f, "here", "made\n");
    ok(csn_cleanup(f->sb, E));
    assert_false(csn_fx_exists(f, "here"));
    csn_fx_put(f, "kept", "x");
    csn_fx_open(f, CFG(.workspace = deep, .flags = CSN_OPEN_CREATE)); /* it exists by now */
    fails(CSN_DENIED, csn_cleanup(f->sb, E));
    csn_fx_holds(f, "kept", "x");
    csn_fx_close(f);
    csn_conf_reset();
    assert_int_not_equal(
        csn_fx_try_open(f, CFG(.workspace = file, .flags = CSN_OPEN_CREATE), &sb, E), CSN_OK);
    char *left = csn_fx_host(f, "left");
    fails(
        CSN_NOT_FOUND,
        csn_fx_try_open(
            f, CFG(.workspace = left, .flags = CSN_OPEN_CREATE, .workdir = "missing"), &sb, E));
    assert_false(csn_test_exists(left)); /* a failed open leaves nothing */
}

/* S1: TestLocalSandbox_SetWorkdir */
static void set_workdir_moves_files_and_commands(csn_fx *f)
{
    AUTO(csn_info_result, info);
    AUTO(csn_file_list, l);

    csn_fx_run(f, "mkdir -p sub/deep");
    ok(csn_set_workdir(f->sb, "sub", E));
    csn_fx_put(f, "one", "1");
    csn_fx_run(f, "cat one > two");
    ok(csn_set_workdir(f->sb, "deep", E)); /* relative to the one before */
    csn_fx_put(f, "three", "3");
    assert_true(csn_test_exists(csn_fx_host(f, "sub/two")));
    assert_true(csn_test_exists(csn_fx_host(f, "sub/deep/three")));
    ok(csn_set_workdir(f->sb, "..", E));
    ok(csn_list(f->sb, ".", 0, &l, E));
    assert_int_equal(l->count, 3);
    ok(csn_info(f->sb, &info, E));
    has(info->workdir, "sub");
}

static void set_workdir_refuses_what_is_no_directory(csn_fx *f)
{
    csn_fx_put(f, "file", "x");
    fails(CSN_NOT_FOUND, csn_set_workdir(f->sb, "missing", E));
    fails(CSN_WRONG_TYPE, csn_set_workdir(f->sb, "file", E));
    fails(CSN_INVALID, csn_set_workdir(f->sb, "", E));
    fails(CSN_INVALID, csn_set_workdir(f->sb, NULL, E));
    csn_fx_holds(f, "file", "x"); /* unchanged */
}

static void set_workdir_refuses_to_leave(csn_fx *f)
{
    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    fails(CSN_OUTSIDE, csn_set_workdir(f->sb, "..", E));
    fails(CSN_OUTSIDE, csn_set_workdir(f->sb, "out", E));
    says("path outside base directory");
    csn_fx_put(f, "file", "x");
    assert_true(csn_test_exists(csn_fx_host(f, "file")));
}

/* ---- lifetime ---- */

static void sandbox_without_lifetime_never_expires(csn_fx *f)
{
    AUTO(csn_info_result, info);

    ok(csn_info(f->sb, &info, E));
    assert_int_equal(info->expires_ms, 0);
    ok(csn_extend(f->sb, 600000, E));
    csn_info_free(info);
    info = NULL;
    ok(csn_info(f->sb, &info, E));
    assert_in_range(info->expires_ms - csn_test_now_ms(), 1, 600000);
    fails(CSN_INVALID, csn_extend(f->sb, 0, E));
}

/* A sandbox with the shortest of ever longer lives in which the command could be run. */
static uint64_t open_for_a_while(csn_fx *f, uint64_t lifetime_ms, const char *command)
{
    for (;; lifetime_ms *= 2) {
        AUTO(csn_exec_result, r);

        csn_fx_open(f, CFG(.lifetime_ms = lifetime_ms));
        if (csn_sh(f->sb, command, NULL, &r, NULL) == CSN_OK && !r->interrupted)
            return lifetime_ms;
        assert_true(lifetime_ms < 60000);
        csn_fx_close(f);
    }
}

static void lifetime_ends_everything(csn_fx *f)
{
    csn_exec_result *r = NULL;
    csn_status st = CSN_OK;

    (void)open_for_a_while(f, 3000, "setsid sleep 1000 & echo $! > pid");
    pid_t pid = csn_fx_pid(f, "pid");
    assert_true(csn_test_wait_dead(pid));
    for (int i = 0; i < 500 && st == CSN_OK; i++) {
        csn_conf_reset();
        st = csn_sh(f->sb, "true", NULL, &r, E);
        if (st == CSN_OK)
            csn_exec_result_free(r);
        csn_test_nap(20);
    }
    assert_int_equal(st, CSN_GONE);
}

static void extend_keeps_it_alive(csn_fx *f)
{
    uint64_t life = open_for_a_while(f, 5000, "sleep 1000 & echo $! > pid");

    while (csn_extend(f->sb, 600000, NULL) != CSN_OK) { /* too late */
        assert_true(life < 60000);
        csn_fx_close(f);
        life = open_for_a_while(f, life * 2, "sleep 1000 & echo $! > pid");
    }
    pid_t pid = csn_fx_pid(f, "pid");
    csn_test_nap((unsigned)life + 1000);
    assert_true(csn_test_alive(pid));
    csn_fx_run(f, "true");
}

static void extend_can_shorten(csn_fx *f)
{
    csn_fx_run(f, "sleep 1000 & echo $! > pid");
    pid_t pid = csn_fx_pid(f, "pid");
    ok(csn_extend(f->sb, 200, E));
    assert_true(csn_test_wait_dead(pid));
}

static int64_t expires_of(csn_sandbox *sb)
{
    AUTO(csn_info_result, info);

    ok(csn_info(sb, &info, E));
    return info->expires_ms;
}

/* Neither the lifetime that it was opened with nor a new one counts from the connecting. */
static void every_handle_knows_the_same_end(csn_fx *f)
{
    csn_sandbox *other = NULL;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED, .lifetime_ms = 300000));
    csn_fx_run(f, "true");
    int64_t first = expires_of(f->sb);
    csn_test_nap(2500);
    ok(csn_connect(csn_id(f->sb), &other, E));
    assert_true(expires_of(other) <= first + 1000); /* a whole second, rounded up */
    csn_close(other);
    other = NULL;
    ok(csn_extend(f->sb, 3000000, E));
    ok(csn_connect(csn_id(f->sb), &other, E));
    assert_true(expires_of(other) > first + 1000000);
    ok(csn_destroy(other, E));
    csn_close(other);
}

static void many_sandboxes_leave_no_descriptor(csn_fx *f)
{
    size_t before = 0;

    for (int i = 0; i < 25; i++) {
        csn_fx_open(f, CFG(0));
        csn_fx_run(f, "true");
        csn_fx_put(f, "x", "y");
        csn_fx_close(f);
        if (i == 4)
            before = csn_test_fd_count();
    }
    assert_int_equal(csn_test_fd_count(), before);
}

const csn_conf_test csn_conf_lifecycle[] = {
    T(info_tells_who_and_what_it_is),
    T_TRAIT(info_says_what_is_isolated, CONF_LAYERS),
    T(capabilities_are_words),
    T(every_call_after_destroy_is_gone),
    T(info_after_destroy_says_gone),
    T(destroy_twice_is_fine),
    T(null_handles_are_refused_not_fatal),
    T_TRAIT(close_ends_background_children, CONF_LIVES),
    T_TRAIT(destroy_ends_background_children, CONF_LIVES),
    T_FULL(nothing_survives_an_owner_that_is_killed, NULL, CONF_LIVES | CONF_OWNED,
           CONF_CLOSED),
    T(destroy_ends_running_calls),
    T(close_ends_running_calls),
    T(cleanup_empties_the_workspace_and_keeps_it),
    T(cleanup_of_an_empty_workspace_is_fine),
    T(reset_lets_the_next_call_open_a_new_sandbox),
    T(cleanup_keeps_what_the_sandbox_did_not_make),
    T_TRAIT(missing_workspace_is_made_when_asked, CONF_HOSTDIR | CONF_HERE),
    T(set_workdir_moves_files_and_commands),
    T(set_workdir_refuses_what_is_no_directory),
    T_TRAIT(set_workdir_refuses_to_leave, CONF_BENEATH),
    T_NEED(sandbox_without_lifetime_never_expires, CAP_EXTEND),
    T_NEED(lifetime_ends_everything, CAP_EXTEND),
    T_NEED(extend_keeps_it_alive, CAP_EXTEND),
    T_NEED(extend_can_shorten, CAP_SHORTEN),
    T_NEED(every_handle_knows_the_same_end, CAP_EXTEND),
    T(many_sandboxes_leave_no_descriptor),
    T_END,
};
