/* open_ids.c: opening by name, by environment and by id; what an id looks like; the rules of
 * option structs and of configuration fields. */
#include "conformance/conformance.h"

#include <regex.h>
#include <unistd.h>

#include "child.h"

static bool matches(const char *text, const char *pattern)
{
    regex_t re;

    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool hit = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return hit;
}

/* S0: "id is unique", /^local-\d+-[a-z0-9]+$/ */
static void id_has_the_form_backend_time_random(csn_fx *f)
{
    char *pattern = csn_fx_keep(f, csn_test_format("^%s-[0-9]+-[a-z0-9]+$", f->be->name));

    assert_true(matches(csn_id(f->sb), pattern));
    int64_t ms = strtoll(csn_id(f->sb) + strlen(f->be->name) + 1, NULL, 10);
    assert_in_range(csn_test_now_ms() - ms + 1000, 0, 3601000);
}

static void id_is_unique(csn_fx *f)
{
    csn_sandbox *more[16];

    for (size_t i = 0; i < 16; i++)
        ok(csn_fx_try_open(f, CFG(0), &more[i], E));
    for (size_t i = 0; i < 16; i++) {
        assert_string_not_equal(csn_id(more[i]), csn_id(f->sb));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(csn_id(more[i]), csn_id(more[j]));
    }
    for (size_t i = 0; i < 16; i++)
        csn_close(more[i]);
}

/* S1: factory New(t): "unknown sandbox type: %s" */
static void open_refuses_unknown_type(csn_fx *f)
{
    csn_sandbox *sb = (csn_sandbox *)f;

    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.backend = "spaceship"), &sb, E));
    says("unknown sandbox type: spaceship");
    assert_ptr_equal(sb, f); /* on failure no result is touched */
    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.backend = "LOCAL"), &sb, E));
    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.backend = ""), &sb, E));
}

/* S3: "Interface switch" */
static void open_takes_the_backend_from_the_environment(csn_fx *f)
{
    AUTO(csn_sandbox, sb);
    AUTO(csn_info_result, info);
    csn_config c = CFG(.workspace = f->be->traits & CONF_HOSTDIR ? f->ws : NULL);

    setenv("CAISSON_BACKEND", f->be->name, 1);
    ok(csn_open(&c, &sb, E));
    ok(csn_info(sb, &info, E));
    assert_string_equal(info->backend, f->be->name);
}

static void open_prefers_the_config_over_the_environment(csn_fx *f)
{
    AUTO(csn_sandbox, sb);

    setenv("CAISSON_BACKEND", "spaceship", 1);
    setenv("VERCEL", "1", 1);
    ok(csn_fx_try_open(f, CFG(0), &sb, E));
}

static void open_without_config_works_in_the_current_directory(csn_fx *f)
{
    AUTO(csn_sandbox, sb);
    AUTO(csn_exec_result, r);

    setenv("CAISSON_BACKEND", f->be->name, 1);
    if (f->be->traits & CONF_HOSTDIR)
        assert_int_equal(chdir(f->ws), 0);
    ok(csn_open(NULL, &sb, E));
    ok(csn_sh(sb, "echo here > marker", NULL, &r, E));
    assert_int_equal(r->exit_code, 0);
    /* one that mounts what it is told to is not told to */
    assert_int_equal(csn_test_exists(csn_fx_host(f, "marker")), !csn_fx_can(sb, "mounts"));
}

/* S3: VERCEL === '1' means vercel; interface: else jail. Which of them this build has may
 * change; that nothing weaker is taken instead may not. */
static void open_without_a_name_never_takes_a_weaker_backend(csn_fx *f)
{
    csn_sandbox *sb = NULL;
    csn_config c = CFG(.workspace = f->ws);

    setenv("VERCEL", "1", 1);
    csn_conf_reset();
    if (csn_open(&c, &sb, E) == CSN_OK)
        assert_memory_equal(csn_id(sb), "vercel-", 7);
    else
        assert_true(strcasestr(csn_error_message(csn_conf_err), "vercel") != NULL);
    csn_close(sb);
    sb = NULL;
    setenv("VERCEL", "0", 1);
    csn_conf_reset();
    if (csn_open(&c, &sb, E) == CSN_OK)
        assert_memory_equal(csn_id(sb), "jail-", 5);
    else
        assert_true(strcasestr(csn_error_message(csn_conf_err), "jail") != NULL);
    csn_close(sb);
}

static void config_size_is_its_version(csn_fx *f)
{
    struct {
        csn_config c;
        uint64_t tail[4];
    } newer = {.c = {.backend = f->be->name}};
    AUTO(csn_sandbox, a);
    AUTO(csn_sandbox, b);
    csn_sandbox *sb = NULL;

    if (f->be->traits & CONF_HOSTDIR)
        newer.c.workspace = f->ws;
    newer.c.size = sizeof(newer);
    ok(csn_open(&newer.c, &a, E));
    newer.tail[3] = 1;
    fails(CSN_UNSUPPORTED, csn_open(&newer.c, &sb, E));
    newer.c.size = 0;
    fails(CSN_INVALID, csn_open(&newer.c, &sb, E));
    /* an older caller: the fields after its size do not count, whatever is there */
    newer.c.size = offsetof(csn_config, network);
    newer.c.network = "nonsense";
    ok(csn_open(&newer.c, &b, E));
}

static void open_refuses_unknown_flags(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.flags = 1u << 30), &sb, E));
    fails(CSN_INVALID, csn_open(&CFG(.backend = f->be->name), NULL, E));
}

static void open_names_the_missing_workspace(csn_fx *f)
{
    csn_sandbox *sb = NULL;
    char *missing = csn_fx_host(f, "nope"), *file = csn_fx_host(f, "file");

    fails(CSN_NOT_FOUND, csn_fx_try_open(f, CFG(.workspace = missing), &sb, E));
    says("nope");
    csn_test_put(file, "x", 1);
    fails(CSN_WRONG_TYPE, csn_fx_try_open(f, CFG(.workspace = file), &sb, E));
}

/* A lazy backend opens with the first call. */
static csn_status open_and_use(csn_fx *f, csn_config cfg, csn_error **err)
{
    AUTO(csn_sandbox, sb);
    AUTO(csn_exec_result, r);
    csn_status st = csn_fx_try_open(f, cfg, &sb, err);

    return st == CSN_OK ? csn_sh(sb, "true", NULL, &r, err) : st;
}

static void open_starts_in_the_workdir(csn_fx *f)
{
    csn_fx_run(f, "mkdir -p deep/er && echo x > plain");
    csn_fx_open(f, CFG(.workdir = "deep/er"));
    csn_fx_run(f, "echo in > marker");
    csn_fx_holds(f, "marker", "in\n");
    assert_true(csn_test_exists(csn_fx_host(f, "deep/er/marker")));
    fails(CSN_NOT_FOUND, open_and_use(f, CFG(.workdir = "missing"), E));
    fails(CSN_WRONG_TYPE, open_and_use(f, CFG(.workdir = "plain"), E));
}

static void network_rules_are_refused_where_there_is_no_network_policy(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    if (csn_fx_can(f->sb, "network_rules")) { /* what they do is tested in tests/net */
        ok(csn_fx_try_open(f, CFG(.net_allow = ARGV("a.test:443")), &sb, E));
        csn_close(sb);
        fails(CSN_INVALID, csn_fx_try_open(f, CFG(.net_allow = ARGV("a..test")), &sb, E));
        return;
    }
    if (!csn_fx_can(f->sb, "network")) {
        if (strcmp(f->be->isolation, "none") == 0) /* elsewhere there is none already */
            fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.network = "none"), &sb, E));
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.network = "all"), &sb, E));
    }
    if (!csn_fx_can(f->sb, "network_hosts"))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.net_deny = ARGV("a.test")), &sb, E));
    if (!csn_fx_can(f->sb, "network_ports"))
        fails(CSN_UNSUPPORTED,
              csn_fx_try_open(f, CFG(.net_allow = ARGV("a.test:443")), &sb, E));
    if (!csn_fx_can(f->sb, "packages"))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.packages = ARGV("npm")), &sb, E));
    if (!csn_fx_can(f->sb, "publish"))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.publish = ARGV("8080")), &sb, E));
    if (!csn_fx_can(f->sb, "host_ports"))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.host_ports = ARGV("8080")), &sb, E));
}

/* A sandbox opened without rules has none to replace, and on a backend without them there is
 * nothing to ask. */
static void network_rules_are_replaced_only_where_there_are_some(csn_fx *f)
{
    const csn_net_opts rules = {.size = sizeof(rules), .net_allow = ARGV("a.test:443")};
    const csn_net_opts odd = {.size = sizeof(odd), .flags = 1};
    csn_net_result *r = NULL;

    fails(CSN_UNSUPPORTED, csn_network_set(f->sb, &rules, E));
    fails(CSN_INVALID, csn_network_set(f->sb, &odd, E));
    fails(CSN_INVALID, csn_network(f->sb, 0, NULL, E));
    if (!csn_fx_can(f->sb, "network_rules")) {
        fails(CSN_UNSUPPORTED, csn_network(f->sb, 0, &r, E));
        return;
    }
    ok(csn_network(f->sb, 0, &r, E));
    assert_string_equal(r->mode, "none");
    assert_string_equal(r->network, "none");
    assert_int_equal(r->event_count, 0);
    assert_null(r->net_allow[0]);
    csn_network_free(r);
}

static void images_and_workspaces_are_refused_where_there_are_none(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    if (!csn_fx_can(f->sb, "image"))
        fails(CSN_UNSUPPORTED, csn_fx_try_open(f, CFG(.image = "debian:12"), &sb, E));
    if (strcmp(f->be->isolation, "kernel") != 0 && !csn_fx_can(f->sb, "mounts"))
        fails(CSN_UNSUPPORTED,
              csn_fx_try_open(f, CFG(.workspaces = ARGV("/srv:/srv:ro")), &sb, E));
}

/* ---- names and detached sandboxes ---- */

static void open_refuses_bad_names(csn_fx *f)
{
    char *lng = csn_fx_fill(f, 64);
    const char *bad[] = {"", "a/b", "..", ".hidden", "a b", "new\nline", lng};
    csn_sandbox *sb = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        fails(CSN_INVALID, csn_fx_try_open(f, CFG(.name = bad[i]), &sb, E));
}

static void connect_names_what_it_did_not_find(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_NOT_FOUND, csn_connect("local-1-nothere", &sb, E));
    says("local-1-nothere");
    fails(CSN_INVALID, csn_connect("../../../etc", &sb, E));
    fails(CSN_INVALID, csn_connect("", &sb, E));
    fails(CSN_INVALID, csn_connect(NULL, &sb, E));
    /* one that is not detached belongs to its handle alone */
    fails(CSN_NOT_FOUND, csn_connect(csn_id(f->sb), &sb, E));
    assert_null(sb);
}

static void connect_finds_a_detached_sandbox_by_id_and_by_name(csn_fx *f)
{
    AUTO(csn_sandbox, by_id);
    AUTO(csn_sandbox, by_name);
    AUTO(csn_info_result, info);
    AUTO(csn_read_result, r);

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "my-room"));
    csn_fx_run(f, "mkdir sub && echo hi > sub/file");
    ok(csn_set_workdir(f->sb, "sub", E));
    ok(csn_connect(csn_id(f->sb), &by_id, E));
    ok(csn_connect("my-room", &by_name, E));
    assert_string_equal(csn_id(by_id), csn_id(f->sb));
    assert_string_equal(csn_id(by_name), csn_id(f->sb));
    ok(csn_info(by_name, &info, E));
    assert_string_equal(info->name, "my-room");
    assert_int_equal(info->detached, 1);
    /* the working directory is the sandbox's, not the handle's */
    ok(csn_read(by_name, "file", NULL, &r, E));
    assert_string_equal(r->content, "hi\n");
    ok(csn_destroy(by_id, E));
    fails(CSN_GONE, csn_cleanup(by_id, E));
    fails(CSN_NOT_FOUND, csn_connect(csn_id(f->sb), &f->sb, E));
}

static void detached_sandbox_is_gone_for_every_handle_after_destroy(csn_fx *f)
{
    AUTO(csn_sandbox, other);
    csn_exec_result *r = NULL;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    ok(csn_connect(csn_id(f->sb), &other, E));
    csn_fx_run(f, "true");
    ok(csn_destroy(f->sb, E));
    fails(CSN_GONE, csn_sh(other, "true", NULL, &r, E));
    ok(csn_destroy(other, E));
}

static void detached_name_cannot_be_taken_twice(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "one"));
    fails(CSN_EXISTS,
          csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "one"), &sb, E));
    says("one");
    ok(csn_destroy(f->sb, E));
    ok(csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "one"), &sb, E));
    ok(csn_destroy(sb, E));
    csn_close(sb);
}

static void detached_sandboxes_are_listed_oldest_first(csn_fx *f)
{
    AUTO(csn_sandbox_list, list);
    AUTO(csn_sandbox_list, after);
    csn_sandbox *sb[3] = {0};

    for (size_t i = 0; i < 3; i++) {
        ok(csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = i == 1 ? "mid" : NULL),
                           &sb[i], E));
        csn_test_nap(3); /* ids carry milliseconds */
    }
    ok(csn_sandboxes(&list, E));
    assert_int_equal(list->count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(list->items[i].id, csn_id(sb[i]));
        assert_string_equal(list->items[i].backend, f->be->name);
        assert_string_equal(list->items[i].state, "running");
        assert_true(list->items[i].created_ms > 0);
    }
    assert_string_equal(list->items[1].name, "mid");
    assert_null(list->items[0].name);
    for (size_t i = 0; i < 3; i++) {
        ok(csn_destroy(sb[i], E));
        csn_close(sb[i]);
    }
    ok(csn_sandboxes(&after, E));
    assert_int_equal(after->count, 0);
}

static int open_detached_and_leave(void *ctx)
{
    csn_fx *f = ctx;
    csn_sandbox *sb = NULL;
    csn_process *p = NULL;

    if (csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "survivor"), &sb, NULL) ||
        csn_start_sh(sb, "echo $$ > pid; exec sleep 1000", NULL, &p, NULL))
        return 1;
    csn_process_free(p);
    csn_close(sb);
    return 0;
}

/* S2: reconnection by id from another process. */
static void detached_sandbox_survives_the_process_that_opened_it(csn_fx *f)
{
    AUTO(csn_process_list, procs);
    csn_child_end end = csn_child_run(open_detached_and_leave, f, -1, 60000);

    assert_int_equal(end.exit_code, 0);
    ok(csn_connect("survivor", &f->sb, E));
    pid_t pid = csn_fx_pid(f, "pid");
    assert_true(csn_test_alive(pid));
    ok(csn_processes(f->sb, &procs, E));
    assert_int_equal(procs->count, 1);
    csn_fx_run(f, "echo still > here");
    ok(csn_destroy(f->sb, E));
    assert_true(csn_test_wait_dead(pid));
}

static int write_detached_and_leave(void *ctx)
{
    csn_fx *f = ctx;
    csn_sandbox *sb = NULL;
    csn_exec_result *r = NULL;

    if (csn_fx_try_open(f, CFG(.flags = CSN_OPEN_DETACHED, .name = "kept"), &sb, NULL) ||
        csn_sh(sb, "echo once >f", NULL, &r, NULL))
        return 1;
    csn_exec_result_free(r);
    csn_close(sb);
    return 0;
}

static void detached_files_survive_the_process_that_wrote_them(csn_fx *f)
{
    for (int i = 0; i < 2; i++) {
        csn_child_end end = csn_child_run(write_detached_and_leave, f, -1, 60000);
        assert_int_equal(end.exit_code, 0);
        ok(csn_connect("kept", &f->sb, E));
        csn_fx_run(f, "echo more >>f");
        csn_fx_holds(f, "f", "once\nmore\n");
        ok(csn_destroy(f->sb, E));
        csn_fx_close(f);
    }
}

static void handle_of_a_detached_sandbox_can_be_closed_and_found_again(csn_fx *f)
{
    char *id;

    csn_fx_open(f, CFG(.flags = CSN_OPEN_DETACHED));
    id = csn_fx_keep(f, strdup(csn_id(f->sb)));
    csn_fx_run(f, "echo kept > file");
    csn_fx_close(f);
    for (int i = 0; i < 5; i++) {
        ok(csn_connect(id, &f->sb, E));
        csn_fx_holds(f, "file", "kept\n");
        csn_fx_run(f, "true");
        csn_fx_close(f);
    }
    ok(csn_connect(id, &f->sb, E));
    ok(csn_destroy(f->sb, E));
}

const csn_conf_test csn_conf_open_ids[] = {
    T(id_has_the_form_backend_time_random),
    T(id_is_unique),
    T(open_refuses_unknown_type),
    T_CLOSED(open_takes_the_backend_from_the_environment),
    T_CLOSED(open_prefers_the_config_over_the_environment),
    T_CLOSED(open_without_config_works_in_the_current_directory),
    T_CLOSED(open_without_a_name_never_takes_a_weaker_backend),
    T_CLOSED(config_size_is_its_version),
    T_CLOSED(open_refuses_unknown_flags),
    T_FULL(open_names_the_missing_workspace, NULL, CONF_HOSTDIR, CONF_CLOSED),
    T(open_starts_in_the_workdir),
    T(network_rules_are_refused_where_there_is_no_network_policy),
    T(network_rules_are_replaced_only_where_there_are_some),
    T(images_and_workspaces_are_refused_where_there_are_none),
    T(open_refuses_bad_names),
    T(connect_names_what_it_did_not_find),
    T_NEED(connect_finds_a_detached_sandbox_by_id_and_by_name, CAP_DETACH),
    T_NEED(detached_sandbox_is_gone_for_every_handle_after_destroy, CAP_DETACH),
    T_NEED(detached_name_cannot_be_taken_twice, CAP_DETACH),
    T_NEED(detached_sandboxes_are_listed_oldest_first, CAP_DETACH),
    T_FULL(detached_sandbox_survives_the_process_that_opened_it, CAP_DETACH, CONF_LIVES,
           CONF_CLOSED),
    T_FULL(detached_files_survive_the_process_that_wrote_them, CAP_DETACH, 0, CONF_CLOSED),
    T_NEED(handle_of_a_detached_sandbox_can_be_closed_and_found_again, CAP_DETACH),
    T_END,
};
