/* snapshot.c: a sandbox as a whole: its files kept, gone back to, forked; paused and resumed.
 *
 * Snapshots are of detached sandboxes here: a provider may have to stop the machine for one. */
#include "conformance/conformance.h"

static void a_snapshot_is_an_image(csn_fx *f)
{
    AUTO(csn_snapshot_result, s);

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    csn_fx_run(f, "echo one >a");
    ok(csn_snapshot(f->sb, &s, E));
    csn_fx_run(f, "echo two >a; echo more >b"); /* the sandbox goes on */
    assert_string_equal(csn_fx_out(f, "cat a"), "two\n");
    ok(csn_destroy(f->sb, E)); /* and its snapshot outlives it */
    csn_fx_open(f, CFG(.image = s->snapshot));
    assert_string_equal(csn_fx_out(f, "cat a"), "one\n");
}

static void a_snapshot_that_is_none_is_not_found(csn_fx *f)
{
    csn_exec_result *r = NULL;

    csn_fx_open(f, CFG(.image = "snapshot:no-such"));
    fails(CSN_NOT_FOUND, csn_sh(f->sb, "true", NULL, &r, E));
}

static void rollback_undoes_what_came_since(csn_fx *f)
{
    AUTO(csn_snapshot_result, before);
    AUTO(csn_snapshot_result, after);

    csn_fx_run(f, "echo one >a");
    ok(csn_snapshot(f->sb, &before, E));
    csn_fx_run(f, "echo two >a; echo new >b");
    ok(csn_snapshot(f->sb, &after, E));
    ok(csn_rollback(f->sb, before->snapshot, E));
    assert_string_equal(csn_fx_out(f, "cat a; ls"), "one\na\n");
    ok(csn_rollback(f->sb, after->snapshot, E)); /* and forward again */
    assert_string_equal(csn_fx_out(f, "cat a; ls"), "two\na\nb\n");
}

static void rollback_is_seen_by_every_handle(csn_fx *f)
{
    AUTO(csn_snapshot_result, s);
    csn_sandbox *mine = NULL, *other = NULL;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    csn_fx_run(f, "echo one >a");
    ok(csn_connect(csn_id(f->sb), &other, E));
    ok(csn_snapshot(f->sb, &s, E));
    csn_fx_run(f, "echo two >a");
    ok(csn_rollback(other, s->snapshot, E));
    assert_string_equal(csn_fx_out(f, "cat a"), "one\n");
    mine = f->sb;
    f->sb = other;
    assert_string_equal(csn_fx_out(f, "cat a"), "one\n");
    ok(csn_destroy(other, E));
    csn_close(mine);
}

static void rollback_refuses_what_is_no_snapshot(csn_fx *f)
{
    csn_fx_run(f, "echo one >a");
    fails(CSN_INVALID, csn_rollback(f->sb, NULL, E));
    fails(CSN_INVALID, csn_rollback(f->sb, "", E));
    fails(CSN_INVALID, csn_rollback(f->sb, "busybox", E));
    fails(CSN_NOT_FOUND, csn_rollback(f->sb, "snapshot:no-such", E));
    fails(CSN_NOT_FOUND, csn_rollback(f->sb, "snapshot:\xff\"{}\n", E));
    assert_string_equal(csn_fx_out(f, "cat a"), "one\n");
}

static void a_fork_goes_its_own_way(csn_fx *f)
{
    csn_sandbox *mine = NULL, *other = NULL;

    csn_fx_run(f, "mkdir sub; echo one >sub/a");
    ok(csn_set_workdir(f->sb, "sub", E));
    ok(csn_fork(f->sb, NULL, &other, E));
    assert_string_not_equal(csn_id(other), csn_id(f->sb));
    csn_fx_run(f, "echo mine >a");
    mine = f->sb;
    f->sb = other;
    assert_string_equal(csn_fx_out(f, "cat a; echo other >a"), "one\n");
    f->sb = mine;
    assert_string_equal(csn_fx_out(f, "cat a"), "mine\n");
    csn_close(other);
}

static void nothing_runs_while_it_is_paused(csn_fx *f)
{
    csn_exec_result *r = NULL;

    csn_fx_run(f, "echo one >a");
    ok(csn_pause(f->sb, E));
    ok(csn_pause(f->sb, E));
    fails(CSN_UNAVAILABLE, csn_sh(f->sb, "touch ran", NULL, &r, E));
    says("paused");
    ok(csn_resume(f->sb, E));
    ok(csn_resume(f->sb, E));
    assert_string_equal(csn_fx_out(f, "cat a; ls"), "one\na\n");
}

static void connecting_resumes(csn_fx *f)
{
    csn_sandbox *other = NULL;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    csn_fx_run(f, "echo one >a");
    ok(csn_pause(f->sb, E));
    ok(csn_connect(csn_id(f->sb), &other, E));
    csn_close(other);
    assert_string_equal(csn_fx_out(f, "cat a"), "one\n");
    ok(csn_destroy(f->sb, E));
}

static void a_paused_sandbox_can_be_destroyed(csn_fx *f)
{
    csn_fx_run(f, "true");
    ok(csn_pause(f->sb, E));
    ok(csn_destroy(f->sb, E));
    fails(CSN_GONE, csn_resume(f->sb, E));
    fails(CSN_GONE, csn_pause(f->sb, E));
}

const csn_conf_test csn_conf_snapshot[] = {
    T_NEED(a_snapshot_is_an_image, CAP_SNAP),
    T_NEED(a_snapshot_that_is_none_is_not_found, CAP_SNAP),
    T_NEED(rollback_undoes_what_came_since, CAP_BACK),
    T_NEED(rollback_is_seen_by_every_handle, CAP_BACK),
    T_NEED(rollback_refuses_what_is_no_snapshot, CAP_BACK),
    T_NEED(a_fork_goes_its_own_way, CAP_FORK),
    T_NEED(nothing_runs_while_it_is_paused, CAP_PAUSE),
    T_NEED(connecting_resumes, CAP_PAUSE),
    T_NEED(a_paused_sandbox_can_be_destroyed, CAP_PAUSE),
    T_END,
};
