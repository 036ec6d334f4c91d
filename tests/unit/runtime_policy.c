/* runtime_policy.c: grants, the mapping of paths to them, and what rules refuse. */
#include <sys/file.h>

#include "fixture.h"

#include "os/beneath.h"

static room rm;

static csn_status read_st(const char *path)
{
    room_bytes b = {.len = 0};

    return room_read(&rm, path, &b, NULL);
}

static const char *in_root(const char *rest)
{
    static char text[64][256];
    static unsigned at;

    at = (at + 1) % 64;
    snprintf(text[at], sizeof(text[at]), "%s/%s", rm.fx.root, rest);
    return text[at];
}

static const char *in_top(const char *rest)
{
    static char text[64][256];
    static unsigned at;

    at = (at + 1) % 64;
    snprintf(text[at], sizeof(text[at]), "%s/%s", rm.fx.top, rest);
    return text[at];
}

/* ---- grants ---- */

static void bad_grants_are_named(void **state)
{
    const char *const missing[] = {in_top("no-such"), NULL};
    csn_error *err = NULL;
    room r = {.config = {.size = sizeof(csn_config), .home = rm.home}};

    (void)state;
    r.config.workspace = in_top("no-such");
    assert_int_equal(room_try_open(&r, &err), CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), "workspace"));
    assert_non_null(strstr(csn_error_message(err), "no-such"));
    csn_error_free(err);
    err = NULL;
    room_close(&r);
    r.config.workspace = in_top("outside");
    assert_int_equal(room_try_open(&r, NULL), CSN_WRONG_TYPE);
    room_close(&r);
    r.config.workspace = rm.fx.root;
    r.config.read = missing;
    assert_int_equal(room_try_open(&r, &err), CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), "read"));
    csn_error_free(err);
    room_close(&r);
}

static void home_is_private_when_none_is_given(void **state)
{
    struct stat st;

    (void)state;
    setenv("XDG_RUNTIME_DIR", rm.fx.top, 1);
    rm.config.home = NULL;
    room_again(&rm);
    assert_non_null(rm.l.run_path);
    assert_true(rm.l.run_fd >= 0);
    assert_int_equal(stat(rm.l.home.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(room_write(&rm, rm.l.home.path, "x", 0), CSN_WRONG_TYPE);
    char path[512];
    snprintf(path, sizeof(path), "%s/x", rm.l.home.path);
    assert_int_equal(room_write(&rm, path, "x", 0), CSN_OK);
    /* others may commit too: they meet at a lock, which is free again afterwards */
    rm.l.commit_fd = openat(rm.l.run_fd, "commit.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int other = openat(rm.l.run_fd, "commit.lock", O_RDWR | O_CLOEXEC);
    assert_int_equal(room_write(&rm, path, "y", 0), CSN_OK);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    close(rm.l.commit_fd);
    rm.l.commit_fd = -1;
    unsetenv("XDG_RUNTIME_DIR");
}

static void paths_name_grants_by_what_the_caller_called_them(void **state)
{
    const char *const dirs[] = {in_top("alias-dir"), NULL};

    (void)state;
    put_dir(rm.fx.top_fd, "real-dir");
    put_file(rm.fx.top_fd, "real-dir/f", "granted");
    put_link(rm.fx.top_fd, "real-dir", "alias-dir");
    put_link(rm.fx.top_fd, "root", "alias-root");
    rm.config.workspace = in_top("alias-root");
    rm.config.read = dirs;
    room_again(&rm);
    assert_int_equal(read_st(in_top("alias-root/target")), CSN_OK);
    assert_int_equal(read_st(in_top("root/target")), CSN_OK);
    assert_int_equal(read_st(in_top("alias-dir/f")), CSN_OK);
    assert_int_equal(read_st(in_top("real-dir/f")), CSN_OK);
    assert_int_equal(read_st(in_top("real-dir/../outside")), CSN_OUTSIDE);
    rm.config.workspace = rm.fx.root;
    rm.config.read = NULL;
    room_again(&rm);
    assert_int_equal(read_st(in_top("real-dir/f")), CSN_NOT_FOUND);
}

static void tilde_in_lists_is_the_callers_home(void **state)
{
    const char *const dirs[] = {"~/outdir", NULL};
    char *old = strdup(getenv("HOME") ? getenv("HOME") : "");

    (void)state;
    setenv("HOME", rm.fx.top, 1);
    rm.config.home = rm.fx.root;
    rm.config.read = dirs;
    room_again(&rm);
    assert_int_equal(read_st(in_top("outdir/file")), CSN_OK);
    setenv("HOME", old, 1);
    free(old);
    rm.config.read = NULL;
}

static void root_directory_as_base_has_no_outside(void **state)
{
    (void)state;
    rm.config.workspace = "/";
    room_again(&rm);
    assert_int_equal(read_st(in_top("outside")), CSN_OK);
    assert_int_equal(read_st(in_root("link_abs")), CSN_OK);
    assert_int_equal(read_st(in_root("link_out_abs")), CSN_OK);
    assert_int_equal(read_st("/../../etc/passwd"), CSN_OK);
    assert_int_equal(room_write(&rm, in_root("via-root"), "x", 0), CSN_OK);
    assert_true(room_holds(&rm, "via-root", "x"));
    assert_int_equal(csn_runtime_cleanup(&rm.l, NULL), CSN_INVALID);
    rm.config.workspace = rm.fx.root;
    room_again(&rm);
}

static void read_grant_is_read_only(void **state)
{
    const char *const dirs[] = {in_top("lib"), NULL};
    csn_error *err = NULL;

    (void)state;
    put_dir(rm.fx.top_fd, "lib");
    put_file(rm.fx.top_fd, "lib/f", "granted");
    rm.config.read = dirs;
    room_again(&rm);
    assert_int_equal(read_st(in_top("lib/f")), CSN_OK);
    assert_int_equal(room_write_opts(&rm, in_top("lib/f"), "x", 0, 0, NULL, &err), CSN_DENIED);
    const csn_denial *d = csn_error_denial(err);
    assert_string_equal(d->op, "write");
    assert_string_equal(d->target, in_top("lib/f"));
    assert_string_equal(d->resolved, in_top("lib/f"));
    assert_non_null(d->rule);
    assert_non_null(strstr(d->hint, "--write"));
    csn_error_free(err);
    assert_int_equal(room_write(&rm, in_top("lib/x/y"), "x", 0), CSN_DENIED);
    assert_int_equal(room_write(&rm, in_top("lib/f"), "x", CSN_FILE_APPEND), CSN_DENIED);
    assert_int_equal(csn_runtime_mkdir(&rm.l, in_top("lib/d"), 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_symlink(&rm.l, "x", in_top("lib/l"), NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_remove(&rm.l, in_top("lib/f"), 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_rename(&rm.l, in_top("lib/f"), "/stolen", 0, NULL),
                     CSN_DENIED);
    assert_int_equal(csn_runtime_rename(&rm.l, "/target", in_top("lib/f"), 0, NULL),
                     CSN_DENIED);
    rm.config.read = NULL;
    rm.config.write = dirs;
    room_again(&rm);
    assert_int_equal(room_write(&rm, in_top("lib/f"), "x", 0), CSN_OK);
    assert_int_equal(csn_runtime_rename(&rm.l, in_top("lib/f"), "/moved", 0, NULL), CSN_OK);
    rm.config.write = NULL;
}

/* ---- denials ---- */

static const char *denied[4];

static void with_deny(const char *a, const char *b)
{
    denied[0] = a;
    denied[1] = b;
    denied[2] = NULL;
    rm.config.deny = denied;
    room_again(&rm);
}

static void denied_file_is_refused_by_every_name(void **state)
{
    csn_error *err = NULL;
    room_bytes b = {.len = 0};
    csn_file_stat st;

    (void)state;
    put_link(rm.fx.fd, "b/target", "to-secret");
    with_deny(in_root("b/target"), "etc"); /* relative: below the base */
    assert_int_equal(room_read(&rm, "/b/target", &b, &err), CSN_DENIED);
    assert_string_equal(csn_error_denial(err)->resolved, in_root("b/target"));
    assert_string_equal(csn_error_denial(err)->source, "config.deny[0]");
    csn_error_free(err);
    assert_int_equal(read_st("/to-secret"), CSN_DENIED);
    assert_int_equal(read_st("/a/../b/target"), CSN_DENIED);
    assert_int_equal(read_st("/alink/../target"), CSN_DENIED);
    assert_int_equal(read_st("//b/target"), CSN_DENIED);
    assert_int_equal(read_st("/b//target"), CSN_DENIED);
    assert_int_equal(read_st("/./b/./target"), CSN_DENIED);
    assert_int_equal(read_st("/etc/passwd"), CSN_DENIED);
    assert_int_equal(room_write(&rm, "/to-secret", "x", 0), CSN_DENIED);
    assert_int_equal(room_write(&rm, "/etc/new/file", "x", 0), CSN_DENIED);
    assert_int_equal(csn_runtime_stat(&rm.l, "/etc/passwd", 0, &st, NULL, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/etc/d", 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_remove(&rm.l, "/b/target", 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_rename(&rm.l, "/b/target", "/x", 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_rename(&rm.l, "/target", "/etc/passwd", 0, NULL), CSN_DENIED);
    assert_int_equal(read_st("/target"), CSN_OK);
    assert_int_equal(read_st("/link"), CSN_OK);
    assert_int_equal(room_write(&rm, "/target", "x", 0), CSN_OK);
    assert_true(room_holds(&rm, "b/target", "inside\n") && !room_has(&rm, "etc/new"));
}

static void denied_path_that_is_not_there_yet_cannot_be_made(void **state)
{
    (void)state;
    denied[0] = in_root("later/hooks");
    denied[1] = NULL;
    rm.config.deny_missing_ok = denied;
    room_again(&rm);
    assert_int_equal(room_write(&rm, "/later/hooks/pre-commit", "x", 0), CSN_DENIED);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/later/hooks", 0, NULL), CSN_DENIED);
    assert_false(room_has(&rm, "later"));
    assert_int_equal(room_write(&rm, "/later/other", "x", 0), CSN_OK);
    /* nor moved into place inside a directory */
    assert_int_equal(room_write(&rm, "/tmpdir/hooks/pre-commit", "x", 0), CSN_OK);
    assert_int_equal(csn_runtime_remove(&rm.l, "/later", CSN_FILE_RECURSIVE, NULL), CSN_OK);
    assert_int_equal(csn_runtime_rename(&rm.l, "/tmpdir", "/later", 0, NULL), CSN_DENIED);
    assert_false(room_has(&rm, "later"));
    rm.config.deny_missing_ok = NULL;
}

static void denied_path_that_is_missing_is_refused_by_name(void **state)
{
    const char *const typo[] = {"b/targt", NULL};
    csn_config config = rm.config;
    csn_error *err = NULL;
    void *other = NULL;

    (void)state;
    config.deny = typo;
    assert_int_equal(csn_runtime_open("local", &config, "local-1-typo", &other, &err),
                     CSN_NOT_FOUND);
    assert_non_null(strstr(csn_error_message(err), "b/targt"));
    assert_non_null(strstr(csn_error_hint(err), "--deny-missing-ok"));
    csn_error_free(err);
}

static void tree_with_a_denied_path_is_not_removed_or_moved(void **state)
{
    room_print before;

    (void)state;
    with_deny(in_root("a/b/c/target"), NULL);
    before = room_fingerprint(&rm);
    assert_int_equal(csn_runtime_remove(&rm.l, "/a", CSN_FILE_RECURSIVE, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_rename(&rm.l, "/a", "/z", 0, NULL), CSN_DENIED);
    assert_int_equal(csn_runtime_cleanup(&rm.l, NULL), CSN_DENIED);
    assert_true(before.sum == room_fingerprint(&rm).sum);
    assert_int_equal(csn_runtime_remove(&rm.l, "/b", CSN_FILE_RECURSIVE, NULL), CSN_OK);
}

static int note_entry(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    (void)st;
    (void)target;
    *(bool *)ctx |= strcmp(path, "a/b/c/target") == 0 || strcmp(path, "target") == 0;
    return 0;
}

static void walk_hides_and_list_shows_what_is_denied(void **state)
{
    bool walked = false, listed = false;

    (void)state;
    with_deny(in_root("a/b/c/target"), in_root("target"));
    assert_int_equal(csn_runtime_walk(&rm.l, "/", 0, note_entry, &walked, NULL), CSN_OK);
    assert_int_equal(csn_runtime_list(&rm.l, "/", 0, note_entry, &listed, NULL), CSN_OK);
    assert_false(walked);
    assert_true(listed);
}

static void rules_speak_of_single_operations(void **state)
{
    const csn_rule rules[] = {{CSN_OP_WRITE | CSN_OP_DELETE, 0, "**/*.lock"},
                              {CSN_OP_READ, 0, "dir"},
                              {CSN_OP_READ, 1, "dir/file"},
                              {CSN_OP_EXEC, 0, "curl"}};

    (void)state;
    put_file(rm.fx.fd, "x.lock", "locked");
    put_file(rm.fx.fd, "dir/other", "x");
    rm.config.rules = rules;
    rm.config.rule_count = 4;
    room_again(&rm);
    assert_int_equal(read_st("/x.lock"), CSN_OK);
    assert_int_equal(room_write(&rm, "/x.lock", "x", 0), CSN_DENIED);
    assert_int_equal(csn_runtime_remove(&rm.l, "/x.lock", 0, NULL), CSN_DENIED);
    assert_int_equal(read_st("/dir/other"), CSN_DENIED);
    assert_int_equal(read_st("/dir/file"), CSN_OK);
    /* moving it away to read it there is no way round */
    csn_error *err = NULL;
    assert_int_equal(csn_runtime_rename(&rm.l, "/dir/other", "/mine", 0, &err), CSN_DENIED);
    assert_string_equal(csn_error_denial(err)->op, "read");
    csn_error_free(err);
    assert_int_equal(csn_runtime_rename(&rm.l, "/dir", "/mine", 0, NULL), CSN_DENIED);
    assert_int_equal(room_write(&rm, "/dir/other", "x", 0), CSN_OK);
    rm.config.rules = NULL;
    rm.config.rule_count = 0;
}

static void rules_hold_after_the_base_was_moved(void **state)
{
    (void)state;
    with_deny(in_root("b/target"), NULL);
    assert_int_equal(renameat(rm.fx.top_fd, "root", rm.fx.top_fd, "elsewhere"), 0);
    assert_int_equal(read_st("/b/target"), CSN_DENIED);
    assert_int_equal(read_st("/target"), CSN_OK);
    assert_int_equal(room_write(&rm, "/b/other", "x", 0), CSN_OK);
    assert_int_equal(renameat(rm.fx.top_fd, "elsewhere", rm.fx.top_fd, "root"), 0);
}

static void judge_answers_without_doing(void **state)
{
    char *resolved = NULL;
    room_print before;

    (void)state;
    with_deny(in_root("b/target"), NULL);
    before = room_fingerprint(&rm);
    assert_int_equal(csn_runtime_check_path(&rm.l, CSN_OP_WRITE, "/u/v/w", &resolved, NULL),
                     CSN_OK);
    assert_string_equal(resolved, in_root("u/v/w"));
    free(resolved);
    assert_int_equal(csn_runtime_check_path(&rm.l, CSN_OP_READ, "/link", &resolved, NULL),
                     CSN_OK);
    assert_string_equal(resolved, in_root("target"));
    free(resolved);
    assert_int_equal(csn_runtime_check_path(&rm.l, CSN_OP_DELETE, "/link", &resolved, NULL),
                     CSN_OK);
    assert_string_equal(resolved, in_root("link"));
    free(resolved);
    assert_int_equal(csn_runtime_check_path(&rm.l, CSN_OP_READ, "/b/target", &resolved, NULL),
                     CSN_DENIED);
    assert_int_equal(csn_runtime_check_path(&rm.l, CSN_OP_READ, "/link_out", &resolved, NULL),
                     CSN_OUTSIDE);
    assert_true(before.sum == room_fingerprint(&rm).sum);
}

static csn_status cwd_of(const char *path, char **ret_path)
{
    int fd = -1;
    csn_status st = csn_runtime_open_cwd(&rm.l, path, &fd, ret_path, NULL);

    if (fd >= 0)
        close(fd);
    return st;
}

static void cwd_is_opened_inside_only(void **state)
{
    char *path = NULL;

    (void)state;
    with_deny(in_root("b"), NULL);
    assert_int_equal(cwd_of("/dirlink", &path), CSN_OK);
    char *real = realpath(in_root("dirlink"), NULL);
    assert_string_equal(path, real); /* where it leads, and not what it was called */
    free(real);
    free(path);
    assert_int_equal(cwd_of("/target", &path), CSN_WRONG_TYPE);
    assert_int_equal(cwd_of("/link_up", &path), CSN_OUTSIDE);
    assert_int_equal(cwd_of("/b/d", &path), CSN_DENIED);
    assert_int_equal(cwd_of("/nope", &path), CSN_NOT_FOUND);
}

static void watch_hides_what_is_denied(void **state)
{
    static csn_event e;
    void *w = NULL;

    (void)state;
    put_file(rm.fx.fd, "dir/secret", "");
    with_deny(in_root("dir/secret"), NULL);
    assert_int_equal(csn_runtime_watch(&rm.l, "/", CSN_FILE_RECURSIVE, &w, NULL), CSN_OK);
    put_file(rm.fx.fd, "dir/secret", "");
    put_file(rm.fx.fd, "dir/plain", "");
    assert_int_equal(csn_runtime_watch_next(w, 2000, &e, NULL), CSN_OK);
    assert_string_equal(e.path, "dir/plain");
    assert_int_equal(e.kind, CSN_EVENT_CREATE);
    assert_int_equal(csn_runtime_watch_next(w, 10, &e, NULL), CSN_TIMEOUT);
    csn_runtime_watch_free(w);
    csn_runtime_watch_free(NULL);
}

static int setup(void **state)
{
    (void)state;
    room_make(&rm);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    room_clean(&rm);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bad_grants_are_named),
        T(home_is_private_when_none_is_given),
        T(paths_name_grants_by_what_the_caller_called_them),
        T(tilde_in_lists_is_the_callers_home),
        T(root_directory_as_base_has_no_outside),
        T(read_grant_is_read_only),
        T(denied_file_is_refused_by_every_name),
        T(denied_path_that_is_not_there_yet_cannot_be_made),
        T(denied_path_that_is_missing_is_refused_by_name),
        T(tree_with_a_denied_path_is_not_removed_or_moved),
        T(walk_hides_and_list_shows_what_is_denied),
        T(rules_speak_of_single_operations),
        T(rules_hold_after_the_base_was_moved),
        T(judge_answers_without_doing),
        T(cwd_is_opened_inside_only),
        T(watch_hides_what_is_denied),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
