/* layers_commit.c: what a commit decides, and what the base is afterwards. As root and as an
 * ordinary user. Interruptions: layers_commit_crash.c. */
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "commit_world.h"
#include "skip.h"

static commit_world cw;

static int setup(void **state)
{
    (void)state;
    commit_make(&cw);
    return 0;
}

static int setup_as_user(void **state)
{
    if (geteuid() == 0)
        must(setegid(WORLD_USER) == 0 && seteuid(WORLD_USER) == 0, "seteuid");
    return setup(state);
}

static int teardown(void **state)
{
    (void)state;
    commit_wipe(&cw);
    if (getuid() == 0)
        must(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    return 0;
}

static const csn_commit_item *item(const char *path)
{
    for (size_t i = 0; i < cw.plan.count; i++) {
        if (strcmp(cw.plan.v[i].change->path, path) == 0)
            return &cw.plan.v[i];
    }
    fail_msg("no item %s", path);
    return NULL;
}

static void base_is(const char *path, const char *text)
{
    char name[256], buf[4096];

    snprintf(name, sizeof(name), "base/%s", path);
    csn_autofd int fd = openat(cw.lw.top_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
    if (n < 0)
        fail_msg("%s is missing", path);
    buf[n < 0 ? 0 : n] = '\0';
    assert_string_equal(buf, text);
}

static struct stat base_stat(const char *path)
{
    char name[256];
    struct stat st;

    snprintf(name, sizeof(name), "base/%s", path);
    if (fstatat(cw.lw.top_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        fail_msg("%s is missing", path);
    return st;
}

static bool base_has(const char *path)
{
    return faccessat(cw.lw.stack.base, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- verdicts ---- */

typedef struct row {
    const char *name;
    const char *make[8]; /* base and layers, then the changes are listed */
    const char *host[8]; /* what the host does afterwards */
    const char *original;
    bool old; /* the base was taken before all of that: by time, everything changed */
    csn_conflict_rule rule;
    const char *path;
    csn_commit_verdict verdict;
    const char *why; /* a part of it */
    const char *merged;
} row;

#define C_APPLY    .verdict = CSN_COMMIT_APPLY
#define C_MERGE    .verdict = CSN_COMMIT_MERGE
#define C_SAME     .verdict = CSN_COMMIT_SAME
#define C_CONFLICT .verdict = CSN_COMMIT_CONFLICT
#define C_KEEP     .verdict = CSN_COMMIT_KEEP
#define C_BOTH     .make = {"base/f=host", "0/f=sandbox"}, .old = true, .path = "f"
#define C_LINES    .path = "f", .original = "1\n2\n3\n4\n5\n6\n7\n8\n"

static const row rows[] = {
    {"a file of the sandbox alone", {"0/f=x"}, .path = "f", C_APPLY},
    {"a change of the sandbox alone", {"base/f=a", "0/f=b"}, .path = "f", C_APPLY},
    {"a deletion of the sandbox alone", {"base/f=a", "0/f!"}, .path = "f", C_APPLY},
    {"a mode of the sandbox alone", {"base/f=a", "0/f=a", "0/f@755"}, .path = "f", C_APPLY},
    {"a link of the sandbox alone", {"base/l>a", "0/l>b"}, .path = "l", C_APPLY},
    {"the host did the same",
     {"base/f=a", "0/f=b"},
     {"base/f=b"},
     .old = true,
     .path = "f",
     C_SAME},
    {"the host made the same link", {"0/l>b"}, {"base/l>b"}, .path = "l", C_SAME},
    {"both deleted it", {"base/f=a", "0/f!"}, {"base/f!"}, .path = "f", C_SAME},
    {"both made the directory", {"0/d/"}, {"base/d/"}, .path = "d", C_SAME},
    {"both changed it, by time", C_BOTH, C_CONFLICT, .why = "original is not known"},
    {"decided for the host", C_BOTH, .rule = CSN_CONFLICT_HOST, C_KEEP, .why = "not known"},
    {"decided for the sandbox", C_BOTH, .rule = CSN_CONFLICT_SANDBOX, C_APPLY},
    {"the host rewrote the original", C_BOTH, .original = "host", C_APPLY},
    {"only the host changed it", C_BOTH, .original = "sandbox", C_SAME, .why = "only the host"},
    {"both added it", C_BOTH, .original = "-", C_CONFLICT, .why = "both added"},
    {"the host added another file",
     {"0/f=x"},
     {"base/f=y"},
     .path = "f",
     C_CONFLICT,
     .why = "host has added another"},
    {"the host added a directory",
     {"0/f=x"},
     {"base/f/g=y"},
     .path = "f",
     .rule = CSN_CONFLICT_SANDBOX,
     C_CONFLICT,
     .why = "directory"},
    {"the host added a link",
     {"0/f=x"},
     {"base/f>y"},
     .path = "f",
     C_CONFLICT,
     .why = "a link"},
    {"the host deleted it",
     {"base/f=a", "0/f=b"},
     {"base/f!"},
     .path = "f",
     C_CONFLICT,
     .why = "the host deleted it"},
    {"the host deleted it before the list",
     {"0/f=b"},
     .original = "a",
     .path = "f",
     C_CONFLICT,
     .why = "the host deleted it"},
    {"a deletion of what the host changed",
     {"base/f=b", "0/f!"},
     .original = "a",
     .path = "f",
     C_CONFLICT,
     .why = "sandbox deleted it"},
    {"a deletion, by time",
     {"base/f=b", "0/f!"},
     .old = true,
     .path = "f",
     C_CONFLICT,
     .why = "sandbox deleted it"},
    {"links to two places",
     {"base/l>a", "0/l>b"},
     {"base/l>c"},
     .old = true,
     .path = "l",
     C_CONFLICT,
     .why = "where the link points"},
    {"two modes",
     {"base/f=a", "0/f=a", "0/f@755", "base/f@600"},
     .original = "a",
     .path = "f",
     C_CONFLICT,
     .why = "both changed its mode"},
    {"a mode, and the host's content",
     {"base/f=b", "0/f=a", "0/f@755"},
     .original = "a",
     .path = "f",
     C_MERGE,
     .merged = "b"},
    {"a fifo", {"0/p|"}, .path = "p", C_KEEP, .why = "not committed"},
    {"set-id bits", {"0/f=x", "0/f@6755"}, .path = "f", C_APPLY, .why = "set-user-ID"},
    {"separate lines",
     {"base/f=one\n2\n3\n4\n5\n6\n7\n8\n", "0/f=1\n2\n3\n4\n5\n6\n7\n8!\n"},
     C_LINES,
     C_MERGE,
     .why = "merged",
     .merged = "one\n2\n3\n4\n5\n6\n7\n8!\n"},
    {"the same line",
     {"base/f=1\n2\nthree\n4\n5\n6\n7\n8\n", "0/f=1\n2\n3!\n4\n5\n6\n7\n8\n"},
     C_LINES,
     C_CONFLICT,
     .why = "1 place, the first at line 3"},
    {"a directory that the host filled",
     {"base/d/f=x", "0/d!"},
     {"base/d/new=y"},
     .path = "d",
     C_KEEP,
     .why = "files in it that are new"},
    {"a directory with a kept file",
     {"base/d/f=b", "0/d!"},
     .original = "a",
     .path = "d",
     C_KEEP,
     .why = "something in it stays"},
    {"a file for a filled directory",
     {"base/d/f=x", "0/d=file"},
     {"base/d/new=y"},
     .path = "d",
     .rule = CSN_CONFLICT_SANDBOX,
     C_CONFLICT,
     .why = "files in it that are new"},
    {"a file for a directory", {"base/d/f=x", "0/d=file"}, .path = "d", C_APPLY},
    {"a directory for a file", {"base/d=x", "0/d/f=y"}, .path = "d/f", C_APPLY},
    {"a parent that is a link",
     {"0/d/f=y"},
     {"base/x/", "base/d>x"},
     .path = "d/f",
     .rule = CSN_CONFLICT_SANDBOX,
     C_APPLY},
    {"a parent that the host keeps a link",
     {"0/d/f=y"},
     {"base/x/", "base/d>x"},
     .path = "d/f",
     .rule = CSN_CONFLICT_HOST,
     C_KEEP,
     .why = "symbolic link"},
    {"a parent that became a link",
     {"base/d/e=x", "0/d/f=y"},
     {"base/x/", "base/d>x"},
     .path = "d/f",
     .rule = CSN_CONFLICT_SANDBOX,
     C_CONFLICT,
     .why = "symbolic link"},
    {"a parent that became a file",
     {"base/d/e=x", "0/d/f=y"},
     {"base/d=file"},
     .path = "d/f",
     C_CONFLICT,
     .why = "no directory"},
};

static void verdict_of(const row *r)
{
    commit_put_all(&cw, r->make);
    commit_list(&cw);
    commit_put_all(&cw, r->host);
    cw.original = r->original;
    cw.request.since = r->old ? PAST : FUTURE;
    cw.request.rule = r->rule;
    commit_plan(&cw);
    const csn_commit_item *i = item(r->path);
    if (i->verdict != r->verdict)
        fail_msg("%s: verdict %d, not %d: %s", r->name, i->verdict, r->verdict, i->why);
    if (r->why && (!i->why || !strstr(i->why, r->why)))
        fail_msg("%s: %s", r->name, i->why ? i->why : "no reason");
    if (r->merged && strcmp(i->merged.data, r->merged) != 0)
        fail_msg("%s: merged: %s", r->name, i->merged.data);
    if ((cw.plan.conflicts > 0) != (r->verdict == CSN_COMMIT_CONFLICT) &&
        r->verdict != CSN_COMMIT_KEEP)
        fail_msg("%s: %zu conflicts", r->name, cw.plan.conflicts);
}

/* A plan that may be applied is applied; another leaves everything untouched. */
static void try_it(const row *r)
{
    csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    csn_status st = commit_try(&cw);
    csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);

    if (st != (cw.plan.conflicts ? CSN_CONFLICT : CSN_OK))
        fail_msg("%s: status %d", r->name, st);
    if (cw.plan.conflicts && strcmp(before, after) != 0)
        fail_msg("%s: was\n%s is\n%s", r->name, before, after);
    commit_left_nothing(&cw);
}

static void each_case_has_its_verdict(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (i > 0) {
            commit_wipe(&cw);
            setup(state);
        }
        verdict_of(&rows[i]);
        try_it(&rows[i]);
    }
}

static void protected_file_is_held(void **state)
{
    (void)state;
    PUT(&cw, "0/d/secret=x", "0/d/plain=y");
    cw.protected_ = "d/secret";
    commit_all(&cw);
    assert_int_equal(item("d/secret")->verdict, CSN_COMMIT_HELD);
    assert_string_equal(item("d/secret")->why, "protected here");
    assert_int_equal(cw.plan.held, 1);
    assert_false(base_has("d/secret"));
    base_is("d/plain", "y");
}

static void held_directory_is_made_for_its_contents(void **state)
{
    (void)state;
    PUT(&cw, "0/d/e/plain=y", "0/d@711");
    cw.protected_ = "d";
    commit_all(&cw);
    base_is("d/e/plain", "y");
    assert_int_equal(base_stat("d").st_mode & 07777, 0711);
}

static void selected_path_gets_its_parents(void **state)
{
    const char *const only[] = {"d/e/f", NULL};

    (void)state;
    PUT(&cw, "0/d/e/f=x", "0/d/other=y");
    assert_int_equal(csn_layer_changes_list(&cw.lw.stack, only, &cw.changes, NULL), CSN_OK);
    commit_plan(&cw);
    assert_int_equal(commit_try(&cw), CSN_OK);
    base_is("d/e/f", "x");
    assert_false(base_has("d/other"));
}

static void resolution_wins(void **state)
{
    const csn_commit_resolution by[] = {{"f", "agreed", 6}};

    (void)state;
    PUT(&cw, "base/f=host", "0/f=sandbox", "0/f@755");
    cw.request.since = PAST;
    cw.request.resolved = by;
    cw.request.resolved_count = 1;
    commit_all(&cw);
    assert_int_equal(item("f")->verdict, CSN_COMMIT_MERGE);
    base_is("f", "agreed");
    assert_int_equal(base_stat("f").st_mode & 07777, 0755);
}

static void resolution_of_unchanged_path_is_refused(void **state)
{
    const csn_commit_resolution by[] = {{"g", "agreed", 6}};
    csn_error *err = NULL;

    (void)state;
    PUT(&cw, "0/f=sandbox");
    commit_list(&cw);
    cw.request.resolved = by;
    cw.request.resolved_count = 1;
    assert_int_equal(csn_commit_plan_make(&cw.request, &cw.plan, &err), CSN_INVALID);
    assert_non_null(strstr(csn_error_message(err), "g"));
    csn_error_free(err);
}

static void binary_and_large_files_are_not_merged(void **state)
{
    static char large[CSN_MERGE_TEXT_MAX + 2];

    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    PUT(&cw, "base/f=host", "0/f=sandbox");
    put_file(cw.lw.top_fd, "0/f", large);
    cw.original = "original";
    commit_list(&cw);
    commit_plan(&cw);
    assert_int_equal(item("f")->verdict, CSN_COMMIT_CONFLICT);
    assert_non_null(strstr(item("f")->why, "too large"));
    int fd = openat(cw.lw.top_fd, "base/f", O_WRONLY | O_CLOEXEC);
    must(write(fd, "a\0b", 3) == 3, "write");
    close(fd);
    commit_plan(&cw);
    assert_non_null(strstr(item("f")->why, "the host's version is binary"));
}

/* ---- what is written ---- */

static void each_kind_is_applied(void **state)
{
    (void)state;
    PUT(&cw, "base/mod=old", "base/del=x", "base/tree/a/b=x", "base/tree/c>x", "base/f2d=x",
        "base/d2f/x=y", "base/l>old", "base/meta=m", "base/dir/", "base/same=s", "base/l2f>x",
        "base/f2l=x");
    PUT(&cw, "0/mod=new", "0/del!", "0/tree!", "0/f2d/in=side", "0/d2f=file", "0/l>new",
        "0/meta=m", "0/meta@4711", "0/dir/", "0/dir@700", "0/add=a", "0/empty/",
        "0/deep/er/f=z", "0/lnk>/etc/passwd", "0/h1=hard", "0/deep/h2&h1", "0/l2f=file",
        "0/f2l>x");
    world_xattr(&cw.lw, "0/add", "user.color", "red");
    world_xattr(&cw.lw, "0/dir", "user.color", "blue");
    world_xattr(&cw.lw, "0/empty", "user.overlay.x", "y");
    world_time(cw.lw.top_fd, "0/empty", 77);
    world_time(cw.lw.top_fd, "0/lnk", 78);
    commit_all(&cw);
    csn_autofree char *tree = commit_tree(&cw, "base", 0);
    assert_string_equal(tree, "add 100644 a user.color=red\n"
                              "d2f 100644 file\n"
                              "deep 40755 \n"
                              "deep/er 40755 \n"
                              "deep/er/f 100644 z\n"
                              "deep/h2 100644 hard\n"
                              "dir 40700  user.color=blue\n"
                              "empty 40755 \n"
                              "f2d 40755 \n"
                              "f2d/in 100644 side\n"
                              "f2l 120777 x\n"
                              "h1 100644 hard = deep/h2\n"
                              "l 120777 new\n"
                              "l2f 100644 file\n"
                              "lnk 120777 /etc/passwd\n"
                              "meta 100711 m\n"
                              "mod 100644 new\n"
                              "same 100644 s\n");
    assert_int_equal(base_stat("empty").st_mtim.tv_sec, 77);
    assert_int_equal(base_stat("lnk").st_mtim.tv_sec, 78);
    assert_int_equal(base_stat("mod").st_mtim.tv_sec, 1000);
    commit_left_nothing(&cw);
    /* Only set-id bits still differ, and they do every time. */
    commit_list(&cw);
    assert_int_equal(cw.changes.count, 1);
}

static void small_commit_is_synchronized(void **state)
{
    (void)state;
    PUT(&cw, "base/d/f=old", "0/d/f=new", "0/e/g=x");
    commit_syncs = true;
    commit_all(&cw);
    commit_syncs = false;
    base_is("d/f", "new");
}

static void sparse_file_stays_sparse(void **state)
{
    (void)state;
    PUT(&cw, "0/s=");
    int fd = openat(cw.lw.top_fd, "0/s", O_WRONLY | O_CLOEXEC);
    must(pwrite(fd, "x", 1, 1 << 20) == 1 && ftruncate(fd, 4 << 20) == 0, "sparse");
    close(fd);
    commit_all(&cw);
    assert_int_equal(base_stat("s").st_size, 4 << 20);
    assert_true(base_stat("s").st_blocks < 512);
    csn_autofree char *tree = commit_tree(&cw, "base", DUMP_TIMES);
    csn_autofree char *want = commit_tree(&cw, "0", DUMP_TIMES);
    assert_string_equal(tree, want);
}

static void closed_directories_are_opened_for_the_commit(void **state)
{
    (void)state;
    PUT(&cw, "base/ro/keep=x", "base/ro/del=x", "base/gone/sub/f=x", "base/to_ro/f=x");
    PUT(&cw, "0/ro/add=y", "0/ro/del!", "0/ro/sub/f=z", "0/gone!", "0/to_ro/f=y", "0/new/f=x");
    PUT(&cw, "base/ro@555", "0/ro@555", "base/gone/sub@555", "base/gone@555", "0/to_ro@500",
        "0/new@555");
    commit_all(&cw);
    csn_autofree char *tree = commit_tree(&cw, "base", 0);
    assert_string_equal(tree, "new 40555 \nnew/f 100644 x\nro 40555 \nro/add 100644 y\n"
                              "ro/keep 100644 x\nro/sub 40755 \nro/sub/f 100644 z\n"
                              "to_ro 40500 \nto_ro/f 100644 y\n");
    commit_left_nothing(&cw);
}

/* Attributes need permissions that the mode takes away. */
static void attributes_of_closed_files_are_committed(void **state)
{
    static const char *const paths[] = {"0/mod", "0/new", "0/wo", "0/dir", "0/made"};

    (void)state;
    PUT(&cw, "base/mod=old", "base/dir/");
    PUT(&cw, "0/mod=new", "0/new=n", "0/wo=w", "0/dir/", "0/made/");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        world_xattr(&cw.lw, paths[i], "user.color", "red");
    PUT(&cw, "base/dir@555", "0/mod@400", "0/new@444", "0/wo@200", "0/dir@555", "0/made@500");
    commit_all(&cw);
    assert_int_equal(base_stat("wo").st_mode & 07777, 0200);
    PUT(&cw, "base/wo@600");
    csn_autofree char *tree = commit_tree(&cw, "base", 0);
    assert_string_equal(tree, "dir 40555  user.color=red\nmade 40500  user.color=red\n"
                              "mod 100400 new user.color=red\nnew 100444 n user.color=red\n"
                              "wo 100600 w user.color=red\n");
    commit_left_nothing(&cw);
}

static void link_of_the_host_is_replaced_not_followed(void **state)
{
    (void)state;
    PUT(&cw, "outside=safe", "base/f>../outside", "0/f=sandbox");
    commit_all(&cw);
    base_is("f", "sandbox");
    char buf[8] = "";
    csn_autofd int fd = openat(cw.lw.top_fd, "outside", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, buf, sizeof(buf)), 4);
    assert_memory_equal(buf, "safe", 4);
}

/* ---- refusals ---- */

static void refused_without_a_trace(csn_status want)
{
    csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);

    assert_int_equal(commit_try(&cw), want);
    csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    assert_string_equal(before, after);
    commit_left_nothing(&cw);
}

static void change_of_the_host_after_the_plan_stops_the_commit(void **state)
{
    (void)state;
    PUT(&cw, "base/f=a", "base/d/x=y", "0/f=b", "0/g=c", "0/d=file");
    commit_list(&cw);
    commit_plan(&cw);
    PUT(&cw, "base/f=meanwhile");
    refused_without_a_trace(CSN_CONFLICT);
    PUT(&cw, "base/f=a", "base/g=added");
    commit_plan(&cw);
    PUT(&cw, "base/g!");
    commit_plan(&cw);
    PUT(&cw, "base/g=again");
    refused_without_a_trace(CSN_CONFLICT);
    PUT(&cw, "base/g!");
    commit_plan(&cw);
    PUT(&cw, "base/d/new=file");
    refused_without_a_trace(CSN_CONFLICT);
}

/* The plan saw no entry, and a directory; a link in their place must not lead elsewhere. */
static void link_above_a_path_after_the_plan_stops_the_commit(void **state)
{
    (void)state;
    PUT(&cw, "outside/x=y", "base/d/e=x", "0/d/f=b", "0/new/g=c");
    commit_list(&cw);
    commit_plan(&cw);
    PUT(&cw, "base/new>../outside");
    refused_without_a_trace(CSN_CONFLICT);
    PUT(&cw, "base/new!", "base/d>../outside");
    refused_without_a_trace(CSN_CONFLICT);
    PUT(&cw, "base/d=file");
    refused_without_a_trace(CSN_CONFLICT);
    csn_autofree char *outside = commit_tree(&cw, "outside", 0);
    assert_string_equal(outside, "x 100644 y\n");
}

static void change_of_the_sandbox_after_the_list_stops_the_commit(void **state)
{
    (void)state;
    PUT(&cw, "base/f=a", "0/f=b", "0/a=c");
    commit_list(&cw);
    commit_plan(&cw);
    put_file(cw.lw.top_fd, "0/f", "later");
    refused_without_a_trace(CSN_CONFLICT);
}

static void second_commit_at_the_same_time_is_refused(void **state)
{
    csn_autofd int fd = openat(cw.lw.top_fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    PUT(&cw, "0/f=b");
    commit_list(&cw);
    commit_plan(&cw);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    refused_without_a_trace(CSN_CONFLICT);
    assert_int_equal(flock(fd, LOCK_UN), 0);
    assert_int_equal(commit_try(&cw), CSN_OK);
}

static void directory_of_another_user_is_refused(void **state)
{
    (void)state;
    if (getuid() != 0 || geteuid() == 0)
        return; /* the variant as user, started by root */
    PUT(&cw, "base/f=a", "base/d/x=y", "0/f=b", "0/d/x!");
    commit_list(&cw);
    commit_plan(&cw);
    must(seteuid(0) == 0 && fchownat(cw.lw.stack.base, "d", 0, 0, 0) == 0 &&
             seteuid(WORLD_USER) == 0,
         "chown");
    refused_without_a_trace(CSN_DENIED);
    must(seteuid(0) == 0 && fchownat(cw.lw.stack.base, "d", WORLD_USER, 0, 0) == 0 &&
             seteuid(WORLD_USER) == 0,
         "chown");
}

static void immutable_file_is_refused_before_anything_is_written(void **state)
{
    int on = FS_IMMUTABLE_FL, off = 0;

    (void)state;
    if (geteuid() != 0)
        return; /* only root can make one */
    PUT(&cw, "base/f=a", "base/del=x", "0/f=b", "0/del!", "0/new=c");
    csn_autofd int fd = openat(cw.lw.top_fd, "base/f", O_RDONLY | O_CLOEXEC);
    if (ioctl(fd, FS_IOC_SETFLAGS, &on) < 0)
        SKIP("the file system has no immutable files");
    commit_list(&cw);
    commit_plan(&cw);
    csn_autofree char *before = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    csn_status st = commit_try(&cw);
    csn_autofree char *after = commit_tree(&cw, "base", DUMP_TIMES | DUMP_INODES);
    must(ioctl(fd, FS_IOC_SETFLAGS, &off) == 0, "flags");
    assert_int_equal(st, CSN_DENIED);
    assert_string_equal(before, after);
    commit_left_nothing(&cw);
}

static void root_keeps_the_owner_of_what_is_replaced(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return; /* only root can give files away */
    PUT(&cw, "base/f=a", "0/f=b", "0/new=c", "0/dir/", "0/l>x");
    must(fchownat(cw.lw.stack.base, "f", 123, 124, 0) == 0, "chown");
    for (size_t i = 0; i < 3; i++)
        must(fchownat(cw.lw.stack.layers[0], (const char *const[]){"new", "dir", "l"}[i], 125,
                      126, AT_SYMLINK_NOFOLLOW) == 0,
             "chown");
    commit_all(&cw);
    assert_int_equal(base_stat("f").st_uid, 123);
    assert_int_equal(base_stat("f").st_gid, 124);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(base_stat((const char *const[]){"new", "dir", "l"}[i]).st_uid, 125);
}

/* ---- random trees ---- */

static unsigned seed;

static unsigned pick(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

/* The layer hides the whole base, so that it is the sandbox's tree. */
static void random_tree(const char *root, unsigned depth, bool layer)
{
    static unsigned serial;
    char path[200], entry[300];

    must(mkdirat(cw.lw.top_fd, root, 0755) == 0 || errno == EEXIST, root);
    if (layer)
        world_xattr(&cw.lw, root, "user.overlay.opaque", "y");
    for (unsigned i = 0, n = pick(6); i < n; i++) {
        snprintf(path, sizeof(path), "%s/%c%s", root, 'a' + (char)pick(5), pick(4) ? "" : ".x");
        if (faccessat(cw.lw.top_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        unsigned kind = pick(8);
        if (kind < 3 && depth > 0) {
            random_tree(path, depth - 1, layer);
            must(fchmodat(cw.lw.top_fd, path, pick(3) ? 0755 : 0500, 0) == 0, path);
            continue;
        }
        /* Texts are few, so that some files are equal; a file with two names is new. */
        snprintf(entry, sizeof(entry),
                 kind == 3   ? "%s>%u"
                 : kind == 4 ? "%s=new%u"
                             : "%s=%u",
                 path, kind == 4 ? serial++ : pick(2));
        PUT(&cw, entry);
        if (kind == 4) {
            snprintf(entry, sizeof(entry), "%s.link&%s", path, strchr(path, '/') + 1);
            PUT(&cw, entry);
        }
        if (kind == 5)
            world_xattr(&cw.lw, path, "user.n", pick(2) ? "1" : "2");
        if (kind == 6)
            must(fchmodat(cw.lw.top_fd, path, 0400 | pick(0400), 0) == 0, path);
        if (kind == 7)
            world_time(cw.lw.top_fd, path, 2000);
    }
}

static void random_trees_become_those_of_the_sandbox(void **state)
{
    for (seed = 1; seed <= 60; seed++) {
        unsigned number = seed;
        random_tree("base/t", 3, false);
        random_tree("0/t", 3, true);
        commit_all(&cw);
        csn_autofree char *is = commit_tree(&cw, "base", DUMP_TIMES);
        csn_autofree char *want = commit_tree(&cw, "0", DUMP_TIMES);
        if (strcmp(is, want) != 0)
            fail_msg("seed %u: the base is\n%s instead of\n%s", number, is, want);
        commit_left_nothing(&cw);
        commit_list(&cw);
        assert_int_equal(cw.changes.count, 0);
        commit_wipe(&cw);
        setup(state);
        seed = number;
    }
}

#define BOTH(f)                                                                                \
    {#f, f, setup, teardown, NULL},                                                            \
    {                                                                                          \
#f "_as_user", f, setup_as_user, teardown, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(each_case_has_its_verdict),
        BOTH(protected_file_is_held),
        BOTH(held_directory_is_made_for_its_contents),
        BOTH(selected_path_gets_its_parents),
        BOTH(resolution_wins),
        BOTH(resolution_of_unchanged_path_is_refused),
        BOTH(binary_and_large_files_are_not_merged),
        BOTH(each_kind_is_applied),
        BOTH(small_commit_is_synchronized),
        BOTH(sparse_file_stays_sparse),
        BOTH(closed_directories_are_opened_for_the_commit),
        BOTH(attributes_of_closed_files_are_committed),
        BOTH(link_of_the_host_is_replaced_not_followed),
        BOTH(change_of_the_host_after_the_plan_stops_the_commit),
        BOTH(link_above_a_path_after_the_plan_stops_the_commit),
        BOTH(change_of_the_sandbox_after_the_list_stops_the_commit),
        BOTH(second_commit_at_the_same_time_is_refused),
        BOTH(directory_of_another_user_is_refused),
        BOTH(immutable_file_is_refused_before_anything_is_written),
        BOTH(root_keeps_the_owner_of_what_is_replaced),
        BOTH(random_trees_become_those_of_the_sandbox),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
