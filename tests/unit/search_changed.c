/* search_changed.c: what the scan after a command finds, on real repositories and odd trees. */
#include "search/changed.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "child.h"
#include "git_fixture.h"
#include "policy/protected_names.h"
#include "search/place.h"

#define LEN(array) (sizeof(array) / sizeof(*(array)))
#define HIT_MAX    64

typedef struct hits {
    char *paths[HIT_MAX];
    csn_changed kept[HIT_MAX]; /* without what they point to */
    size_t count;
    csn_changed_count stats;
    int rc;
} hits;

static git_fixture r;
static csn_changed_memory *known; /* NULL but where a test remembers */

static int setup(void **state)
{
    (void)state;
    git_room_make(&r);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    git_room_wipe(&r);
    return 0;
}

static int keep(void *ctx, const csn_changed *hit)
{
    hits *h = ctx;
    struct stat st;

    /* what we are given is what is there */
    assert_int_equal(fstatat(hit->dir, hit->name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(st.st_ino == hit->st->st_ino);
    if (h->count == HIT_MAX || hit->old) /* escape/c3_targets.sh tries what is old */
        return hit->old ? 0 : 1;
    h->paths[h->count] = strdup(hit->path);
    h->kept[h->count++] = *hit;
    return 0;
}

static void hits_free(hits *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->paths[i]);
    memset(h, 0, sizeof(*h));
}

/* Fills h with what changed since then; NULL: ever. */
static void look(hits *h, const struct timespec *since)
{
    static const struct timespec ever = {0};

    memset(h, 0, sizeof(*h));
    h->rc = csn_changed_scan(r.fd, &csn_protected_name_rules, since ? since : &ever, keep, h,
                             known, &h->stats);
}

static const csn_changed *found(const hits *h, const char *path)
{
    const csn_changed *hit = NULL;

    for (size_t i = 0; i < h->count; i++) {
        if (strcmp(h->paths[i], path) != 0)
            continue;
        assert_null(hit); /* told once */
        hit = &h->kept[i];
    }
    return hit;
}

static void must_find(const char *const *want, size_t n, const struct timespec *since)
{
    hits h;

    look(&h, since);
    assert_int_equal(h.rc, 0);
    for (size_t i = 0; i < n; i++)
        if (!found(&h, want[i]))
            fail_msg("%s was not found", want[i]);
    if (h.count > n)
        fail_msg("%zu more than wanted; the last is %s", h.count - n, h.paths[h.count - 1]);
    hits_free(&h);
}

/* A moment that everything made before is older than. Files may be stamped by the finer clock,
 * so the coarse one has to pass it. */
static struct timespec a_moment(void)
{
    struct timespec fine, coarse;

    clock_gettime(CLOCK_REALTIME, &fine);
    do {
        usleep(1000);
        csn_changed_now(&coarse);
    } while (coarse.tv_sec < fine.tv_sec ||
             (coarse.tv_sec == fine.tv_sec && coarse.tv_nsec <= fine.tv_nsec));
    return coarse;
}

static void link_to(const char *target, const char *path)
{
    assert_int_equal(symlinkat(target, r.fd, path), 0);
}

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

/* ---- remembering ---- */

/* Every way in which a directory that was dull becomes one that is not. */
static void what_is_remembered_hides_nothing(void **state)
{
    static const char *const want[] = {
        "dull0/.envrc", "dull1/.git/config",  ".vscode/sub/plain", "dull3/.bashrc",
        "old/.envrc",   "deep/a/b/.mcp.json", "dull5/config"};
    csn_changed_memory memory = {0};
    char name[32];
    hits h;

    (void)state;
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "dull%d", i);
        room_mkdir(&r, name);
        snprintf(name, sizeof(name), "dull%d/plain", i);
        room_put(&r, name, "x");
    }
    room_mkdir(&r, "place/sub");
    room_put(&r, "place/sub/plain", "x");
    room_mkdir(&r, "deep/a/b");
    room_mkdir(&r, "old");
    room_put(&r, "old/.envrc", "x");
    struct timespec since = a_moment();
    known = &memory;
    must_find(NULL, 0, &since);
    /* One that was looked at in the tick of its last change is remembered the next time. */
    look(&h, &since);
    for (int i = 0; i < 100 && h.stats.known < 602; i++) {
        hits_free(&h);
        usleep(10000);
        look(&h, &since);
    }
    assert_int_equal(h.stats.known, 602); /* dull*, sub, b */
    assert_int_equal(h.stats.dirs, 5);    /* root, place, deep, a, old */
    room_put(&r, "dull0/.envrc", "x");
    room_mkdir(&r, "dull1/.git");
    room_put(&r, "dull1/.git/config", "x");
    assert_int_equal(renameat(r.fd, "place", r.fd, ".vscode"), 0);
    assert_int_equal(renameat(r.fd, "dull3/plain", r.fd, "dull3/.bashrc"), 0);
    room_put(&r, "old/.envrc", "y");
    room_put(&r, "deep/a/b/.mcp.json", "x");
    room_put(&r, "dull5/config", "x");
    room_put(&r, "dull5/HEAD", "x");
    room_mkdir(&r, "dull5/objects");
    room_mkdir(&r, "dull5/refs");
    for (int i = 0; i < 2; i++) {
        look(&h, &since);
        for (size_t k = 0; k < LEN(want); k++)
            if (!found(&h, want[k]))
                fail_msg("%s was not found", want[k]);
        assert_int_equal(h.count, LEN(want));
        assert_true(h.stats.known > 590);
        hits_free(&h);
    }
    known = NULL;
    csn_changed_memory_release(&memory);
}

/* A change right after a scan has nearly the time of the scan. */
static void a_change_in_the_same_tick_is_not_missed(void **state)
{
    csn_changed_memory memory = {0};
    struct timespec since;
    hits h;

    (void)state;
    csn_changed_now(&since);
    known = &memory;
    for (int i = h.stats.known = 0; i < 500 && h.stats.known == 0; i++, usleep(2000))
        look(&h, &since);
    assert_int_equal(h.stats.known, 1); /* not even the root was read */
    for (int i = 0; i < 500; i++) {
        room_put(&r, ".envrc", "x");
        look(&h, &since);
        assert_int_equal(h.count, 1);
        hits_free(&h);
        assert_int_equal(unlinkat(r.fd, ".envrc", 0), 0);
    }
    for (int i = 0; i < 500; i++) {
        char dir[32], file[48];
        snprintf(dir, sizeof(dir), "d%d", i);
        snprintf(file, sizeof(file), "d%d/.envrc", i);
        room_mkdir(&r, dir);
        look(&h, &since);
        assert_int_equal(h.count, 0);
        room_put(&r, file, "x");
        look(&h, &since);
        assert_int_equal(h.rc, 0);
        assert_int_equal(h.count, 1);
        hits_free(&h);
        assert_int_equal(unlinkat(r.fd, file, 0), 0);
    }
    known = NULL;
    csn_changed_memory_release(&memory);
}

static void remember_all(csn_changed_memory *memory)
{
    hits h;

    known = memory;
    look(&h, NULL);
    assert_int_equal(h.rc, 0);
    csn_changed_memory_keep(memory);
    hits_free(&h);
}

/* Work in a repository changes its directory as a rename would. */
static void what_was_there_at_the_last_scan_was_not_moved_there(void **state)
{
    csn_changed_memory memory = {0};
    hits h;

    (void)state;
    room_mkdir(&r, "n/.git/hooks");
    room_put(&r, "n/.git/hooks/pre-commit", "x");
    room_mkdir(&r, "bare/objects");
    room_mkdir(&r, "bare/refs");
    room_put(&r, "bare/HEAD", "x");
    room_put(&r, "bare/config", "x");
    room_mkdir(&r, "dull");
    room_put(&r, "dull/post-merge", "x");
    remember_all(&memory);
    struct timespec since = a_moment();
    room_put(&r, "n/new", "x");
    room_put(&r, "n/.git/new", "x");
    room_put(&r, "bare/new", "x");
    must_find(NULL, 0, &since);
    /* A directory in one that was there is looked at by itself. */
    assert_int_equal(renameat(r.fd, "n/.git/hooks", r.fd, "away"), 0);
    assert_int_equal(renameat(r.fd, "dull", r.fd, "n/.git/hooks"), 0);
    look(&h, &since);
    assert_int_equal(h.count, 1);
    assert_true(found(&h, "n/.git/hooks/post-merge")->moved);
    hits_free(&h);
    /* So is one that comes back: what happened to it meanwhile was not looked at. */
    csn_changed_memory_keep(&memory);
    assert_int_equal(renameat(r.fd, "n/.git/hooks", r.fd, "dull"), 0);
    assert_int_equal(renameat(r.fd, "away", r.fd, "n/.git/hooks"), 0);
    look(&h, &since);
    assert_int_equal(h.count, 1);
    assert_true(found(&h, "n/.git/hooks/pre-commit")->moved);
    hits_free(&h);
    known = NULL;
    csn_changed_memory_release(&memory);
}

/* The same directory at the same place, but what is in it got a meaning. */
static void what_becomes_a_repository_was_not_seen_as_one(void **state)
{
    csn_changed_memory memory = {0};
    hits h;

    (void)state;
    room_mkdir(&r, ".git/modules/m/hooks");
    room_put(&r, ".git/modules/m/hooks/pre-commit", "x");
    room_put(&r, ".git/modules/m/config", "x");
    remember_all(&memory);
    struct timespec since = a_moment();
    room_put(&r, ".git/modules/m/HEAD", "x");
    room_mkdir(&r, ".git/modules/m/objects");
    room_mkdir(&r, ".git/modules/m/refs");
    look(&h, &since);
    assert_int_equal(h.count, 2);
    assert_true(found(&h, ".git/modules/m/hooks/pre-commit")->moved);
    assert_true(found(&h, ".git/modules/m/config")->moved);
    hits_free(&h);
    known = NULL;
    csn_changed_memory_release(&memory);
}

/* What comes from where no scan was is told, however old it is and however deep it lies. What
 * was seen is not: its files were checked then, or are the user's. */
static void a_tree_that_was_not_seen_before_is_told(void **state)
{
    static const char *const unseen[] = {"outside/a/p/.git/config", "outside/a/p/.git/hooks/x",
                                         "outside/a/p/.envrc", "outside/a/p/q/.bashrc"};
    csn_changed_memory memory = {0};
    hits h;

    (void)state;
    room_mkdir(&r, "in/seen/a/.git/hooks");
    room_put(&r, "in/seen/a/.git/hooks/pre-commit", "x");
    room_put(&r, "in/seen/a/.envrc", "x");
    room_mkdir(&r, "outside/a/p/.git/hooks");
    room_mkdir(&r, "outside/a/p/q");
    for (size_t i = 0; i < LEN(unseen); i++)
        room_put(&r, unseen[i], "x");
    int top = csn_steal_fd(&r.fd);
    r.fd = openat(top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    remember_all(&memory);
    struct timespec since = a_moment();
    must_find(NULL, 0, &since);
    assert_int_equal(renameat(top, "outside/a", r.fd, "seen/b"), 0);
    assert_int_equal(renameat(r.fd, "seen", r.fd, "other"), 0);
    room_put(&r, "other/a/new", "x");
    for (int i = 0; i < 2; i++) {
        look(&h, &since);
        assert_int_equal(h.count, LEN(unseen));
        assert_true(found(&h, "other/b/p/.git/config")->moved);
        assert_true(found(&h, "other/b/p/.git/hooks/x")->moved);
        assert_true(found(&h, "other/b/p/.envrc")->moved);
        assert_true(found(&h, "other/b/p/q/.bashrc")->moved);
        hits_free(&h);
    }
    close(r.fd);
    r.fd = top;
    known = NULL;
    csn_changed_memory_release(&memory);
}

/* A directory that has the inode number of a removed one is another directory. */
static void a_new_name_or_inode_is_another_place(void **state)
{
    csn_place p = {.dev = 1, .ino = 2, .parent_ino = 3, .born_sec = 4, .state = 5}, q = p;
    csn_scan_cache set = {0};
    csn_scan_cache_dir id = csn_place_id(&p, "hooks/", 6), other = csn_place_id(&p, "dull/", 5);

    (void)state;
    csn_scan_cache_add(&set, &id);
    assert_true(csn_scan_cache_has(&set, &id));
    assert_false(csn_scan_cache_has(&set, &other));
    q.born_nsec = 1;
    other = csn_place_id(&q, "hooks/", 6);
    assert_false(csn_scan_cache_has(&set, &other));
    q = p;
    q.state = 0;
    other = csn_place_id(&q, "hooks/", 6);
    assert_false(csn_scan_cache_has(&set, &other));
    csn_scan_cache_release(&set);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
        TEST(what_is_remembered_hides_nothing),
        TEST(a_change_in_the_same_tick_is_not_missed),
        TEST(what_was_there_at_the_last_scan_was_not_moved_there),
        TEST(what_becomes_a_repository_was_not_seen_as_one),
        TEST(a_tree_that_was_not_seen_before_is_told),
        cmocka_unit_test(a_new_name_or_inode_is_another_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
