/* exec_env_stdin.c: the environment of commands (clean, added to, HOME nobody's to change) and
 * their standard input (empty, bytes, or a descriptor of the caller). */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static void env_is_added_byte_for_byte(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "printf '%s|' \"$A\" \"$B\" \"$C\" \"$D\" \"$E1\"",
              EXEC(.env = ARGV("A=plain", "B=two words = $x '\"", "C=new\nline",
                               "D=", "E1=\xff\xfe")),
              &r, E));
    assert_string_equal(r->out.data, "plain|two words = $x '\"|new\nline||\xff\xfe|");
}

static void env_of_one_call_is_gone_in_the_next(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "true", EXEC(.env = ARGV("ONCE=1")), &r, E));
    assert_string_equal(csn_fx_out(f, "echo \"[$ONCE]\""), "[]\n");
}

/* C4: no secret of the caller reaches the inside by the environment. */
static void env_is_clean(csn_fx *f)
{
    static const char *const secrets[] = {
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY",  "SSH_AUTH_SOCK",
        "CONF_SECRET",           "LD_PRELOAD_X", "XDG_RUNTIME_DIR", "CSN_TEST_KEEPER"};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        setenv(secrets[i],
               i < 6                ? "do-not-leak"
               : getenv(secrets[i]) ? getenv(secrets[i])
                                    : "x",
               1);
    csn_fx_open(f, CFG(0));
    const char *out = csn_fx_out(f, "env");
    hasnt(out, "do-not-leak");
    hasnt(out, "CSN_TEST_KEEPER");
    has(out, "PATH=");
}

static void config_env_takes_from_the_caller_and_sets(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    setenv("CONF_PASS", "passed on", 1);
    setenv("CONF_HELD", "held back", 1);
    unsetenv("CONF_UNSET");
    csn_fx_open(f, CFG(.env = ARGV("CONF_PASS", "CONF_SET=set = here", "CONF_UNSET")));
    assert_string_equal(
        csn_fx_out(f, "echo \"$CONF_PASS|$CONF_SET|$CONF_HELD|${CONF_UNSET-no}\""),
        "passed on|set = here||no\n");
    ok(csn_sh(f->sb, "echo $CONF_SET", EXEC(.env = ARGV("CONF_SET=call")), &r, E));
    assert_string_equal(r->out.data, "call\n");
}

static void bad_config_env_is_refused(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.env = ARGV("=x")), &sb, E));
    fails(CSN_INVALID, csn_fx_try_open(f, CFG(.env = ARGV("")), &sb, E));
}

/* S4: HOME = homeDir always, not overridable. */
static void home_cannot_be_changed_by_a_call(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    char *home;

    csn_fx_run(f, "true");
    home = csn_fx_home(f);
    ok(csn_sh(f->sb, "printf %s \"$HOME\"", EXEC(.env = ARGV("HOME=/evil", "OTHER=1")), &r, E));
    assert_string_equal(r->out.data, home);
    assert_int_equal(r->denial_count, 1);
    assert_string_equal(r->denials[0].op, "env");
    assert_string_equal(r->denials[0].target, "HOME");
    assert_int_equal(r->exit_code, 0);
}

static void home_of_the_config_env_does_not_win(csn_fx *f)
{
    csn_sandbox *sb = NULL;

    csn_conf_reset();
    csn_status st = csn_fx_try_open(f, CFG(.env = ARGV("HOME=/evil")), &sb, E);
    if (st == CSN_OK) {
        csn_close(f->sb);
        f->sb = sb;
        hasnt(csn_fx_out(f, "echo $HOME"), "/evil");
    } else {
        assert_int_equal(st, CSN_INVALID);
    }
}

static void home_is_a_place_of_the_sandbox(csn_fx *f)
{
    csn_fx_run(f, "cd ~ && echo by-exec > e");
    csn_fx_holds(f, "~/e", "by-exec\n");
    csn_fx_put(f, "~/sub/a", "by-api");
    assert_string_equal(csn_fx_out(f, "cat ~/sub/a"), "by-api");
    AUTO(csn_file_list, l);
    ok(csn_list(f->sb, "~", 0, &l, E));
    assert_true(l->count >= 2);
    /* not the caller's own home */
    if (getenv("HOME"))
        assert_string_not_equal(csn_fx_home(f), getenv("HOME"));
    ok(csn_delete(f->sb, "~/sub", CSN_FILE_RECURSIVE, E));
    ok(csn_delete(f->sb, "~/e", 0, E));
}

static void home_of_the_config_is_used(csn_fx *f)
{
    char *home = csn_fx_keep(f, csn_test_join(f->dir, "myhome"));

    csn_test_mkdir(home);
    csn_fx_open(f, CFG(.home = home));
    csn_fx_run(f, "echo x > ~/made");
    csn_fx_holds(f, "~/made", "x\n");
    assert_true(csn_test_exists(csn_fx_keep(f, csn_test_join(home, "made"))));
    /* it is the caller's directory: it stays after the end */
    ok(csn_destroy(f->sb, E));
    assert_true(csn_test_exists(csn_fx_keep(f, csn_test_join(home, "made"))));
}

/* ---- stdin ---- */

static void stdin_is_empty_by_default(csn_fx *f)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, "cat; read x && echo got; echo end", NULL, &r, E));
    assert_string_equal(r->out.data, "end\n");
    assert_int_equal(r->timed_out, 0);
}

static void stdin_bytes_arrive_exactly(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, none);
    char all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)(255 - i);
    ok(csn_exec(f->sb, ARGV("cat"), EXEC(.stdin_data = all, .stdin_len = sizeof(all)), &r, E));
    same_bytes(r->out.data, r->out.len, all, sizeof(all));
    ok(csn_exec(f->sb, ARGV("cat"), EXEC(.stdin_data = "x", .stdin_len = 0), &none, E));
    assert_int_equal(none->out.len, 0);
}

/* Larger than any pipe: both directions must flow at once. */
static void much_stdin_does_not_deadlock(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, count);
    size_t len = 4 * 1048576 + 13;
    char *data = csn_fx_fill(f, len);

    ok(csn_exec(
        f->sb, ARGV("cat"),
        EXEC(.stdin_data = data, .stdin_len = len, .output_max = len, .timeout_ms = 120000), &r,
        E));
    same_bytes(r->out.data, r->out.len, data, len);
    ok(csn_sh(f->sb, "wc -c", EXEC(.stdin_data = data, .stdin_len = len, .timeout_ms = 120000),
              &count, E));
    assert_int_equal(strtol(count->out.data, NULL, 10), (long)len);
}

static void unread_stdin_does_no_harm(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    AUTO(csn_exec_result, half);
    char *data = csn_fx_fill(f, 2 * 1048576);

    ok(csn_exec(f->sb, ARGV("true"), EXEC(.stdin_data = data, .stdin_len = 2 * 1048576), &r,
                E));
    assert_int_equal(r->exit_code, 0);
    ok(csn_sh(f->sb, "head -c 10; exec <&-; sleep 0.2; echo",
              EXEC(.stdin_data = data, .stdin_len = 2 * 1048576), &half, E));
    assert_int_equal(half->exit_code, 0);
    same_bytes(half->out.data, 10, data, 10);
}

static void stdin_from_a_descriptor_of_the_caller(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    char *path = csn_fx_keep(f, csn_test_join(f->dir, "input"));

    csn_test_put(path, "from a file\n", 12);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ok(csn_exec(f->sb, ARGV("cat"), EXEC(.flags = CSN_EXEC_STDIN_FD, .stdin_fd = fd), &r, E));
    assert_string_equal(r->out.data, "from a file\n");
    assert_int_equal(close(fd), 0); /* still ours */
}

static void *feed_pipe(void *ctx)
{
    int fd = *(int *)ctx;

    for (int i = 0; i < 5; i++) {
        if (write(fd, "chunk\n", 6) != 6)
            break;
        csn_test_nap(20);
    }
    close(fd);
    return NULL;
}

static void stdin_from_a_pipe_that_is_filled_slowly(csn_fx *f)
{
    AUTO(csn_exec_result, r);
    int fds[2];
    pthread_t t;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pthread_create(&t, NULL, feed_pipe, &fds[1]);
    ok(csn_exec(f->sb, ARGV("cat"), EXEC(.flags = CSN_EXEC_STDIN_FD, .stdin_fd = fds[0]), &r,
                E));
    pthread_join(t, NULL);
    assert_string_equal(r->out.data, "chunk\nchunk\nchunk\nchunk\nchunk\n");
    assert_int_equal(close(fds[0]), 0);
}

static void bad_stdin_is_invalid(csn_fx *f)
{
    csn_exec_result *r = NULL;

    fails(CSN_INVALID, csn_exec(f->sb, ARGV("cat"),
                                EXEC(.flags = CSN_EXEC_STDIN_FD, .stdin_fd = -1), &r, E));
    fails(CSN_INVALID, csn_exec(f->sb, ARGV("cat"),
                                EXEC(.flags = CSN_EXEC_STDIN_FD, .stdin_fd = 0,
                                     .stdin_data = "x", .stdin_len = 1),
                                &r, E));
}

const csn_conf_test csn_conf_exec_env_stdin[] = {
    T(env_is_added_byte_for_byte),
    T(env_of_one_call_is_gone_in_the_next),
    T_CLOSED(env_is_clean),
    T_CLOSED(config_env_takes_from_the_caller_and_sets),
    T_CLOSED(bad_config_env_is_refused),
    T(home_cannot_be_changed_by_a_call),
    T(home_of_the_config_env_does_not_win),
    T(home_is_a_place_of_the_sandbox),
    T_FULL(home_of_the_config_is_used, CAP_POLICY, 0, CONF_CLOSED),
    T(stdin_is_empty_by_default),
    T(stdin_bytes_arrive_exactly),
    T(much_stdin_does_not_deadlock),
    T(unread_stdin_does_no_harm),
    T(stdin_from_a_descriptor_of_the_caller),
    T(stdin_from_a_pipe_that_is_filled_slowly),
    T(bad_stdin_is_invalid),
    T_END,
};
