/* policy.c: granted directories, carve-outs, rules, nofollow and the command allow-list; the
 * refusal as data; the same answer from would_allow and from the operation itself. */
#include "conformance/conformance.h"

#include <unistd.h>

static char *at_outside(csn_fx *f, const char *name)
{
    return csn_fx_keep(f, csn_test_join(f->outside, name));
}

/* The last error carries a denial of this operation with the smallest rule that would allow. */
static void denied(const char *op, const char *target)
{
    const csn_denial *d = csn_error_denial(csn_conf_err);

    assert_non_null(d);
    assert_string_equal(d->op, op);
    assert_non_null(d->target);
    assert_string_equal(d->target, target);
    assert_non_null(d->rule);
    assert_non_null(d->hint);
    assert_true(*d->hint != '\0');
}

static csn_status read_it(csn_fx *f, const char *path, csn_error **err)
{
    csn_read_result *r = NULL;
    csn_status st = csn_read(f->sb, path, NULL, &r, err);

    csn_read_result_free(r);
    return st;
}

/* S4: readDirs, writeDirs; "path outside permissions (error)" */
static void read_directory_is_readable_only(csn_fx *f)
{
    char *canary = at_outside(f, "canary"), *made = at_outside(f, "made");

    csn_fx_open(f, CFG(.read = ARGV(f->outside)));
    csn_fx_holds(f, canary, "outside\n");
    fails(CSN_DENIED, csn_write(f->sb, canary, "x", 1, NULL, NULL, E));
    denied("write", canary);
    hints("--write");
    fails(CSN_DENIED, csn_write(f->sb, made, "x", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_delete(f->sb, canary, 0, E));
    denied("delete", canary);
    fails(CSN_DENIED, csn_mkdir(f->sb, made, 0, E));
    fails(CSN_DENIED, csn_rename(f->sb, canary, "mine", 0, E));
    csn_fx_put(f, "mine", "x");
    fails(CSN_DENIED, csn_rename(f->sb, "mine", made, 0, E));
    csn_fx_canary(f);
}

static void write_directory_is_writable(csn_fx *f)
{
    char *made = at_outside(f, "sub/made");
    AUTO(csn_file_list, l);

    csn_fx_open(f, CFG(.write = ARGV(f->outside)));
    csn_fx_put(f, made, "x");
    csn_fx_holds(f, made, "x");
    ok(csn_list(f->sb, f->outside, 0, &l, E));
    assert_int_equal(l->count, 2);
    ok(csn_delete(f->sb, at_outside(f, "sub"), CSN_FILE_RECURSIVE, E));
    csn_fx_canary(f);
}

static void what_is_not_granted_is_not_reachable(csn_fx *f)
{
    char *canary = at_outside(f, "canary");
    csn_file_list *l = NULL;

    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    /* by its host path it is a path below the base, where there is none */
    fails(CSN_NOT_FOUND, read_it(f, canary, E));
    fails(CSN_OUTSIDE, read_it(f, "out/canary", E));
    denied("read", "out/canary");
    fails(CSN_OUTSIDE, csn_list(f->sb, "out", 0, &l, E));
    fails(CSN_OUTSIDE, csn_write(f->sb, "out/new", "x", 1, NULL, NULL, E));
    denied("write", "out/new");
    csn_fx_canary(f);
}

static void granted_directory_must_exist(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_NOT_FOUND, csn_fx_try_open(f, CFG(.read = ARGV(at_outside(f, "nope"))), &sb, E));
    says("nope");
}

/* S4 future: deny inside allow */
static void deny_carves_out_for_every_operation(csn_fx *f)
{
    char *secret = csn_fx_host(f, "secret");
    csn_edit_item edit = {.old_string = "key", .new_string = "x"};
    csn_file_content many = {.path = "secret/new", .data = "x", .len = 1};
    csn_file_list *l = NULL;
    csn_exec_result *r = NULL;

    csn_fx_run(f,
               "mkdir -p secret/deep && echo key > secret/key && echo key > secret/deep/k && "
               "ln -s secret link && ln -s secret/key keylink && echo open > plain");
    csn_fx_open(f, CFG(.deny = ARGV(secret)));
    fails(CSN_DENIED, read_it(f, "secret/key", E));
    denied("read", "secret/key");
    assert_string_equal(csn_error_denial(csn_conf_err)->source, "config.deny[0]");
    fails(CSN_DENIED, read_it(f, "keylink", E)); /* judged by where it lands */
    fails(CSN_DENIED, read_it(f, "link/deep/k", E));
    fails(CSN_DENIED, read_it(f, "secret/../secret/key", E));
    fails(CSN_DENIED, csn_read_bytes(f->sb, "secret/key", NULL, (csn_write_fn)abort, NULL, E));
    fails(CSN_DENIED, csn_write(f->sb, "secret/key", "x", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_write(f->sb, "secret/new", "x", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_write_many(f->sb, &many, 1, 0, E));
    fails(CSN_DENIED, csn_edit(f->sb, "secret/key", &edit, 1, 0, NULL, E));
    fails(CSN_DENIED, csn_delete(f->sb, "secret/key", 0, E));
    fails(CSN_DENIED, csn_delete(f->sb, "secret", CSN_FILE_RECURSIVE, E));
    fails(CSN_DENIED, csn_mkdir(f->sb, "secret/d", 0, E));
    fails(CSN_DENIED, csn_rename(f->sb, "secret/key", "got", 0, E));
    fails(CSN_DENIED,
          csn_rename(f->sb, "secret", "got", 0, E)); /* moved away it would be open */
    fails(CSN_DENIED, csn_rename(f->sb, "plain", "secret/plain", 0, E));
    fails(CSN_DENIED, csn_list(f->sb, "secret", 0, &l, E));
    fails(CSN_DENIED, csn_glob(f->sb, "*", "secret", 0, &l, E));
    fails(CSN_DENIED, csn_sh(f->sb, "true", EXEC(.cwd = "secret"), &r, E));
    fails(CSN_DENIED, csn_set_workdir(f->sb, "secret", E));
    assert_string_equal(csn_fx_keep(f, csn_test_get(csn_fx_host(f, "secret/key"), NULL)),
                        "key\n");
    csn_fx_holds(f, "plain", "open\n");
}

/* A tree that holds a refused part does not leak it through whole-tree operations. */
static void deny_holds_for_trees(csn_fx *f)
{
    char *secret = csn_fx_host(f, "d/secret"),
         *out = csn_fx_keep(f, csn_test_join(f->dir, "o"));
    AUTO(csn_grep_result, g);
    AUTO(csn_file_list, l);

    csn_fx_run(f, "mkdir -p d/secret && echo needle > d/secret/key && echo needle > d/plain");
    csn_fx_open(f, CFG(.deny = ARGV(secret)));
    ok(csn_grep(f->sb, "needle", NULL, &g, E));
    assert_int_equal(g->count, 1);
    assert_string_equal(g->items[0].path, "d/plain");
    ok(csn_glob(f->sb, "**/key", NULL, 0, &l, E));
    assert_int_equal(l->count, 0);
    fails(CSN_DENIED, csn_delete(f->sb, "d", CSN_FILE_RECURSIVE, E));
    fails(CSN_DENIED, csn_rename(f->sb, "d", "e", 0, E));
    fails(CSN_DENIED, csn_cleanup_with(f->sb, CSN_CLEANUP_FORCE, E));
    says("secret");
    assert_true(csn_test_exists(csn_fx_host(f, "d/secret/key")));
    csn_conf_reset();
    (void)csn_export(f->sb, "d", out, NULL, E); /* refused or without it */
    assert_false(csn_test_exists(csn_fx_keep(f, csn_test_join(out, "secret/key"))));
}

static void rules_speak_of_single_operations(csn_fx *f)
{
    csn_rule rules[] = {
        {.ops = CSN_OP_WRITE | CSN_OP_DELETE | CSN_RULE_FILES, .path = csn_fx_host(f, "ro")},
        {.ops = CSN_OP_WRITE, .allow = 1, .path = csn_fx_host(f, "ro/scratch")},
        {.ops = CSN_OP_READ | CSN_RULE_FILES, .path = csn_fx_host(f, "**/*.pem")},
        {.ops = CSN_OP_DELETE | CSN_RULE_FILES, .path = csn_fx_host(f, "keep")},
    };

    csn_fx_run(f, "mkdir -p ro/scratch && echo a > ro/a && echo k > ro/x.pem && echo k > keep");
    csn_fx_open(f, CFG(.rules = rules, .rule_count = 4));
    csn_fx_holds(f, "ro/a", "a\n");
    fails(CSN_DENIED, csn_write(f->sb, "ro/a", "x", 1, NULL, NULL, E));
    assert_string_equal(csn_error_denial(csn_conf_err)->source, "config.rules[0]");
    fails(CSN_DENIED, csn_delete(f->sb, "ro/a", 0, E));
    csn_fx_put(f, "ro/scratch/new", "ok"); /* the most specific rule wins */
    fails(CSN_DENIED, csn_delete(f->sb, "ro/scratch/new", 0, E));
    fails(CSN_DENIED, read_it(f, "ro/x.pem", E));
    csn_fx_put(f, "keep", "changed");
    fails(CSN_DENIED, csn_delete(f->sb, "keep", 0, E));
    fails(CSN_DENIED,
          csn_rename(f->sb, "keep", "gone", 0, E)); /* a move deletes the old name */
}

/* What would the policy say? The same as the operation. */
static void would_allow_agrees_with_the_operation(csn_fx *f)
{
    static const struct {
        uint32_t op;
        const char *target;
        uint32_t allowed;
    } cases[] = {
        {CSN_OP_READ, "plain", 1},       {CSN_OP_WRITE, "new/file", 1},
        {CSN_OP_DELETE, "plain", 1},     {CSN_OP_READ, "secret/key", 0},
        {CSN_OP_WRITE, "secret/new", 0}, {CSN_OP_READ, "../x", 0},
        {CSN_OP_READ, "out/canary", 0},  {CSN_OP_WRITE, "link", 0},
    };

    csn_fx_run(
        f, "mkdir secret && echo k > secret/key && echo x > plain && ln -s secret/key link");
    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    csn_fx_open(f, CFG(.deny = ARGV(csn_fx_host(f, "secret"))));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_verdict, v);

        if (strcmp(cases[i].target, "../x") == 0 && !(f->be->traits & CONF_BENEATH))
            continue; /* there it is a path like any other */
        ok(csn_would_allow(f->sb, cases[i].op, cases[i].target, &v, E));
        if (v->allowed != cases[i].allowed)
            print_message("%s\n", cases[i].target);
        assert_int_equal(v->allowed, cases[i].allowed);
        assert_non_null(v->why.op);
        if (!v->allowed) {
            assert_non_null(v->why.rule);
            assert_non_null(v->why.hint);
        }
    }
    csn_verdict *none = NULL;
    fails(CSN_INVALID, csn_would_allow(f->sb, 0, "x", &none, E));
    fails(CSN_INVALID, csn_would_allow(f->sb, CSN_OP_READ | CSN_OP_WRITE, "x", &none, E));
    fails(CSN_INVALID, csn_would_allow(f->sb, CSN_OP_READ, "", &none, E));
    assert_int_equal(csn_fx_strays(f, NULL), 4); /* asking does nothing */
}

static void hint_of_a_refusal_would_have_allowed_it(csn_fx *f)
{
    char *canary = at_outside(f, "canary");

    csn_fx_open(f, CFG(.read = ARGV(f->outside)));
    fails(CSN_DENIED, csn_write(f->sb, canary, "x", 1, NULL, NULL, E));
    hints("--write ");
    const char *hint = strstr(csn_error_hint(csn_conf_err), "--write ") + 8;
    char *dir = csn_fx_keep(f, strdup(hint));
    assert_memory_equal(dir, f->outside, strlen(f->outside)); /* no wider than it must be */
}

/* S4: symlink rejection */
static void nofollow_refuses_every_link(csn_fx *f)
{
    csn_file_list *l = NULL;
    AUTO(csn_file_list, st);

    csn_fx_run(f, "mkdir d && echo x > d/f && ln -s d/f link && ln -s d dlink");
    csn_fx_open(f, CFG(.flags = CSN_OPEN_NOFOLLOW));
    csn_fx_holds(f, "d/f", "x\n");
    fails(CSN_DENIED, read_it(f, "link", E));
    fails(CSN_DENIED, read_it(f, "dlink/f", E));
    fails(CSN_DENIED, csn_write(f->sb, "link", "y", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_write(f->sb, "dlink/new", "y", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_list(f->sb, "dlink", 0, &l, E));
    ok(csn_stat(f->sb, "link", CSN_FILE_NOFOLLOW, &st, E)); /* of the link itself */
    assert_int_equal(st->items[0].is_symlink, 1);
    csn_fx_holds(f, "d/f", "x\n");
}

static void nofollow_can_be_asked_for_one_call(csn_fx *f)
{
    csn_read_result *r = NULL;
    csn_edit_item e = {.old_string = "x", .new_string = "y"};

    csn_fx_run(f, "mkdir d && echo x > d/f && ln -s d/f link && ln -s d dlink");
    fails(CSN_DENIED,
          csn_read(f->sb, "link", CSN_OPTS(csn_read_opts, .flags = CSN_FILE_NOFOLLOW), &r, E));
    fails(CSN_DENIED, csn_write(f->sb, "dlink/n", "y", 1,
                                CSN_OPTS(csn_write_opts, .flags = CSN_FILE_NOFOLLOW), NULL, E));
    fails(CSN_DENIED, csn_edit(f->sb, "link", &e, 1, CSN_FILE_NOFOLLOW, NULL, E));
    fails(CSN_DENIED, csn_delete(f->sb, "dlink/f", CSN_FILE_NOFOLLOW, E));
    csn_fx_holds(f, "link", "x\n");
}

/* ---- commands ---- */

/* S3: "should execute allowed commands", "should reject disallowed commands" */
static void only_listed_commands_run(csn_fx *f)
{
    static const char *const good[] = {
        "echo hi",
        "echo a | cat",
        "echo a && echo b; echo c",
        "X=1 echo $X",
        "echo 'rm -rf x'",
        "echo rm",
        "echo x > file2; cat < file2",
        "[ -f file ] && echo \"$?\" | cat; ! cat none 2>&1",
        "set -e; cd . && export A=\"$X\"; printf '%s' \"$A\"",
    };
    static const char *const bad[] = {
        "rm file",
        "echo a; rm file",
        "echo a | rm file",
        "echo $(rm file)",
        "echo `rm file`",
        "X=1 rm file",
        "if rm file; then :; fi",
        "(rm file)",
        "{ rm file; }",
        "echo a &\nrm file",
        "$CMD file",
        "r\"m\" file",
        "\\rm file",
        "/bin/rm file",
        "echo <(rm file)",
        "while rm file; do :; done",
        "case x in x) rm file;; esac",
        "! rm file",
        "echo a || rm file",
        "f() { rm file; }; f",
        /* not read, whatever the commands in them */
        "echo \"$(echo inner)\"",
        "if echo x; then echo y; fi",
        "cat <<EOF\nx\nEOF\n",
        "for i in 1 2; do echo $i; done",
        "eval 'rm file'",
    };
    csn_exec_result *none = NULL;

    csn_fx_put(f, "file", "x");
    csn_fx_open(f, CFG(.commands = ARGV("echo", "cat")));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        AUTO(csn_exec_result, r);
        ok(csn_sh(f->sb, good[i], NULL, &r, E));
        assert_int_equal(r->exit_code, 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (csn_sh(f->sb, bad[i], NULL, &none, NULL) != CSN_DENIED)
            print_message("ran: %s\n", bad[i]);
        fails(CSN_DENIED, csn_sh(f->sb, bad[i], NULL, &none, E));
    }
    csn_fx_holds(f, "file", "x");
}

/* A listed name means the file that the sandbox's PATH finds. */
static void a_written_file_does_not_pass_for_a_listed_name(csn_fx *f)
{
    static const char *const lines[] = {"./cat",           "PATH=. cat",    "PATH=.; cat",
                                        "env PATH=. cat",  "export PATH=.", "$PWD/cat",
                                        "PATH=.:$PATH cat"};
    AUTO(csn_exec_result, r);
    csn_exec_result *none = NULL;

    csn_fx_open(f, CFG(.commands = ARGV("cat", "env", "chmod")));
    csn_fx_put(f, "cat", "#!/bin/sh\necho > ran\n");
    ok(csn_exec(f->sb, ARGV("chmod", "755", "cat"), NULL, &r, E));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        fails(CSN_DENIED, csn_sh(f->sb, lines[i], NULL, &none, E));
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("./cat"), NULL, &none, E));
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("env", "PATH=.", "cat"), NULL, &none, E));
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("cat"), EXEC(.env = ARGV("PATH=.")), &none, E));
    assert_false(csn_fx_exists(f, "ran"));
}

static void refused_command_is_named_with_its_hint(csn_fx *f)
{
    csn_exec_result *none = NULL;

    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    fails(CSN_DENIED, csn_sh(f->sb, "echo a; curl http://x", NULL, &none, E));
    denied("exec", "curl");
    hints("--allow-command curl");
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("curl", "http://x"), NULL, &none, E));
    denied("exec", "curl");
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("/usr/bin/curl"), NULL, &none, E));
}

static void argv_is_checked_by_its_program(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    csn_exec_result *none = NULL;

    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    ok(csn_exec(f->sb, ARGV("echo", "rm", "$(rm x)", "; rm"), NULL, &r, E));
    assert_string_equal(r->out.data, "rm $(rm x) ; rm\n");
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("sh", "-c", "echo x"), NULL, &none, E));
    fails(CSN_DENIED, csn_exec(f->sb, ARGV("env", "echo"), NULL, &none, E));
}

static void background_and_sessions_obey_the_list(csn_fx *f)
{
    csn_process *p = NULL;
    csn_exec_result *r = NULL;

    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    fails(CSN_DENIED, csn_start(f->sb, ARGV("sleep", "1"), NULL, &p, E));
    fails(CSN_DENIED, csn_start_sh(f->sb, "sleep 1", NULL, &p, E));
    fails(CSN_DENIED, csn_start(f->sb, ARGV("echo"), EXEC(.env = ARGV("PATH=.")), &p, E));
    fails(CSN_DENIED, csn_sh(f->sb, "sleep 1", EXEC(.session = "a"), &r, E));
    fails(CSN_DENIED, csn_sh(f->sb, "export PATH=.", EXEC(.session = "a"), &r, E));
    fails(CSN_DENIED, csn_sh(f->sb, "echo() { sleep 1; }", EXEC(.session = "a"), &r, E));
}

static void would_allow_knows_commands(csn_fx *f)
{
    AUTO(csn_verdict, yes);
    AUTO(csn_verdict, no);

    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    ok(csn_would_allow(f->sb, CSN_OP_EXEC, "echo hi", &yes, E));
    assert_int_equal(yes->allowed, 1);
    ok(csn_would_allow(f->sb, CSN_OP_EXEC, "echo hi; rm -rf x", &no, E));
    assert_int_equal(no->allowed, 0);
    assert_string_equal(no->why.op, "exec");
    assert_string_equal(no->why.target, "rm");
    has(no->why.hint, "--allow-command rm");
}

/* File calls are not commands: a list of commands does not stop them (also where they are
 * derived from exec). */
static void file_calls_work_beside_a_command_list(csn_fx *f)
{
    csn_fx_open(f, CFG(.commands = ARGV("echo")));
    csn_fx_put(f, "d/file", "x");
    csn_fx_holds(f, "d/file", "x");
    ok(csn_rename(f->sb, "d/file", "moved", 0, E));
    ok(csn_delete(f->sb, "moved", 0, E));
}

static void exec_rules_deny_single_commands(csn_fx *f)
{
    csn_rule rule = {.ops = CSN_OP_EXEC, .allow = 0, .path = "curl"};
    AUTO(csn_exec_result, r);
    csn_exec_result *none = NULL;

    csn_fx_open(f, CFG(.rules = &rule, .rule_count = 1));
    ok(csn_sh(f->sb, "echo fine", NULL, &r, E));
    fails(CSN_DENIED, csn_sh(f->sb, "curl http://x", NULL, &none, E));
    denied("exec", "curl");
}

/* ---- limits: refused, or kept ---- */

static void file_size_limit_is_refused_or_kept(csn_fx *f)
{
    csn_sandbox *sb = NULL;
    char *big = csn_fx_fill(f, 200000);

    csn_conf_reset();
    csn_status st = csn_fx_try_open(f, CFG(.file_max = 65536), &sb, E);
    if (st != CSN_OK) {
        assert_int_equal(st, CSN_UNSUPPORTED);
        return;
    }
    csn_fx_close(f);
    f->sb = sb;
    fails(CSN_TOO_LARGE, csn_write(f->sb, "big", big, 200000, NULL, NULL, E));
    assert_false(csn_fx_exists(f, "big"));
    AUTO(csn_exec_result, r);
    ok(csn_sh(f->sb, "yes | head -c 200000 > big2", NULL, &r, E));
    AUTO(csn_file_list, l);
    ok(csn_stat(f->sb, "big2", 0, &l, E));
    assert_true(l->items[0].file_size <= 65536);
}

static void other_limits_are_refused_or_kept(csn_fx *f)
{
    csn_config cfgs[] = {CFG(.memory_max = 67108864), CFG(.pids_max = 20),
                         CFG(.disk_max = 1 << 20), CFG(.cpu_milli = 100)};
    static const char *const bombs[] = {
        "head -c 400000000 /dev/zero | tail -c 300000000 | wc -c | grep -q 300000000",
        "i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done; jobs | wc -l | grep -q 60",
        "head -c 5000000 /dev/zero > f && test $(wc -c < f) = 5000000",
        NULL, /* a share of a processor cannot be seen from inside */
    };

    for (size_t i = 0; i < 4; i++) {
        csn_sandbox *sb = NULL;
        csn_exec_result *r = NULL;

        csn_conf_reset();
        csn_status st = csn_fx_try_open(f, cfgs[i], &sb, E);
        if (st != CSN_OK) {
            assert_int_equal(st, CSN_UNSUPPORTED);
            continue;
        }
        st = bombs[i] ? csn_sh(sb, bombs[i], NULL, &r, E) : CSN_OK;
        if (bombs[i] && st != CSN_UNSUPPORTED) { /* taken, so it must hold */
            csn_conf_ok(st, bombs[i], __FILE__, __LINE__);
            assert_int_equal(r->failed, 1);
            csn_exec_result_free(r);
        }
        csn_close(sb);
    }
}

const csn_conf_test csn_conf_policy[] = {
    T_FULL(read_directory_is_readable_only, CAP_POLICY, CONF_HOSTDIR, CONF_CLOSED),
    T_FULL(write_directory_is_writable, CAP_POLICY, CONF_HOSTDIR, CONF_CLOSED),
    T_TRAIT(what_is_not_granted_is_not_reachable, CONF_BENEATH),
    T_NEED(granted_directory_must_exist, CAP_POLICY),
    T_FULL(deny_carves_out_for_every_operation, CAP_POLICY, CONF_HOSTDIR, 0),
    T_FULL(deny_holds_for_trees, CAP_POLICY, CONF_HOSTDIR, 0),
    T_FULL(rules_speak_of_single_operations, CAP_POLICY, CONF_HOSTDIR, 0),
    T_NEED(would_allow_agrees_with_the_operation, CAP_JUDGE),
    T_FULL(hint_of_a_refusal_would_have_allowed_it, CAP_POLICY, CONF_HOSTDIR, 0),
    T_NEED(nofollow_refuses_every_link, CAP_POLICY),
    T(nofollow_can_be_asked_for_one_call),
    T(only_listed_commands_run),
    T_CLOSED(a_written_file_does_not_pass_for_a_listed_name),
    T_CLOSED(refused_command_is_named_with_its_hint),
    T_CLOSED(argv_is_checked_by_its_program),
    T_NEED(background_and_sessions_obey_the_list, CAP_SESSION),
    T_CLOSED(would_allow_knows_commands),
    T_CLOSED(file_calls_work_beside_a_command_list),
    T_NEED(exec_rules_deny_single_commands, CAP_POLICY),
    T(file_size_limit_is_refused_or_kept),
    T(other_limits_are_refused_or_kept),
    T_END,
};
