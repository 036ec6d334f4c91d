/* search_moved.c: what a scan remembers, and what it finds when directories were moved. */
#include "search/changed.h"

#include "scan_fixture.h"
#include "search/place.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_remembered_hides_nothing),
        TEST(a_change_in_the_same_tick_is_not_missed),
        TEST(what_was_there_at_the_last_scan_was_not_moved_there),
        TEST(what_becomes_a_repository_was_not_seen_as_one),
        TEST(a_tree_that_was_not_seen_before_is_told),
        cmocka_unit_test(a_new_name_or_inode_is_another_place),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
