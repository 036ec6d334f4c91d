/* exec_basic.c: what a command is given and what comes back: streams, exit codes, signals, the
 * argument vector byte for byte, the working directory, and what cannot be run at all. */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* S0: "execute returns output and exit code"; S3: "should return stdout, stderr, exitCode" */
static void sh_returns_output_and_exit_code(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo hello", NULL, &r, E));
    assert_int_equal(r->size, sizeof(*r));
    assert_int_equal(r->exit_code, 0);
    same_bytes(r->out.data, r->out.len, "hello\n", 6);
    same_bytes(r->err.data, r->err.len, "", 0);
    same_bytes(r->merged.data, r->merged.len, "hello\n", 6);
    assert_int_equal(r->out.total, 6);
    assert_int_equal(r->out.head, 6);
    assert_int_equal(r->truncated, 0);
    assert_null(r->truncated_by);
    assert_null(r->signal);
    assert_null(r->killed_by);
    assert_int_equal(r->failed, 0);
    assert_int_equal(r->timed_out, 0);
    assert_int_equal(r->interrupted, 0);
    assert_int_equal(r->denial_count, 0);
    assert_true(r->duration_ms > 0);
}

/* S0: "execute captures stderr" */
static void sh_keeps_the_streams_apart(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo out; echo error >&2", NULL, &r, E));
    same_bytes(r->out.data, r->out.len, "out\n", 4);
    same_bytes(r->err.data, r->err.len, "error\n", 6);
    /* without MERGE the order between the streams is not known, their bytes are all there */
    assert_int_equal(r->merged.len, 10);
    has(r->merged.data, "out\n");
    has(r->merged.data, "error\n");
    assert_int_equal(r->exit_code, 0);
}

/* S0: "execute returns non-zero exit code on failure" */
static void exit_code_is_data_not_an_error(csn_fx *f)
{
    static const int codes[] = {0, 1, 42, 124, 125, 126, 127, 128, 137, 255};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        AUTO(csn_exec_result, r);
        char *cmd = csn_fx_keep(f, csn_test_format("exit %d", codes[i]));

        ok(csn_sh(f->sb, cmd, NULL, &r, E));
        assert_int_equal(r->exit_code, codes[i]);
        assert_int_equal(r->failed, codes[i] != 0);
        assert_null(r->signal);
        assert_null(r->killed_by);
    }
}

/* S4: signal; interface: exit code null when signalled */
static void signal_is_named_and_exit_code_unknown(csn_fx *f)
{
    static const struct {
        int signo;
        const char *name;
    } cases[] = {{SIGTERM, "SIGTERM"}, {SIGKILL, "SIGKILL"}, {SIGINT, "SIGINT"},
                 {SIGSEGV, "SIGSEGV"}, {SIGUSR1, "SIGUSR1"}, {SIGABRT, "SIGABRT"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_exec_result, r);
        char *cmd = csn_fx_keep(
            f, csn_test_format("ulimit -c 0; kill -%d $$; sleep 5", cases[i].signo));

        ok(csn_sh(f->sb, cmd, NULL, &r, E));
        assert_int_equal(r->exit_code, -1);
        assert_non_null(r->signal);
        assert_string_equal(r->signal, cases[i].name);
        assert_string_equal(r->killed_by, "signal");
        assert_int_equal(r->failed, 1);
        assert_int_equal(r->interrupted, 0);
        assert_int_equal(r->timed_out, 0);
    }
}

static void merge_keeps_the_order_of_arrival(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "echo 1; echo 2 >&2; echo 3; echo 4 >&2; echo 5",
              EXEC(.flags = CSN_EXEC_MERGE), &r, E));
    same_bytes(r->merged.data, r->merged.len, "1\n2\n3\n4\n5\n", 10);
    assert_int_equal(r->merged.total, 10);
}

/* S3 joined its arguments with spaces; here each arrives as it is. */
static void argv_is_never_joined(csn_fx *f)
{
    static const char *const args[] = {
        "two words", "quote\"s", "'single'", "$HOME", "$(echo pwned)", "`echo pwned`",
        "new\nline", "",         "*",        "a;b",   "a|b",           "back\\slash",
        "\xff\xfe",  "-n",       "--",       "é",     " lead trail ",  "&& exit 9",
    };
    const char *argv[64] = {"sh", "-c", "for a; do printf '%s\\0' \"$a\"; done", "sh"};
    AUTO(csn_exec_result, r);
    size_t at = 0, n = sizeof(args) / sizeof(args[0]);

    for (size_t i = 0; i < n; i++)
        argv[4 + i] = args[i];
    ok(csn_exec(f->sb, argv, NULL, &r, E));
    assert_int_equal(r->exit_code, 0);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(args[i]) + 1;
        assert_true(at + len <= r->out.len);
        same_bytes(r->out.data + at, len, args[i], len);
        at += len;
    }
    assert_int_equal(at, r->out.len);
}

static void argv_runs_without_a_shell(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_exec(f->sb, ARGV("echo", "a;", "exit", "3", "$HOME", "*"), NULL, &r, E));
    same_bytes(r->out.data, r->out.len, "a; exit 3 $HOME *\n", 18);
    assert_int_equal(r->exit_code, 0);
}

static void argv_may_be_long(csn_fx *f)
{
    enum { COUNT = 2000 };
    const char **argv = calloc(COUNT + 5, sizeof(*argv));
    char *word = csn_fx_fill(f, 100);
    AUTO(csn_exec_result, r);

    assert_non_null(argv);
    memcpy(argv, ARGV("sh", "-c", "echo $#", "sh"), 4 * sizeof(*argv));
    for (size_t i = 0; i < COUNT; i++)
        argv[4 + i] = word;
    ok(csn_exec(f->sb, argv, NULL, &r, E));
    free(argv);
    same_bytes(r->out.data, r->out.len, "2000\n", 5);
}

static void missing_executable_is_127(csn_fx *f)
{
    AUTO(csn_exec_result, a);
    AUTO(csn_exec_result, b);
    AUTO(csn_exec_result, c);

    ok(csn_sh(f->sb, "no-such-command-here", NULL, &a, E));
    assert_int_equal(a->exit_code, 127);
    has(a->err.data, "no-such-command-here");
    has(a->err.data, "not found");
    assert_int_equal(a->failed, 1);
    ok(csn_exec(f->sb, ARGV("no-such-command-here", "x"), NULL, &b, E));
    assert_int_equal(b->exit_code, 127);
    assert_int_equal(b->failed, 1);
    has(b->merged.data, "no-such-command-here");
    ok(csn_exec(f->sb, ARGV("./missing/file"), NULL, &c, E));
    assert_int_equal(c->exit_code, 127);
}

static void file_without_x_bit_cannot_be_run(csn_fx *f)
{
    AUTO(csn_exec_result, a);
    AUTO(csn_exec_result, b);

    csn_fx_put(f, "plain", "#!/bin/sh\necho ran\n");
    ok(csn_sh(f->sb, "./plain", NULL, &a, E));
    assert_int_equal(a->exit_code, 126);
    ok(csn_exec(f->sb, ARGV("./plain"), NULL, &b, E));
    assert_int_equal(b->failed, 1);
    assert_int_equal(b->exit_code, 126);
    hasnt(b->out.data, "ran");
    assert_true(b->merged.len > 0);
}

/* S0: spawn error -> output "Error: <message>", exit 1, not truncated */
static void spawn_failure_is_told_as_output(csn_fx *f)
{
    char *huge = csn_fx_fill(f, 200 * 1024); /* one argument over the kernel's 128 KiB */
    AUTO(csn_exec_result, r);

    ok(csn_exec(f->sb, ARGV("echo", huge), NULL, &r, E));
    assert_int_equal(r->exit_code, 1);
    assert_int_equal(r->failed, 1);
    assert_int_equal(r->truncated, 0);
    assert_int_equal(r->interrupted, 0);
    assert_memory_equal(r->merged.data, "Error: ", 7);
    assert_true(r->merged.len > 8);
}

static void commands_and_file_calls_see_the_same_files(csn_fx *f)
{
    csn_fx_put(f, "dir/by-api", "api\n");
    assert_string_equal(csn_fx_out(f, "cat dir/by-api"), "api\n");
    csn_fx_run(f, "echo exec > dir/by-exec");
    csn_fx_holds(f, "dir/by-exec", "exec\n");
    csn_fx_run(f, "rm dir/by-api && mv dir/by-exec dir/moved");
    assert_false(csn_fx_exists(f, "dir/by-api"));
    csn_fx_holds(f, "dir/moved", "exec\n");
}

/* S4: cwd resolution; S2: exec("pwd") */
static void cwd_is_where_the_command_runs(csn_fx *f)
{
    csn_exec_result *none = NULL;

    csn_fx_run(f, "mkdir -p a/b && echo x > file && echo deep > a/b/f && ln -s a/b link");
    static const char *const same[] = {"a/b", "./a//b/", "link", "a/../a/b"};
    for (size_t i = 0; i < 4; i++) {
        AUTO(csn_exec_result, r);
        ok(csn_sh(f->sb, "cat f", EXEC(.cwd = same[i]), &r, E));
        assert_string_equal(r->out.data, "deep\n");
    }
    fails(CSN_NOT_FOUND, csn_sh(f->sb, "true", EXEC(.cwd = "missing"), &none, E));
    says("missing");
    fails(CSN_WRONG_TYPE, csn_sh(f->sb, "true", EXEC(.cwd = "file"), &none, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.cwd = ""), &none, E));
    assert_null(none);
}

static void cwd_outside_is_refused(csn_fx *f)
{
    csn_exec_result *none = NULL;

    assert_int_equal(symlink(f->outside, csn_fx_host(f, "out")), 0);
    fails(CSN_OUTSIDE, csn_sh(f->sb, "true", EXEC(.cwd = ".."), &none, E));
    says("path outside base directory");
    fails(CSN_OUTSIDE, csn_sh(f->sb, "true", EXEC(.cwd = "out"), &none, E));
}

static void nonsense_is_invalid(csn_fx *f)
{
    csn_exec_result *r = NULL;

    fails(CSN_INVALID, csn_exec(f->sb, NULL, NULL, &r, E));
    fails(CSN_INVALID, csn_exec(f->sb, (const char *const[]){NULL}, NULL, &r, E));
    fails(CSN_INVALID, csn_exec(f->sb, ARGV(""), NULL, &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, NULL, NULL, &r, E));
    assert_null(r);
}

static void exec_options_size_is_their_version(csn_fx *f)
{
    struct {
        csn_exec_opts o;
        char tail[16];
    } newer = {.o = {.size = sizeof(newer)}};
    csn_exec_opts old = {.size = offsetof(csn_exec_opts, timeout_ms), .timeout_ms = 1};
    csn_exec_result *r = NULL;
    AUTO(csn_exec_result, a);
    AUTO(csn_exec_result, b);

    ok(csn_sh(f->sb, "echo x", &newer.o, &a, E));
    newer.tail[15] = 1;
    fails(CSN_UNSUPPORTED, csn_sh(f->sb, "echo x", &newer.o, &r, E));
    ok(csn_sh(f->sb, "sleep 0.3; echo x", &old, &b, E)); /* its timeout field does not exist */
    assert_int_equal(b->timed_out, 0);
    fails(CSN_INVALID, csn_sh(f->sb, "echo x", &(csn_exec_opts){.timeout_ms = 5}, &r, E));
}

static void options_that_do_not_fit_are_refused(csn_fx *f)
{
    csn_exec_result *r = NULL;

    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.flags = 1u << 30), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_STDIN), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_TIED), &r, E));
    fails(CSN_INVALID, csn_exec(f->sb, ARGV("true"), EXEC(.session = "s"), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_RESTART), &r, E));
    fails(CSN_INVALID,
          csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_KEEP_TAIL | CSN_EXEC_KEEP_BOTH), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.env = ARGV("NOEQUALS")), &r, E));
    fails(CSN_INVALID, csn_sh(f->sb, "true", EXEC(.env = ARGV("=value")), &r, E));
}

/* S3: sudo; S4: allowedDomains, packageManagers: never silently ignored */
static void options_the_backend_lacks_are_unsupported(csn_fx *f)
{
    csn_exec_result *r = NULL;

    if (!csn_fx_can(f->sb, "sudo"))
        fails(CSN_UNSUPPORTED, csn_sh(f->sb, "true", EXEC(.flags = CSN_EXEC_SUDO), &r, E));
    if (!csn_fx_can(f->sb, "network_per_call")) {
        fails(CSN_UNSUPPORTED,
              csn_sh(f->sb, "true", EXEC(.allowed_domains = ARGV("a.test")), &r, E));
        fails(CSN_UNSUPPORTED,
              csn_sh(f->sb, "true", EXEC(.package_managers = ARGV("npm")), &r, E));
    } else { /* a sandbox without network has none to narrow */
        fails(CSN_DENIED,
              csn_sh(f->sb, "true", EXEC(.allowed_domains = ARGV("a.test")), &r, E));
        fails(CSN_DENIED, csn_sh(f->sb, "true", EXEC(.package_managers = ARGV("npm")), &r, E));
        fails(CSN_INVALID,
              csn_sh(f->sb, "true", EXEC(.allowed_domains = ARGV("a..test")), &r, E));
        fails(CSN_INVALID,
              csn_sh(f->sb, "true", EXEC(.package_managers = ARGV("nosuch")), &r, E));
        fails(CSN_UNSUPPORTED,
              csn_sh(f->sb, "true", EXEC(.allowed_domains = ARGV("a.test"), .session = "s"), &r,
                     E));
    }
    assert_null(r);
}

/* C4: no descriptor of the caller reaches a command. */
static void no_descriptor_is_inherited(csn_fx *f)
{
    int fd = open("/dev/null", O_RDONLY);

    assert_true(fd >= 0);
    for (int i = 40; i < 60; i++)
        assert_int_equal(dup2(fd, i), i); /* without CLOEXEC, on purpose */
    assert_int_equal(dup2(fd, 9), 9);     /* a shell that knows one digit only */
    csn_fx_open(f, CFG(0));
    const char *out = csn_fx_out(f, "i=3; while [ $i -lt 200 ]; do "
                                    "if (eval \"true <&$i\") 2>/dev/null; then echo $i; fi; "
                                    "i=$((i+1)); done");
    assert_string_equal(out, "");
}

/* The caller's signal mask and ignored signals are its own affair. */
static void signals_are_as_in_a_fresh_process(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    csn_fx_open(f, CFG(0));
    ok(csn_sh(f->sb, "kill -TERM $$; echo survived", NULL, &r, E));
    assert_int_equal(r->exit_code, -1);
    assert_string_equal(r->signal, "SIGTERM");
}

static void usage_is_measured(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", NULL, &r, E));
    assert_int_equal(r->exit_code, 0);
    assert_true(r->cpu_ms > 0);
    assert_true(r->cpu_ms <= r->duration_ms * 64 + 1000);
    assert_true(r->peak_memory > 100 * 1024);
}

static void result_names_the_layers(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_info_result, info);

    ok(csn_sh(f->sb, "true", NULL, &r, E));
    ok(csn_info(f->sb, &info, E));
    assert_int_equal(r->layer_count, info->layer_count);
    for (size_t i = 0; i < r->layer_count; i++) {
        assert_string_equal(r->layers[i].name, info->layers[i].name);
        assert_string_equal(r->layers[i].status, info->layers[i].status);
    }
}

static void long_script_runs(csn_fx *f)
{
    char *filler = csn_fx_fill(f, 100 * 1024);
    AUTO(csn_exec_result, r);

    memcpy(filler, ": '", 3);
    memcpy(filler + 100 * 1024 - 11, "'\necho end\n", 11);
    ok(csn_sh(f->sb, filler, NULL, &r, E));
    assert_string_equal(r->out.data, "end\n");
}

/* S1: TestSandbox_NPMWorkflow, with what every machine has */
static void a_small_workflow_works(csn_fx *f)
{
    csn_fx_put(f, "package.sh", "#!/bin/sh\n[ \"$1\" = test ] && echo success\n");
    csn_fx_run(f, "chmod +x package.sh");
    assert_string_equal(csn_fx_out(f, "./package.sh test"), "success\n");
    csn_fx_put(f, "data/in.txt", "3\n1\n2\n");
    assert_string_equal(
        csn_fx_out(f, "sort data/in.txt | tee data/out.txt | wc -l | tr -d ' '"), "3\n");
    csn_fx_holds(f, "data/out.txt", "1\n2\n3\n");
}

const csn_conf_test csn_conf_exec_basic[] = {
    T(sh_returns_output_and_exit_code),
    T(sh_keeps_the_streams_apart),
    T(exit_code_is_data_not_an_error),
    T_NEED(signal_is_named_and_exit_code_unknown, CAP_SIGNALS),
    T(merge_keeps_the_order_of_arrival),
    T(argv_is_never_joined),
    T(argv_runs_without_a_shell),
    T(argv_may_be_long),
    T(missing_executable_is_127),
    T(file_without_x_bit_cannot_be_run),
    T(spawn_failure_is_told_as_output),
    T(commands_and_file_calls_see_the_same_files),
    T(cwd_is_where_the_command_runs),
    T_TRAIT(cwd_outside_is_refused, CONF_BENEATH),
    T(nonsense_is_invalid),
    T(exec_options_size_is_their_version),
    T(options_that_do_not_fit_are_refused),
    T(options_the_backend_lacks_are_unsupported),
    T_CLOSED(no_descriptor_is_inherited),
    T_FULL(signals_are_as_in_a_fresh_process, CAP_SIGNALS, 0, CONF_CLOSED),
    T_NEED(usage_is_measured, CAP_USAGE),
    T(result_names_the_layers),
    T(long_script_runs),
    T(a_small_workflow_works),
    T_END,
};
