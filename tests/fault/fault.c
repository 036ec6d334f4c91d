/* fault.c: every verb with every allocation failing once.
 *
 * For each verb: prepare, let the nth allocation fail, call, check; n from 1 until the call
 * goes through without meeting the failure. Then again with the nth and all later ones failing.
 * What must hold each time: the answer is CSN_OK or CSN_NOMEM, an error object agrees with it,
 * results are untouched after a failure, no descriptor is left, files hold their old or their
 * new content, and the sandbox works on. Leaks are the sanitizer's to find: build with
 * -Db_sanitize=address,undefined. Each verb runs in a child (child.h), so that a crash is one
 * failure. The keeper is another program and keeps its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caisson/caisson.h"
#include "child.h"
#include "fault/alloc.h"
#include "runtime/link.h"
#include "support/support.h"

#define NTH_MAX 20000 /* no verb allocates this often */

typedef struct verb verb;

typedef struct room {
    const verb *v;
    char *ws, *host;
    csn_sandbox *sb;
} room;

struct verb {
    const char *name;
    void (*prepare)(room *r);                     /* without failures; NULL: nothing */
    csn_status (*call)(room *r, csn_error **err); /* allocates nothing of its own */
    const char *content; /* of `file` afterwards, if not "old"; NULL: not looked at */
    bool keeps_fds;      /* it may leave descriptors open (until close) */
};

#define MARK      ((void *)(uintptr_t)16) /* what a result must still be after a failure */
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Frees a result of a call that went through; otherwise it must be untouched. */
#define DONE(st, ret, free_fn)                                                                 \
    do {                                                                                       \
        if ((st) == CSN_OK)                                                                    \
            free_fn(ret);                                                                      \
        else                                                                                   \
            must((void *)(ret) == MARK, "a result that is untouched after a failure");         \
        return st;                                                                             \
    } while (0)

/* Within a call, where cmocka's jump would leave the allocator armed. */
static void must(bool good, const char *what)
{
    if (good)
        return;
    (void)csn_alloc_disarm();
    print_message("wanted: %s\n", what);
    fail();
}

/* ---- the verbs ---- */

static csn_config config_of(const room *r)
{
    return (csn_config){.size = sizeof(csn_config), .backend = "local", .workspace = r->ws};
}

static csn_status do_open(room *r, csn_error **err)
{
    csn_sandbox *sb = MARK;
    csn_config c = config_of(r);
    csn_rule rule = {.ops = CSN_OP_READ | CSN_RULE_FILES, .path = "/nowhere/**/*.pem"};

    c.deny_missing_ok = ARGV("/nowhere/secret");
    c.rules = &rule;
    c.rule_count = 1;
    c.env = ARGV("PATH", "A=b");
    c.commands = ARGV("echo", "cat");
    csn_status st = csn_open(&c, &sb, err);
    DONE(st, sb, csn_close);
}

static csn_status do_exec(room *r, csn_error **err)
{
    csn_exec_result *x = MARK;
    csn_status st =
        csn_exec(r->sb, ARGV("echo", "hello"),
                 CSN_OPTS(csn_exec_opts, .env = ARGV("A=b", "HOME=/x"), .cwd = "sub"), &x, err);

    if (st == CSN_OK)
        must(x->exit_code == 0 && strcmp(x->out.data, "hello\n") == 0,
             "all output, or an error");
    DONE(st, x, csn_exec_result_free);
}

static csn_status do_sh(room *r, csn_error **err)
{
    csn_exec_result *x = MARK;
    csn_status st = csn_sh(r->sb, "cat; yes | head -c 300000; echo err >&2",
                           CSN_OPTS(csn_exec_opts, .stdin_data = "in", .stdin_len = 2,
                                    .flags = CSN_EXEC_KEEP_BOTH, .output_max = 100000),
                           &x, err);

    DONE(st, x, csn_exec_result_free);
}

static csn_status do_session(room *r, csn_error **err)
{
    csn_exec_result *x = MARK;
    csn_status st =
        csn_sh(r->sb, "V=1; echo $V", CSN_OPTS(csn_exec_opts, .session = "s"), &x, err);

    DONE(st, x, csn_exec_result_free);
}

static csn_status do_start(room *r, csn_error **err)
{
    csn_process *p = MARK;
    csn_status st = csn_start_sh(r->sb, "echo x", NULL, &p, err);

    DONE(st, p, csn_process_free);
}

static csn_status do_processes(room *r, csn_error **err)
{
    csn_process_list *l = MARK;
    csn_status st = csn_processes(r->sb, &l, err);

    DONE(st, l, csn_process_list_free);
}

static void one_process(room *r)
{
    csn_process *p = NULL;
    csn_process_list *l = NULL;

    assert_int_equal(csn_start_sh(r->sb, "echo logged", NULL, &p, NULL), CSN_OK);
    assert_int_equal(csn_process_wait(p, 60000, &l, NULL), CSN_OK);
    csn_process_list_free(l);
    csn_process_free(p);
}

static csn_status do_logs(room *r, csn_error **err)
{
    csn_process_list *l = NULL;
    csn_process *p = NULL;
    csn_log_chunk *c = MARK;

    csn_status st = csn_processes(r->sb, &l, err);
    if (st == CSN_OK)
        st = csn_process_open(r->sb, l->items[0].pid, &p, err);
    if (st == CSN_OK)
        st = csn_process_logs(p, CSN_STDOUT, 0, 1000, &c, err);
    csn_process_free(p);
    csn_process_list_free(l);
    DONE(st, c, csn_log_chunk_free);
}

static csn_status do_read(room *r, csn_error **err)
{
    csn_read_result *x = MARK;
    csn_status st = csn_read(r->sb, "text",
                             CSN_OPTS(csn_read_opts, .flags = CSN_FILE_NUMBERS | CSN_FILE_HASH,
                                      .limit = CSN_LINES_DEFAULT),
                             &x, err);

    DONE(st, x, csn_read_result_free);
}

static csn_status do_read_image(room *r, csn_error **err)
{
    csn_read_result *x = MARK;
    csn_status st = csn_read(r->sb, "image.png", NULL, &x, err);

    DONE(st, x, csn_read_result_free);
}

static int drop(void *ctx, const void *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
    return 0;
}

static csn_status do_read_bytes(room *r, csn_error **err)
{
    return csn_read_bytes(r->sb, "text", NULL, drop, NULL, err);
}

static void put_old(room *r)
{
    char *path = csn_test_join(r->ws, "file");

    csn_test_put(path, "old", 3);
    free(path);
}

static csn_status do_write(room *r, csn_error **err)
{
    csn_write_result *w = MARK;
    csn_status st = csn_write(r->sb, "file", "new", 3, NULL, &w, err);

    DONE(st, w, csn_write_result_free);
}

static csn_status do_append(room *r, csn_error **err)
{
    csn_write_result *w = MARK;
    csn_status st = csn_write(r->sb, "file", "+", 1,
                              CSN_OPTS(csn_write_opts, .flags = CSN_FILE_APPEND), &w, err);

    DONE(st, w, csn_write_result_free);
}

static csn_status do_write_many(room *r, csn_error **err)
{
    csn_file_content files[] = {{.path = "file", .data = "new", .len = 3},
                                {.path = "deep/er/file", .data = "new", .len = 3}};

    return csn_write_many(r->sb, files, 2, 0, err);
}

static csn_status do_edit(room *r, csn_error **err)
{
    csn_edit_result *e = MARK;
    csn_edit_item items[] = {{.old_string = "o", .new_string = "new"},
                             {.old_string = "newld", .new_string = "new"}};
    csn_status st = csn_edit(r->sb, "file", items, 2, 0, &e, err);

    DONE(st, e, csn_edit_result_free);
}

static csn_status do_stat(room *r, csn_error **err)
{
    csn_file_list *l = MARK;
    csn_status st = csn_stat(r->sb, "link", CSN_FILE_NOFOLLOW, &l, err);

    DONE(st, l, csn_file_list_free);
}

static csn_status do_list(room *r, csn_error **err)
{
    csn_file_list *l = MARK;
    csn_status st = csn_list(r->sb, ".", 0, &l, err);

    DONE(st, l, csn_file_list_free);
}

static csn_status do_glob(room *r, csn_error **err)
{
    csn_file_list *l = MARK;
    csn_status st = csn_glob(r->sb, "**/{file*,*.png}", NULL, 0, &l, err);

    DONE(st, l, csn_file_list_free);
}

static csn_status grep_with(room *r, const char *pattern, uint32_t flags, csn_error **err)
{
    csn_grep_result *g = MARK;
    csn_status st =
        csn_grep(r->sb, pattern,
                 CSN_OPTS(csn_grep_opts, .flags = flags, .context = 2, .glob = "*"), &g, err);

    DONE(st, g, csn_grep_result_free);
}

static csn_status do_grep(room *r, csn_error **err)
{
    return grep_with(r, "line 7", CSN_GREP_IGNORE_CASE, err);
}

static csn_status do_grep_regex(room *r, csn_error **err)
{
    return grep_with(r, "^line [0-9]7$", CSN_GREP_REGEX, err);
}

static csn_status do_mkdir(room *r, csn_error **err)
{
    return csn_mkdir(r->sb, "made/deep", 0, err);
}

static csn_status do_rename(room *r, csn_error **err)
{
    return csn_rename(r->sb, "file", "file", 0, err);
}

static void put_tree(room *r)
{
    char *cmd = csn_test_join(r->ws, "tree");

    csn_test_mkdir(cmd);
    char *file = csn_test_join(cmd, "file");
    csn_test_put(file, "x", 1);
    free(file);
    free(cmd);
}

/* A delete that fails half way has deleted half: the second try must not find what is gone. */
static csn_status do_delete(room *r, csn_error **err)
{
    return csn_delete(r->sb, "tree", CSN_FILE_RECURSIVE, err);
}

static csn_status do_info(room *r, csn_error **err)
{
    csn_info_result *i = MARK;
    csn_status st = csn_info(r->sb, &i, err);

    DONE(st, i, csn_info_free);
}

static csn_status do_would_allow(room *r, csn_error **err)
{
    csn_verdict *v = MARK;
    csn_status st = csn_would_allow(r->sb, CSN_OP_WRITE, "../outside", &v, err);

    DONE(st, v, csn_verdict_free);
}

static csn_status do_set_workdir(room *r, csn_error **err)
{
    return csn_set_workdir(r->sb, r->ws, err);
}

static csn_status do_export(room *r, csn_error **err)
{
    return csn_export(r->sb, "sub", r->host, NULL, err);
}

static csn_status do_import(room *r, csn_error **err)
{
    return csn_import(r->sb, r->host, "imported", NULL, err);
}

static csn_status do_watch(room *r, csn_error **err)
{
    csn_watch *w = MARK;
    csn_status st = csn_watch_open(r->sb, ".", CSN_FILE_RECURSIVE, &w, err);

    DONE(st, w, csn_watch_free);
}

static int drop_line(void *ctx, const char *line, size_t len)
{
    return drop(ctx, line, len);
}

static csn_status do_audit_read(room *r, csn_error **err)
{
    return csn_audit_read(csn_id(r->sb), drop_line, NULL, err);
}

static csn_status do_audit_verify(room *r, csn_error **err)
{
    csn_audit_report *a = MARK;
    csn_status st = csn_audit_verify(csn_id(r->sb), &a, err);

    /* lines that were made to fail while they were written are not in the log, and not missed
     */
    if (st == CSN_OK)
        must(a->ok, "a log whose chain holds");
    DONE(st, a, csn_audit_report_free);
}

static csn_status do_config(room *r, csn_error **err)
{
    static const char json[] =
        "{\"backend\":\"local\",\"read\":[\"/a\"],\"env\":{\"A\":\"b\"},\"commands\":[\"x\"],"
        "\"rules\":[{\"op\":[\"read\"],\"effect\":\"deny\",\"path\":\"/"
        "x\"}],\"timeout\":\"5s\"}";
    csn_config *c = MARK;

    (void)r;
    csn_status st = csn_config_parse(json, sizeof(json) - 1, "test", &c, err);
    DONE(st, c, csn_config_free);
}

static csn_status do_detached(room *r, csn_error **err)
{
    csn_sandbox *sb = MARK, *again = NULL;
    csn_sandbox_list *l = NULL;
    csn_config c = config_of(r);

    c.flags = CSN_OPEN_DETACHED;
    csn_status st = csn_open(&c, &sb, err);
    if (st != CSN_OK) {
        must(sb == MARK, "no sandbox after a failure");
        return st;
    }
    st = csn_connect(csn_id(sb), &again, err);
    if (st == CSN_OK)
        st = csn_sandboxes(&l, err);
    csn_sandbox_list_free(l);
    csn_close(again);
    (void)csn_alloc_disarm(); /* the end of it is cleaning up, not the test */
    must(csn_destroy(sb, NULL) == CSN_OK, "a sandbox that can be destroyed");
    csn_close(sb);
    return st;
}

static const verb verbs[] = {
    {"open", NULL, do_open, NULL, false},
    {"exec", NULL, do_exec, NULL, false},
    {"sh", NULL, do_sh, NULL, false},
    {"session", NULL, do_session, NULL, false},
    {"start", NULL, do_start, NULL, false},
    {"processes", NULL, do_processes, NULL, false},
    {"logs", one_process, do_logs, NULL, false},
    {"read", NULL, do_read, NULL, false},
    {"read_image", NULL, do_read_image, NULL, false},
    {"read_bytes", NULL, do_read_bytes, NULL, false},
    {"write", put_old, do_write, "new", false},
    {"append", put_old, do_append, "old+", false},
    {"write_many", put_old, do_write_many, "new", false},
    {"edit", put_old, do_edit, "new", false},
    {"stat", NULL, do_stat, NULL, false},
    {"list", NULL, do_list, NULL, false},
    {"glob", NULL, do_glob, NULL, false},
    {"grep", NULL, do_grep, NULL, false},
    {"grep_regex", NULL, do_grep_regex, NULL, false},
    {"mkdir", NULL, do_mkdir, NULL, false},
    {"rename", put_old, do_rename, "old", false},
    {"delete", put_tree, do_delete, NULL, false},
    {"info", NULL, do_info, NULL, false},
    {"would_allow", NULL, do_would_allow, NULL, false},
    {"set_workdir", NULL, do_set_workdir, NULL, false},
    {"export", NULL, do_export, NULL, false},
    {"import", NULL, do_import, NULL, false},
    {"watch", NULL, do_watch, NULL, false},
    {"audit_read", NULL, do_audit_read, NULL, false},
    {"audit_verify", NULL, do_audit_verify, NULL, false},
    {"config_parse", NULL, do_config, NULL, false},
    {"detached", NULL, do_detached, NULL, true},
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* ---- the room ---- */

static void room_files(room *r)
{
    char text[4096];
    size_t at = 0;
    char *sub = csn_test_join(r->ws, "sub"), *file = csn_test_join(sub, "file2");
    char *txt = csn_test_join(r->ws, "text"), *png = csn_test_join(r->ws, "image.png");
    char *lnk = csn_test_join(r->ws, "link");

    for (int i = 0; i < 100; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "line %d\n", i);
    csn_test_mkdir(sub);
    csn_test_put(file, "x", 1);
    csn_test_put(txt, text, at);
    csn_test_put(png, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    assert_int_equal(symlink("text", lnk), 0);
    free(lnk);
    free(png);
    free(txt);
    free(file);
    free(sub);
}

static void room_open(room *r)
{
    csn_config c = config_of(r);
    csn_error *err = NULL;

    if (csn_open(&c, &r->sb, &err) != CSN_OK)
        print_message("%s\n", csn_error_message(err));
    assert_non_null(r->sb);
    csn_exec_result *x = NULL; /* the keeper is there before anything fails */
    assert_int_equal(csn_sh(r->sb, "true", NULL, &x, NULL), CSN_OK);
    csn_exec_result_free(x);
}

static void still_works(room *r)
{
    csn_exec_result *x = NULL;
    csn_read_result *t = NULL;

    assert_int_equal(csn_sh(r->sb, "echo fine", NULL, &x, NULL), CSN_OK);
    assert_string_equal(x->out.data, "fine\n");
    assert_int_equal(csn_read(r->sb, "text", NULL, &t, NULL), CSN_OK);
    csn_exec_result_free(x);
    csn_read_result_free(t);
}

/* A file is old or new, never anything between. */
static void old_or_new(room *r, const char *new)
{
    char *path = csn_test_join(r->ws, "file"), *have = csn_test_get(path, NULL);

    assert_non_null(have);
    if (strcmp(have, "old") != 0)
        assert_string_equal(have, new);
    free(have);
    free(path);
}

static bool try_nth(room *r, const verb *v, unsigned long n, bool all)
{
    csn_error *err = NULL;
    size_t fds = csn_test_fd_count();

    if (v->prepare)
        v->prepare(r);
    csn_alloc_arm(n, all);
    csn_status st = v->call(r, &err);
    bool hit = csn_alloc_disarm();
    csn_status code = csn_error_code(err);
    bool good = st == code && (st == CSN_OK || (st == CSN_NOMEM && hit));
    if (!good)
        print_message("%s, allocation %lu%s: status %s, error %s: %s\n", v->name, n,
                      all ? " and all after" : "", csn_status_name(st), csn_status_name(code),
                      err ? csn_error_message(err) : "(none)");
    csn_error_free(err);
    assert_true(good);
    if (v->content)
        old_or_new(r, v->content);
    if (!v->keeps_fds && csn_test_fd_count() != fds)
        print_message("%s, allocation %lu: %zu descriptors, then %zu\n", v->name, n, fds,
                      csn_test_fd_count());
    if (!v->keeps_fds)
        assert_int_equal(csn_test_fd_count(), fds);
    return hit;
}

static void try_verb(void **state)
{
    room *r = *state;
    const verb *v = r->v;
    unsigned long n[2] = {1, 1};

    csn_test_mkdir(r->host);
    room_files(r);
    room_open(r);
    for (int all = 0; all < 2; all++) {
        while (n[all] < NTH_MAX && try_nth(r, v, n[all], all))
            n[all]++;
        assert_true(n[all] < NTH_MAX);
        still_works(r);
    }
    print_message("%s: %lu allocations\n", v->name, n[0] - 1);
    csn_close(r->sb);
}

typedef struct job {
    const verb *v;
    const char *dir;
} job;

static int child_body(void *ctx)
{
    job *j = ctx;
    room r = {
        .v = j->v, .ws = csn_test_join(j->dir, "ws"), .host = csn_test_join(j->dir, "host")};
    const struct CMUnitTest one = {j->v->name, try_verb, NULL, NULL, &r};

    csn_test_mkdir(r.ws);
    csn_keeper_path_set(getenv("CSN_TEST_KEEPER"));
    int failed = _cmocka_run_group_tests(j->v->name, &one, 1, NULL, NULL);
    free(r.ws);
    free(r.host);
    return failed ? 1 : 0;
}

/* ---- main ---- */

static void print_log(const char *path)
{
    char *log = csn_test_get(path, NULL);

    for (const char *p = log; p && *p;) {
        size_t n = strcspn(p, "\n");
        printf("#   %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
    free(log);
}

static bool run_verb(const verb *v, const char *base, unsigned number)
{
    /* static: the child's leak checker must still find them */
    static char *dir, *log, *state, *run;

    dir = csn_test_format("%s/%u", base, number);
    log = csn_test_join(dir, "log");
    state = csn_test_join(dir, "state");
    run = csn_test_join(dir, "run");
    job j = {.v = v, .dir = dir};

    csn_test_mkdir(dir);
    csn_test_mkdir(state);
    csn_test_mkdir(run);
    setenv("XDG_STATE_HOME", state, 1);
    setenv("XDG_RUNTIME_DIR", run, 1);
    int fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    csn_child_end end = csn_child_run(child_body, &j, fd, 600000);
    close(fd);
    bool alone = csn_child_orphans_end(60000);
    char *said = csn_test_get(log, NULL);
    bool odd = said && strstr(said, ": runtime error: "); /* a sanitizer that goes on */
    bool passed = end.exit_code == 0 && alone && !odd;
    free(said);
    if (!passed) {
        print_log(log);
        printf("#   exit %d, signal %d%s\n", end.exit_code, end.signal,
               end.hung ? ", hung" : "");
        csn_test_print_children();
        csn_test_kill_children();
    }
    printf("%sok %u - %s_survives_every_failed_allocation\n", passed ? "" : "not ", number,
           v->name);
    fflush(stdout);
    csn_test_remove(dir);
    free(run);
    free(state);
    free(log);
    free(dir);
    return passed;
}

int main(int argc, char **argv)
{
    static char *base;
    unsigned n = 0, failed = 0;

    base = csn_test_tmpdir();
    csn_child_adopt();
    printf("1..%zu\n", argc > 1 ? (size_t)1 : VERBS);
    for (size_t i = 0; i < VERBS; i++) {
        if (argc > 1 && strcmp(argv[1], verbs[i].name) != 0)
            continue;
        failed += !run_verb(&verbs[i], base, ++n);
    }
    csn_test_remove(base);
    free(base);
    return failed ? 1 : 0;
}
