/* search_changed.c: what the scan after a command finds, on real repositories and odd trees. */
#include "search/changed.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "child.h"
#include "scan_fixture.h"

/* ---- plain names ---- */

static void names_are_found_at_any_depth_and_others_are_not(void **state)
{
    static const char *const want[] = {".bashrc",
                                       "a/b/.envrc",
                                       "a/.git/hooks/pre-commit",
                                       "a/.git/config",
                                       "node_modules/x/.vscode/s/tasks.json",
                                       "x.code-workspace",
                                       "a/.claude/settings.json",
                                       "a/.git/objects/.git/hooks/x",
                                       "a/.claude/hooks",
                                       "l/.claude",
                                       "g/.git"};

    (void)state;
    room_mkdir(&r, "a/b");
    room_mkdir(&r, "a/.git/hooks");
    room_mkdir(&r, "a/.git/objects/.git/hooks");
    room_mkdir(&r, "node_modules/x/.vscode/s");
    room_mkdir(&r, "a/.claude");
    room_mkdir(&r, "hooks");
    room_mkdir(&r, "l");
    room_mkdir(&r, "g");
    for (size_t i = 0; i < LEN(want) - 3; i++)
        room_put(&r, want[i], "x");
    link_to("/etc", "a/.claude/hooks");
    link_to("../a", "l/.claude");
    link_to("../a/.git", "g/.git");
    room_put(&r, "a/.git/hooks/pre-commit.sample", "x");
    room_put(&r, "a/.git/HEAD", "x");
    room_put(&r, "a/config", "x");
    room_put(&r, "hooks/pre-commit", "x");
    room_put(&r, "a/.claude/notes", "x");
    must_find(want, LEN(want), NULL);
}

static void only_what_changed_since_is_told(void **state)
{
    static const char *const want[] = {"n/.bashrc", "n/.envrc", "n/.profile", "n/.zshrc",
                                       "n/.zshenv"};
    static const char *const old[] = {"n/.gitconfig", "n/.bashrc", "n/.envrc", "n/plain",
                                      "n/two"};

    (void)state;
    room_mkdir(&r, "n");
    for (size_t i = 0; i < LEN(old); i++)
        room_put(&r, old[i], "x");
    struct timespec since = a_moment();
    must_find(NULL, 0, &since);
    room_put(&r, "n/.bashrc", "y");
    assert_int_equal(fchmodat(r.fd, "n/.envrc", 0755, 0), 0);
    assert_int_equal(renameat(r.fd, "n/plain", r.fd, "n/.profile"), 0);
    assert_int_equal(linkat(r.fd, "n/two", r.fd, "n/.zshrc", 0), 0);
    link_to("two", "n/.zshenv");
    /* the time of a change cannot be taken back */
    struct timespec past[2] = {{1, 0}, {1, 0}};
    assert_int_equal(utimensat(r.fd, "n/.bashrc", past, 0), 0);
    must_find(want, LEN(want), &since);
}

/* A directory that was there, with its files, gets a name that gives them a meaning. */
static void a_directory_renamed_to_a_protected_name_is_told_as_moved(void **state)
{
    hits h;

    (void)state;
    room_mkdir(&r, "a/dotgit/hooks");
    room_put(&r, "a/dotgit/config", "x");
    room_put(&r, "a/dotgit/hooks/pre-commit", "x");
    room_mkdir(&r, "b/.git/hooks");
    room_put(&r, "b/.git/hooks/pre-commit", "x");
    struct timespec since = a_moment();
    assert_int_equal(renameat(r.fd, "a/dotgit", r.fd, "a/.git"), 0);
    look(&h, &since);
    assert_int_equal(h.rc, 0);
    assert_int_equal(h.count, 2);
    assert_true(found(&h, "a/.git/config")->moved);
    assert_true(found(&h, "a/.git/hooks/pre-commit")->moved);
    hits_free(&h);
}

/* No place of a repository hides files; what git itself writes there is not told. */
static void nothing_hides_among_the_objects(void **state)
{
    static const char *const want[] = {
        ".git/objects/zz/proj/.git/config",
        ".git/objects/ab/.envrc",
        ".git/objects/ab/cd/.git/hooks/pre-commit",
        ".git/objects/pack/x/.git/config",
        ".git/objects/info/.vscode/tasks.json",
        ".git/objects/.git/config",
        ".git/lfs/objects/ab/.bashrc",
        ".git/modules/m/objects/zz/.mcp.json",
        ".git/worktrees/w/objects/zz/.mcp.json",
        "bare/objects/ab/.git/config",
    };
    static const char *const plain[] = {
        ".git/objects/ab/0123456789012345678901234567890123456789",
        ".git/objects/pack/pack-0123456789012345678901234567890123456789.idx",
        ".git/objects/info/packs", "bare/HEAD", "bare/refs/x"};
    char dir[100];

    (void)state;
    for (size_t i = 0; i < LEN(want) + LEN(plain); i++) {
        const char *path = i < LEN(want) ? want[i] : plain[i - LEN(want)];
        snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
        room_mkdir(&r, dir);
        room_put(&r, path, "x");
    }
    link_to("/etc", ".git/objects/ab/.git");
    const char *all[LEN(want) + 1] = {".git/objects/ab/.git"};
    memcpy(all + 1, want, sizeof(want));
    must_find(all, LEN(all), NULL);
}

/* ---- repositories by what is in them ---- */

static void a_bare_repository_is_one_by_what_is_in_it(void **state)
{
    static const char *const want[] = {"x/config", "x/hooks/update", "x/.bashrc", "x/.claude"};

    (void)state;
    room_mkdir(&r, "x/objects");
    room_mkdir(&r, "x/hooks");
    room_put(&r, "x/config", "x");
    room_put(&r, "x/hooks/update", "x");
    room_put(&r, "x/.bashrc", "x");
    link_to("y", "x/.claude");
    room_put(&r, "x/HEAD", "ref: refs/heads/main\n");
    must_find(want + 2, 2, NULL);
    room_mkdir(&r, "x/refs");
    must_find(want, LEN(want), NULL);
    /* one that worktrees share needs no HEAD of its own */
    assert_int_equal(unlinkat(r.fd, "x/HEAD", 0), 0);
    must_find(want + 2, 2, NULL);
    room_mkdir(&r, "x/worktrees");
    must_find(want, LEN(want), NULL);
}

static void completing_a_bare_repository_around_an_old_config_is_told(void **state)
{
    hits h;

    (void)state;
    room_mkdir(&r, "x");
    room_put(&r, "x/config", "x");
    struct timespec since = a_moment();
    room_mkdir(&r, "x/objects");
    room_mkdir(&r, "x/refs");
    room_put(&r, "x/HEAD", "x");
    look(&h, &since);
    assert_int_equal(h.count, 1);
    assert_true(found(&h, "x/config")->moved);
    hits_free(&h);
}

/* Looking like a repository takes no protection away, and makes no hiding place. */
static void a_directory_that_is_two_things_is_both(void **state)
{
    static const char *const want[] = {".claude/commands/x", ".claude/config",
                                       ".claude/hooks/y", ".claude/objects/n/.git/hooks/z",
                                       ".claude/settings.json"};

    (void)state;
    room_mkdir(&r, ".claude/commands");
    room_mkdir(&r, ".claude/hooks");
    room_mkdir(&r, ".claude/objects/n/.git/hooks");
    room_mkdir(&r, ".claude/refs");
    room_put(&r, ".claude/HEAD", "x");
    for (size_t i = 0; i < LEN(want); i++)
        room_put(&r, want[i], "x");
    must_find(want, LEN(want), NULL);
}

static void the_root_itself_can_be_a_repository(void **state)
{
    static const char *const want[] = {"config", "hooks/x", "commondir", "config.worktree"};

    (void)state;
    room_mkdir(&r, "objects");
    room_mkdir(&r, "refs");
    room_mkdir(&r, "hooks");
    room_put(&r, "HEAD", "x");
    for (size_t i = 0; i < LEN(want); i++)
        room_put(&r, want[i], "x");
    must_find(want, LEN(want), NULL);
}

/* ---- what git writes ---- */

typedef struct verdicts {
    size_t bad;
    char last[200]; /* of the bad ones */
} verdicts;

static int judge_hit(void *ctx, const csn_changed *hit)
{
    verdicts *all = ctx;
    csn_protected_content_verdict v;
    struct stat st;
    bool link = S_ISLNK(hit->st->st_mode);
    size_t len = 0;
    csn_autofree char *text = link ? strdup("") : room_get(hit->dir, hit->name, &len);

    csn_protected_content_check(&(csn_protected_content){.rule = hit->rule,
                                                         .path = hit->path,
                                                         .workspace = r.top,
                                                         .link = link,
                                                         .text = text,
                                                         .len = len,
                                                         .hash_len = 20},
                                &v);
    if (v.harmless && v.real_dir && v.real_dir[0])
        v.harmless =
            fstatat(r.fd, v.real_dir, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    if (!v.harmless) {
        snprintf(all->last, sizeof(all->last), "%s: %s", hit->path, v.why ? v.why : "a link");
        all->bad++;
    }
    csn_protected_content_verdict_release(&v);
    return 0;
}

static void must_be_bad(size_t n)
{
    static const struct timespec ever = {0};
    verdicts all = {0};

    assert_int_equal(
        csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, judge_hit, &all, NULL, NULL),
        0);
    if (all.bad != n)
        fail_msg("%zu and not %zu are bad; the last is %s", all.bad, n, all.last);
}

static void what_git_makes_is_found_and_harmless(void **state)
{
    static const char *const some[] = {"main/.git/config",
                                       "main/.git/modules/libs/s/config",
                                       "main/libs/s/.git",
                                       "tree/.git",
                                       "bare.git/config",
                                       "main/.git/worktrees/tree/commondir",
                                       "main/.git/index",
                                       "clone/.git/config.worktree",
                                       "main/.git/modules/libs/s/index"};
    hits h;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_make_everything(&r);
    look(&h, NULL);
    assert_int_equal(h.rc, 0);
    for (size_t i = 0; i < LEN(some); i++)
        if (!found(&h, some[i]))
            fail_msg("%s was not found", some[i]);
    hits_free(&h);
    must_be_bad(0);
}

/* Submodules may be called as the files of a repository are. */
static void submodules_with_the_names_of_git_files_are_harmless(void **state)
{
    (void)state;
    SKIP_WITHOUT_GIT();
    git(&r, ".", "init -q lib");
    git(&r, "lib", "commit -q --allow-empty -m x");
    git(&r, ".", "init -q main");
    git(&r, "main", "submodule --quiet add ../lib src/hooks");
    git(&r, "main", "submodule --quiet add ../lib config");
    must_be_bad(0);
}

static void what_an_agent_plants_in_them_is_not(void **state)
{
    static const char *const plants[] = {"main/.git/hooks/pre-commit",
                                         "main/.git/modules/libs/s/hooks/post-checkout",
                                         "main/.git/config",
                                         "main/.git/modules/libs/s/config",
                                         "clone/.git/config.worktree",
                                         "bare.git/config",
                                         "bare.git/hooks/update",
                                         "tree/.git",
                                         "main/.git/index",
                                         "main/.git/worktrees/tree/commondir",
                                         "main/.git/worktrees/tree/config.worktree",
                                         "main/.git/rebase-merge/git-rebase-todo"};

    (void)state;
    SKIP_WITHOUT_GIT();
    git_make_everything(&r);
    room_mkdir(&r, "main/.git/rebase-merge");
    for (size_t i = 0; i < LEN(plants); i++) {
        room_put(&r, plants[i], "[core]\n\thooksPath = /tmp\n");
        must_be_bad(i + 1);
    }
    /* where a submodule is checked out is sent elsewhere by a link */
    assert_int_equal(renameat(r.fd, "clone/libs/s", r.fd, "clone/libs/t"), 0);
    link_to("/", "clone/libs/s");
    must_be_bad(LEN(plants) + 1);
}

/* ---- odd trees ---- */

static void links_fifos_and_odd_names_do_not_mislead(void **state)
{
    static const char *const want[] = {"new\nline/\x01\xff/.envrc", "fifo/.bashrc"};
    hits h;

    (void)state;
    room_mkdir(&r, "loop/in");
    link_to("..", "loop/in/up");
    link_to(".", "loop/self");
    link_to("/", "loop/root");
    link_to("nowhere", "loop/gone");
    room_mkdir(&r, "new\nline/\x01\xff");
    room_put(&r, want[0], "x");
    room_mkdir(&r, "fifo");
    assert_int_equal(mkfifoat(r.fd, "fifo/.bashrc", 0600), 0);
    assert_int_equal(mkfifoat(r.fd, "fifo/plain", 0600), 0);
    must_find(want, LEN(want), NULL);
    look(&h, NULL);
    assert_int_equal(h.stats.dirs, 6); /* root, loop, in, new\nline, \x01\xff, fifo */
    hits_free(&h);
}

/* Deeper than PATH_MAX and than the descriptors there are; with neighbours on each level, so
 * that the way up is needed too. */
static void depth_costs_no_descriptors_and_has_no_end(void **state)
{
    struct rlimit old, few;
    hits h;
    int fd = dup(r.fd);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(mkdirat(fd, "deeper", 0755), 0);
        if (i % 100 == 50)
            assert_int_equal(mkdirat(fd, "aside", 0755), 0);
        int next = openat(fd, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    int file = openat(fd, ".bashrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    close(file);
    getrlimit(RLIMIT_NOFILE, &old);
    few = (struct rlimit){(rlim_t)fd + 40, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    look(&h, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    close(fd);
    assert_int_equal(h.rc, 0);
    assert_int_equal(h.count, 1);
    assert_int_equal(strlen(h.paths[0]), 2000 * strlen("deeper/") + strlen(".bashrc"));
    assert_int_equal(h.stats.dirs, 2021);
    hits_free(&h);
}

/* Longer than what is kept of a path. */
static void the_length_of_a_path_has_no_end(void **state)
{
    char name[201];
    hits h;
    int fd = dup(r.fd);

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(mkdirat(fd, name, 0755), 0);
        int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    int file = openat(fd, ".bashrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    close(file);
    close(fd);
    room_put(&r, ".envrc", "x");
    look(&h, NULL);
    assert_int_equal(h.rc, 0);
    assert_int_equal(h.stats.dirs, 1001);
    assert_int_equal(h.count, 2);
    assert_non_null(found(&h, ".envrc"));
    assert_string_equal(h.paths[1] + strlen(h.paths[1]) - 13, "n/.../.bashrc");
    hits_free(&h);
}

/* Makes the next directory, which is there, one like that of the file that is told. */
static int grow(void *ctx, const csn_changed *hit)
{
    (void)ctx;
    usleep(5000);
    assert_int_equal(mkdirat(hit->dir, "d/d", 0755), 0);
    int d = openat(hit->dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = openat(d, ".envrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    close(file);
    close(d);
    return 0;
}

static void a_tree_that_grows_all_the_time_ends_the_scan(void **state)
{
    static const struct timespec ever = {0};
    csn_changed_memory memory = {.patience_ms = 1};

    (void)state;
    room_mkdir(&r, "d");
    room_put(&r, ".envrc", "x");
    int rc =
        csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, grow, NULL, &memory, NULL);
    assert_int_equal(rc, -EAGAIN);
    csn_changed_memory_release(&memory);
}

static int move_away(void *ctx, const csn_changed *hit)
{
    (void)hit;
    assert_int_equal(renameat(r.fd, ctx, r.fd, "moved"), 0);
    return 0;
}

/* The way up leads out of the tree then, or to what was not looked for. */
static void a_directory_moved_away_under_a_deep_scan_is_an_error(void **state)
{
    static const struct timespec ever = {0};
    char path[200] = "d";

    (void)state;
    for (size_t n = 1; n < 80; n += 2)
        snprintf(path + n, sizeof(path) - n, "/d");
    room_mkdir(&r, path);
    snprintf(path + strlen(path), 10, "/.envrc");
    room_put(&r, path, "x");
    int rc = csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, move_away, "d/d/d", NULL,
                              NULL);
    assert_int_equal(rc, -EAGAIN);
}

#define NO_NAMESPACE 77

static int scan_with_a_mount(void *ctx)
{
    hits h;

    (void)ctx;
    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return NO_NAMESPACE;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(r.top) < 0 ||
        mount("from", "m", NULL, MS_BIND, NULL) < 0)
        return NO_NAMESPACE;
    close(r.fd);
    r.fd = open(r.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    look(&h, NULL);
    int wrong = h.rc != 0 || h.count != 1 || h.stats.mounts != 1 || !found(&h, "from/.envrc");
    hits_free(&h);
    return wrong;
}

/* Also of the same file system. */
static void mounts_are_counted_and_not_entered(void **state)
{
    (void)state;
    room_mkdir(&r, "m");
    room_mkdir(&r, "from");
    room_put(&r, "from/.envrc", "x");
    csn_child_end end = csn_child_run(scan_with_a_mount, NULL, -1, 60000);
    if (end.exit_code == NO_NAMESPACE) {
        print_message("# SKIP %s: no mount namespace to be had\n", __func__);
        if (getenv("CSN_MUST_WORK") && geteuid() == 0)
            fail();
        return;
    }
    assert_int_equal(end.exit_code, 0);
}

/* A scan that cannot see everything says so. */
static void running_out_of_descriptors_is_an_error(void **state)
{
    struct rlimit old, few;
    hits h;

    (void)state;
    room_mkdir(&r, "a/b/c/d/e/f/g/h");
    getrlimit(RLIMIT_NOFILE, &old);
    int next = dup(r.fd);
    close(next);
    few = (struct rlimit){(rlim_t)next + 3, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    look(&h, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(h.rc, -EMFILE);
    int after = dup(r.fd);
    assert_int_equal(after, next); /* none was kept */
    close(after);
}

/* As somebody would who may: gives the directory its permission back. */
static int open_up(void *ctx, const csn_changed *hit)
{
    hits *h = ctx;

    if (!hit->unlisted)
        return keep(h, hit);
    assert_int_equal(fchmodat(hit->dir, hit->name, 0700, 0), 0);
    return CSN_CHANGED_AGAIN;
}

/* One that cannot be entered may be opened when what is in it is old. */
static void directories_that_cannot_be_listed_are_told_and_once_opened_read(void **state)
{
    static const struct {
        const char *path;
        mode_t mode;
    } shut[] = {{"n/.git/hooks", 0311}, {"n/.git", 0311}, {"n", 0311}, {"m/l", 0400}, {"m", 0}};
    static const struct timespec ever = {0};
    struct timespec later = {.tv_sec = time(NULL) + 3600};
    hits h;

    (void)state;
    if (geteuid() == 0) {
        print_message("# SKIP %s: root lists everything; a user's run tests it\n", __func__);
        return;
    }
    room_mkdir(&r, "n/.git/hooks");
    room_put(&r, "n/.git/hooks/pre-commit", "x");
    room_mkdir(&r, "m/l");
    room_put(&r, "m/l/.envrc", "x");
    for (size_t i = 0; i < LEN(shut); i++)
        assert_int_equal(fchmodat(r.fd, shut[i].path, shut[i].mode, 0), 0);
    look(&h, NULL);
    assert_int_equal(h.rc, 0);
    assert_int_equal(h.count, 2);
    assert_true(found(&h, "n")->unlisted && found(&h, "m")->unlisted);
    hits_free(&h);
    look(&h, &later);
    assert_int_equal(h.stats.closed, 1);
    hits_free(&h);
    h = (hits){0};
    assert_int_equal(
        csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, open_up, &h, NULL, &h.stats),
        0);
    assert_int_equal(h.count, 2);
    assert_non_null(found(&h, "n/.git/hooks/pre-commit"));
    assert_non_null(found(&h, "m/l/.envrc"));
    assert_int_equal(h.stats.closed, 0);
    hits_free(&h);
}

static void the_callback_can_stop_it(void **state)
{
    char name[32];
    hits h;

    (void)state;
    room_mkdir(&r, ".vscode");
    for (int i = 0; i < HIT_MAX + 5; i++) {
        snprintf(name, sizeof(name), ".vscode/%d", i);
        room_put(&r, name, "x");
    }
    look(&h, NULL);
    assert_int_equal(h.rc, 1);
    assert_int_equal(h.count, HIT_MAX);
    hits_free(&h);
}

static int remove_hit(void *ctx, const csn_changed *hit)
{
    ++*(size_t *)ctx;
    return unlinkat(hit->dir, hit->name, 0);
}

/* More directories in one than are queued at once, while files of it are removed. */
static void a_wide_directory_is_seen_to_its_end(void **state)
{
    static const struct timespec ever = {0};
    char name[300];
    csn_changed_count stats;
    size_t told = 0;

    (void)state;
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof(name), "w/%0200d", i);
        room_mkdir(&r, name);
        if (i % 6 == 0) {
            snprintf(name, sizeof(name), "w/%0200d/.envrc", i);
            room_put(&r, name, "x");
        } else if (i % 6 == 1) {
            snprintf(name, sizeof(name), "w/%d.run.xml", i);
            room_put(&r, name, "x");
        }
    }
    int rc = csn_changed_scan(r.fd, &csn_protected_name_rules, &ever, remove_hit, &told, NULL,
                              &stats);
    assert_int_equal(rc, 0);
    assert_int_equal(stats.dirs, 6002);
    assert_int_equal(told, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_found_at_any_depth_and_others_are_not),
        TEST(only_what_changed_since_is_told),
        TEST(a_directory_renamed_to_a_protected_name_is_told_as_moved),
        TEST(nothing_hides_among_the_objects),
        TEST(a_bare_repository_is_one_by_what_is_in_it),
        TEST(completing_a_bare_repository_around_an_old_config_is_told),
        TEST(a_directory_that_is_two_things_is_both),
        TEST(the_root_itself_can_be_a_repository),
        TEST(what_git_makes_is_found_and_harmless),
        TEST(submodules_with_the_names_of_git_files_are_harmless),
        TEST(what_an_agent_plants_in_them_is_not),
        TEST(links_fifos_and_odd_names_do_not_mislead),
        TEST(depth_costs_no_descriptors_and_has_no_end),
        TEST(the_length_of_a_path_has_no_end),
        TEST(a_tree_that_grows_all_the_time_ends_the_scan),
        TEST(a_directory_moved_away_under_a_deep_scan_is_an_error),
        TEST(mounts_are_counted_and_not_entered),
        TEST(running_out_of_descriptors_is_an_error),
        TEST(directories_that_cannot_be_listed_are_told_and_once_opened_read),
        TEST(the_callback_can_stop_it),
        TEST(a_wide_directory_is_seen_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
