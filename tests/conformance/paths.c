/* paths.c: hostile paths. The corpus of shapes (dots, slashes, links, loops, magic links, odd
 * names) with what a file API that is held below a directory must answer, run through every
 * operation; what is outside stays untouched. */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define STATUS_ANY ((csn_status)1) /* refused, how is open */

/* What read says; for a directory that is WRONG_TYPE, so OK here means a file. */
typedef struct pcase {
    const char *id, *path;
    csn_status want;
} pcase;

#define DIR_  CSN_WRONG_TYPE /* there, but a directory or another thing that is not read */
#define NODIR CSN_WRONG_TYPE /* a file used as a directory */

static const pcase cases[] = {
    {"P01", "target", CSN_OK},
    {"P02", "a/b/c/target", CSN_OK},
    {"P03", "", CSN_INVALID},
    {"P04", ".", DIR_},
    {"P05", "./a/./b/./c/./target", CSN_OK},
    {"P06", "a//b///c/target", CSN_OK},
    {"P07", "target/", NODIR},
    {"P08", "dir/", DIR_},
    {"P09", "target/.", NODIR},
    {"P10", "target/..", NODIR},
    {"P11", "target/x", NODIR},
    {"P12", "nope", CSN_NOT_FOUND},
    {"P13", "nope/x", CSN_NOT_FOUND},
    {"P14", "nope/../target", CSN_NOT_FOUND},
    {"P15", "..", CSN_OUTSIDE},
    {"P16", "../", CSN_OUTSIDE},
    {"P17", "../outside/canary", CSN_OUTSIDE},
    {"P18", "a/../../outside/canary", CSN_OUTSIDE},
    {"P19", "a/b/../../../root/target", CSN_OUTSIDE},
    {"P20", "../root/target", CSN_OUTSIDE},
    {"P21", "a/../a/b/../../a/b/c/target", CSN_OK},
    {"P22", "../../../../../../../../../../../../etc/passwd", CSN_OUTSIDE},
    {"P23", "/etc/passwd", CSN_OK}, /* the sandbox's own, see below */
    {"P25", "//etc/passwd", CSN_OK},
    {"P26", "/", DIR_},
    {"P27", "/..", CSN_OUTSIDE},
    {"P28", "...", CSN_OK},
    {"P29", "..foo", CSN_OK},
    {"P30", "foo..", CSN_OK},
    {"P31", "%2e%2e", CSN_OK},
    {"P32", "%2e%2e/outside", NODIR},
    {"P33", "..\\outside", CSN_NOT_FOUND},
    {"P34", "back\\slash", CSN_OK},
    {"P35", "link", CSN_OK},
    {"P36", "link/", NODIR},
    {"P37", "link_abs", CSN_OUTSIDE},
    {"P38", "link_abs_in", CSN_OUTSIDE},
    {"P39", "link_up", CSN_OUTSIDE},
    {"P40", "link_out", CSN_OUTSIDE},
    {"P41", "link_out_abs", CSN_OUTSIDE},
    {"P42", "link_etc/shadow", CSN_OUTSIDE},
    {"P43", "link_passwd", CSN_OUTSIDE},
    {"P44", "dir/link_up2", CSN_OUTSIDE},
    {"P45", "dir/link_up_ok", CSN_OK},
    {"P46", "chain1", CSN_OUTSIDE},
    {"P47", "clink", CSN_OK},
    {"P48", "esc", CSN_OUTSIDE},
    {"P49", "alink/../target", CSN_OK},
    {"P50", "enddot/target", CSN_OK},
    {"P51", "dirlink/file", CSN_OK},
    {"P52", "dirlink_out/file", CSN_OUTSIDE},
    {"P53", "dangling", CSN_NOT_FOUND},
    {"P54", "dangling_deep", CSN_NOT_FOUND},
    {"P55", "dangling_out", CSN_OUTSIDE},
    {"P56", "loop", STATUS_ANY},
    {"P57", "loopa", STATUS_ANY},
    {"P58", "looproot", CSN_OUTSIDE},
    {"P59", "s2", CSN_OK},
    {"P60", "s0", STATUS_ANY},
    {"P61", "ddd", CSN_OUTSIDE},
    {"P62", "absdd", CSN_OUTSIDE},
    {"P63", "linkempty_slash", NODIR},
    {"P64", "m_procroot", CSN_OUTSIDE},
    {"P65", "m_cwd", CSN_OUTSIDE},
    {"P66", "m_fd", CSN_OUTSIDE},
    {"P67", "m_procfd", CSN_OUTSIDE},
    {"P68", "/proc/self/root/etc/passwd", CSN_NOT_FOUND},
    {"P69", "/dev/fd/0", CSN_NOT_FOUND},
    {"P72", "new\nline", CSN_OK},
    {"P73", "tab\tname", CSN_OK},
    {"P74", "non\xffutf8", CSN_OK},
    {"P75", " lead", CSN_OK},
    {"P76", "trail ", CSN_OK},
    {"P77", "-dash", CSN_OK},
    {"P78", "~", DIR_}, /* the home */
    {"P79", "*", CSN_OK},
    {"P80", "caf\xc3\xa9", CSN_OK},
    {"P81", "cafe\xcc\x81", CSN_OK},
    {"P82", "\xe2\x80\xaegnp.exe", CSN_OK},
    {"P88", "empty", CSN_OK},
    {"P89", "fifo", DIR_},
    {"P90", "link_fifo", DIR_},
    {"P91", "sock", DIR_},
    {"P93", "link_null", CSN_OUTSIDE},
    {"P94", "link_tty", CSN_OUTSIDE},
    {"P95", "hard", CSN_OK},
    {"P97", "dir", DIR_},
    {"P98", "dd/outside", CSN_OUTSIDE},
    {"P99", "a/b/c/../../../target", CSN_OK},
    {"P100", "b/../alink/target", CSN_OK},
    {"P101", "dirlink_out/", CSN_OUTSIDE},
    {"P102", "a/../target", CSN_OK},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void put(csn_fx *f, const char *rel)
{
    csn_test_put(csn_fx_host(f, rel), "inside", 6);
}

static void dir(csn_fx *f, const char *rel)
{
    csn_test_mkdir(csn_fx_host(f, rel));
}

static void lnk(csn_fx *f, const char *target, const char *rel)
{
    assert_int_equal(symlink(target, csn_fx_host(f, rel)), 0);
}

static void make_files(csn_fx *f)
{
    static const char *const dirs[] = {"a", "a/b", "a/b/c", "dir", "b", "b/x", "etc"};
    static const char *const files[] = {"target",      "a/b/c/target", "...",
                                        "..foo",       "foo..",        "%2e%2e",
                                        "back\\slash", "b/target",     "b/x/target",
                                        "dir/file",    "etc/passwd",   "new\nline",
                                        "tab\tname",   "non\xffutf8",  " lead",
                                        "trail ",      "-dash",        "*",
                                        "caf\xc3\xa9", "cafe\xcc\x81", "\xe2\x80\xaegnp.exe",
                                        "empty"};

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        dir(f, dirs[i]);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        put(f, files[i]);
}

static void make_links(csn_fx *f)
{
    const char *const links[][2] = {
        {"target", "link"},
        {csn_fx_host(f, "target"), "link_abs"},
        {"/target", "link_abs_in"},
        {"..", "link_up"},
        {"../outside/canary", "link_out"},
        {csn_fx_keep(f, csn_test_join(f->outside, "canary")), "link_out_abs"},
        {"/etc", "link_etc"},
        {"/etc/passwd", "link_passwd"},
        {"../../", "dir/link_up2"},
        {"../target", "dir/link_up_ok"},
        {"chain2", "chain1"},
        {"dir/../link_out", "chain2"},
        {"c1", "clink"},
        {"dir/../c2", "c1"},
        {"a/b/../../c3", "c2"},
        {"./target", "c3"},
        {"a/../../root/a/b/c/target", "esc"},
        {"b/x", "alink"},
        {"a/b/c/.", "enddot"},
        {"dir/", "dirlink"},
        {"../root/dir", "dirlink_out"},
        {"nope", "dangling"},
        {"nope/x/y", "dangling_deep"},
        {"../nope", "dangling_out"},
        {"loop", "loop"},
        {"loopb", "loopa"},
        {"loopa", "loopb"},
        {"/looproot", "looproot"},
        {"../../../../../../../etc/passwd", "ddd"},
        {"/../../../etc/passwd", "absdd"},
        {"target/", "linkempty_slash"},
        {"/proc/self/root/etc/passwd", "m_procroot"},
        {"/proc/self/cwd", "m_cwd"},
        {"/dev/fd/0", "m_fd"},
        {"/proc/self/fd/0", "m_procfd"},
        {"fifo", "link_fifo"},
        {"/dev/null", "link_null"},
        {"/dev/tty", "link_tty"},
        {"..", "dd"},
        {"target", "s41"},
    };

    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
        lnk(f, links[i][0], links[i][1]);
    for (int i = 40; i >= 0; i--) {
        char to[8], from[8];
        snprintf(to, sizeof(to), "s%d", i + 1);
        snprintf(from, sizeof(from), "s%d", i);
        lnk(f, to, from);
    }
}

static void make_corpus(csn_fx *f)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    make_files(f);
    assert_int_equal(mkfifo(csn_fx_host(f, "fifo"), 0600), 0);
    assert_int_equal(chdir(f->ws), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
    assert_int_equal(
        link(csn_fx_keep(f, csn_test_join(f->outside, "canary")), csn_fx_host(f, "hard")), 0);
    make_links(f);
}

static bool fits(csn_status want, csn_status st)
{
    return want == STATUS_ANY ? st != CSN_OK && st != CSN_INTERNAL : st == want;
}

static void check(const pcase *c, const char *op, csn_status want, csn_status st)
{
    if (fits(want, st))
        return;
    print_message("%s %s '%s': gave %s, wanted %s: %s\n", c->id, op, c->path,
                  csn_status_name(st), want == STATUS_ANY ? "a refusal" : csn_status_name(want),
                  csn_conf_err ? csn_error_message(csn_conf_err) : "");
    fail();
}

/* P01-P102 */
static void read_answers_the_whole_corpus(csn_fx *f)
{
    unsigned bad = 0;

    make_corpus(f);
    for (size_t i = 0; i < CASES; i++) {
        const pcase *c = &cases[i];
        csn_read_result *r = NULL;

        csn_conf_reset();
        csn_status st = csn_read(f->sb, c->path, NULL, &r, E);
        if (!fits(c->want, st)) {
            print_message("%s '%s': gave %s, wanted %s: %s\n", c->id, c->path,
                          csn_status_name(st),
                          c->want == STATUS_ANY ? "a refusal" : csn_status_name(c->want),
                          csn_conf_err ? csn_error_message(csn_conf_err) : "");
            bad++;
        }
        if (st == CSN_OUTSIDE &&
            !strstr(csn_error_message(csn_conf_err), "path outside base directory")) {
            print_message("%s says: %s\n", c->id, csn_error_message(csn_conf_err));
            bad++;
        }
        if (st == CSN_OK && strcmp(c->id, "P95") != 0 && strcmp(r->content, "inside") != 0) {
            print_message("%s read: %.40s\n", c->id, r->content);
            bad++;
        }
        csn_read_result_free(r);
    }
    assert_int_equal(bad, 0);
}

/* Where read is refused because the path leaves, every operation is, and nothing happens. */
static void every_operation_refuses_to_leave(csn_fx *f)
{
    csn_edit_item edit = {.old_string = "outside", .new_string = "x"};

    make_corpus(f);
    for (size_t i = 0; i < CASES; i++) {
        const pcase *c = &cases[i];
        char *below = csn_fx_keep(f, csn_test_format("%s/evil", c->path));
        csn_file_list *l = NULL;
        csn_watch *w = NULL;
        csn_exec_result *x = NULL;
        csn_grep_result *g = NULL;
        csn_file_content many = {.path = below, .data = "x", .len = 1};

        if (c->want != CSN_OUTSIDE)
            continue;
#define REFUSED(op, ...)                                                                       \
    csn_conf_reset();                                                                          \
    check(c, op, STATUS_ANY, __VA_ARGS__)
        REFUSED("stat", csn_stat(f->sb, c->path, 0, &l, E));
        REFUSED("list", csn_list(f->sb, c->path, 0, &l, E));
        REFUSED("glob", csn_glob(f->sb, "*", c->path, 0, &l, E));
        REFUSED("grep",
                csn_grep(f->sb, "outside", CSN_OPTS(csn_grep_opts, .path = c->path), &g, E));
        REFUSED("write", csn_write(f->sb, c->path, "evil", 4, NULL, NULL, E));
        REFUSED("append",
                csn_write(f->sb, c->path, "evil", 4,
                          CSN_OPTS(csn_write_opts, .flags = CSN_FILE_APPEND), NULL, E));
        REFUSED("write below", csn_write(f->sb, below, "evil", 4, NULL, NULL, E));
        REFUSED("write_many", csn_write_many(f->sb, &many, 1, 0, E));
        REFUSED("edit", csn_edit(f->sb, c->path, &edit, 1, 0, NULL, E));
        REFUSED("mkdir below", csn_mkdir(f->sb, below, 0, E));
        REFUSED("delete below", csn_delete(f->sb, below, CSN_FILE_RECURSIVE, E));
        REFUSED("rename to below", csn_rename(f->sb, "target", below, 0, E));
        REFUSED("rename from below", csn_rename(f->sb, below, "got", 0, E));
        REFUSED("watch", csn_watch_open(f->sb, c->path, 0, &w, E));
        REFUSED("workdir", csn_set_workdir(f->sb, c->path, E));
        REFUSED("cwd", csn_sh(f->sb, "true", EXEC(.cwd = c->path), &x, E));
        REFUSED("export", csn_export(f->sb, c->path, csn_fx_keep(f, csn_test_join(f->dir, "o")),
                                     NULL, E));
        REFUSED("import", csn_import(f->sb, csn_fx_host(f, "dir"), below, NULL, E));
#undef REFUSED
    }
    assert_true(csn_test_exists(csn_fx_host(f, "target")));
    assert_false(csn_test_exists(csn_fx_keep(f, csn_test_join(f->dir, "nope"))));
    assert_false(csn_test_exists(csn_fx_keep(f, csn_test_join(f->dir, "evil"))));
    csn_fx_canary(f);
}

/* S1: TestLocalSandbox_PathTraversal */
static void traversal_says_outside_base_directory(csn_fx *f)
{
    fails(CSN_OUTSIDE, csn_write(f->sb, "../outside.txt", "malicious", 9, NULL, NULL, E));
    says("outside base directory");
    assert_non_null(csn_error_denial(csn_conf_err));
    assert_string_equal(csn_error_denial(csn_conf_err)->op, "write");
    fails(CSN_NOT_FOUND, /* there is no a to climb from */
          csn_write(f->sb, "a/b/../../../x/y", "m", 1, NULL, NULL, E));
    assert_false(csn_test_exists(csn_fx_keep(f, csn_test_join(f->dir, "outside.txt"))));
    assert_int_equal(csn_fx_strays(f, NULL), 0); /* not even a parent */
    csn_fx_run(f, "mkdir -p a/b");
    fails(CSN_OUTSIDE, csn_write(f->sb, "a/b/../../../x/y", "m", 1, NULL, NULL, E));
}

/* S1: TestLocalSandbox_SymlinkEscape, and the sibling that a prefix test accepts */
static void symlink_escape_is_refused(csn_fx *f)
{
    char *evil = csn_fx_keep(f, csn_test_format("%s-evil", f->ws));
    csn_read_result *r = NULL;

    csn_test_mkdir(evil);
    csn_test_put(csn_fx_keep(f, csn_test_join(evil, "secret")), "s", 1);
    lnk(f, evil, "sibling");
    lnk(f, f->outside, "dir_out");
    lnk(f, "/", "rootlink");
    fails(CSN_OUTSIDE, csn_read(f->sb, "sibling/secret", NULL, &r, E));
    says("outside base directory");
    fails(CSN_OUTSIDE, csn_read(f->sb, "dir_out/canary", NULL, &r, E));
    fails(CSN_OUTSIDE, csn_write(f->sb, "dir_out/new/deep", "x", 1, NULL, NULL, E));
    fails(CSN_OUTSIDE, csn_write(f->sb, "rootlink/tmp/csn-evil", "x", 1, NULL, NULL, E));
    fails(CSN_OUTSIDE, csn_mkdir(f->sb, "dir_out/d", 0, E));
    fails(CSN_OUTSIDE, csn_delete(f->sb, "dir_out/canary", 0, E));
    csn_fx_canary(f);
}

/* S0: "write and read file": /test.txt is the agent's, not the host's root */
static void slash_is_the_root_of_the_sandbox(csn_fx *f)
{
    csn_fx_put(f, "/test.txt", "hello world");
    csn_fx_holds(f, "test.txt", "hello world");
    assert_true(csn_test_exists(csn_fx_host(f, "test.txt")));
    csn_fx_put(f, "/deep/er/x", "y");
    csn_fx_holds(f, "deep/er/x", "y");
    csn_fx_run(f, "mkdir w");
    ok(csn_set_workdir(f->sb, "w", E));
    csn_fx_holds(f, "/test.txt", "hello world"); /* not of the working directory */
}

/* P24: an absolute host path below the base names itself */
static void host_path_below_the_base_names_itself(csn_fx *f)
{
    char *path = csn_fx_host(f, "d/file");

    csn_fx_put(f, path, "x");
    csn_fx_holds(f, "d/file", "x");
    AUTO(csn_file_list, l);
    ok(csn_list(f->sb, f->ws, 0, &l, E));
    assert_int_equal(l->count, 1);
    /* a prefix of the name is not a prefix of the path */
    char *evil = csn_fx_keep(f, csn_test_format("%s-evil/x", f->ws));
    csn_read_result *r = NULL;
    fails(CSN_NOT_FOUND, csn_read(f->sb, evil, NULL, &r, E));
}

/* D06 */
static void base_that_is_replaced_stays_the_held_one(csn_fx *f)
{
    char *moved = csn_fx_keep(f, csn_test_format("%s.moved", f->ws));

    csn_fx_put(f, "file", "held");
    assert_int_equal(rename(f->ws, moved), 0);
    assert_int_equal(symlink(f->outside, f->ws), 0);
    csn_fx_holds(f, "file", "held");
    csn_fx_put(f, "new", "x");
    csn_fx_canary(f);
    assert_true(csn_test_exists(csn_fx_keep(f, csn_test_join(moved, "new"))));
    unlink(f->ws);
    assert_int_equal(rename(moved, f->ws), 0);
}

/* P85-P87 */
static void deep_and_long_paths(csn_fx *f)
{
    char *dots = csn_fx_fill(f, 4086), *over = csn_fx_fill(f, 4106),
         *deep = csn_fx_fill(f, 1204);

    csn_fx_put(f, "target", "inside");
    for (size_t i = 0; i < 4080; i += 2)
        memcpy(dots + i, "./", 2);
    memcpy(dots + 4080, "target", 7);
    csn_fx_holds(f, dots, "inside");
    for (size_t i = 0; i < 4100; i += 2)
        memcpy(over + i, "./", 2);
    memcpy(over + 4100, "target", 7);
    csn_read_result *r = NULL;
    fails(CSN_INVALID, csn_read(f->sb, over, NULL, &r, E));
    for (size_t i = 0; i < 1200; i += 2)
        memcpy(deep + i, "n/", 2);
    memcpy(deep + 1200, "leaf", 5);
    csn_fx_put(f, deep, "deep");
    csn_fx_holds(f, deep, "deep");
    AUTO(csn_file_list, l);
    ok(csn_glob(f->sb, "**/leaf", NULL, 0, &l, E));
    assert_int_equal(l->count, 1);
}

/* Paths work the same whatever the backend: these shapes need no containment. */
static void plain_shapes_mean_the_same_file(csn_fx *f)
{
    static const char *const same[] = {"d/e/f",      "./d/e/f",      "d//e///f", "d/./e/./f",
                                       "d/e/../e/f", "./d/../d/e/f", "ld/f",     "ld/../e/f"};
    csn_read_result *r = NULL;

    csn_fx_run(f, "mkdir -p d/e && printf x > d/e/f && ln -s d/e ld");
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        csn_fx_holds(f, same[i], "x");
    fails(CSN_NOT_FOUND, csn_read(f->sb, "nope/../d/e/f", NULL, &r, E)); /* P14 */
    csn_conf_reset();
    assert_int_not_equal(csn_read(f->sb, "d/e/f/", NULL, &r, E), CSN_OK); /* P07 */
    csn_conf_reset();
    assert_int_not_equal(csn_read(f->sb, "d/e/f/..", NULL, &r, E), CSN_OK); /* P10 */
}

static void tilde_is_the_home_only_alone_or_before_a_slash(csn_fx *f)
{
    csn_fx_put(f, "~other", "plain");
    csn_fx_put(f, "a~", "plain");
    csn_fx_put(f, "./~", "plain");
    csn_fx_holds(f, "~other", "plain");
    csn_fx_run(f, "test -f ./~other && test -f a~ && test -f ./~");
    ok(csn_delete(f->sb, "./~", 0, E));
}

const csn_conf_test csn_conf_paths[] = {
    T_TRAIT(read_answers_the_whole_corpus, CONF_BENEATH),
    T_TRAIT(every_operation_refuses_to_leave, CONF_BENEATH),
    T_TRAIT(traversal_says_outside_base_directory, CONF_BENEATH),
    T_TRAIT(symlink_escape_is_refused, CONF_BENEATH),
    T_TRAIT(slash_is_the_root_of_the_sandbox, CONF_BENEATH),
    T_TRAIT(host_path_below_the_base_names_itself, CONF_BENEATH | CONF_HOSTDIR),
    T_TRAIT(base_that_is_replaced_stays_the_held_one, CONF_BENEATH | CONF_HOSTDIR),
    T_TRAIT(deep_and_long_paths, CONF_BENEATH),
    T(plain_shapes_mean_the_same_file),
    T(tilde_is_the_home_only_alone_or_before_a_slash),
    T_END,
};
