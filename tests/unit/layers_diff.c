/* layers_diff.c: hashes, counts and patches of changes. */
#include "git_fixture.h"
#include "layer_world.h"

#include "base/limits.h"
#include "layers/diff.h"

static layer_world lw;

static int setup(void **state)
{
    (void)state;
    world_make(&lw, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_wipe(&lw);
    return 0;
}

static csn_layer_changes list(void)
{
    csn_layer_changes c = {0};

    assert_int_equal(csn_layer_changes_list(&lw.stack, NULL, &c, NULL), CSN_OK);
    return c;
}

/* Of the first change. */
static csn_diff_facts facts(unsigned want)
{
    csn_layer_changes c = list();
    csn_diff_facts f;

    assert_int_not_equal(c.count, 0);
    assert_int_equal(csn_diff_facts_read(&lw.stack, &c.v[0], want, &f, NULL), CSN_OK);
    csn_layer_changes_release(&c);
    return f;
}

static void large_file(const char *path, off_t size)
{
    world_file(&lw, path, "x");
    int fd = openat(lw.top_fd, path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static void hashes_are_those_of_both_sides(void **state)
{
    char old[CSN_HASH_HEX], new[CSN_HASH_HEX];

    (void)state;
    csn_hash_bytes("old\n", 4, old);
    csn_hash_bytes("new\n", 4, new);
    world_file(&lw, "base/f", "old\n");
    world_file(&lw, "0/f", "new\n");
    csn_diff_facts f = facts(CSN_FACTS_HASHES);
    assert_string_equal(f.before_hash, old);
    assert_string_equal(f.after_hash, new);
    assert_int_equal(f.added, 0);
    assert_false(f.binary);
    assert_string_equal(facts(CSN_FACTS_LINES).after_hash, "");
}

static void hash_of_a_link_is_that_of_its_text(void **state)
{
    char hash[CSN_HASH_HEX];

    (void)state;
    csn_hash_bytes("there", 5, hash);
    put_link(lw.top_fd, "there", "0/l");
    csn_diff_facts f = facts(CSN_FACTS_HASHES | CSN_FACTS_LINES);
    assert_string_equal(f.before_hash, "");
    assert_string_equal(f.after_hash, hash);
    assert_int_equal(f.added, 1);
}

static void lines_are_counted(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "a\nb\nc\n");
    world_file(&lw, "0/f", "a\nB\nc\nd\n");
    csn_diff_facts f = facts(CSN_FACTS_LINES);
    assert_int_equal(f.added, 2);
    assert_int_equal(f.removed, 1);
    assert_int_equal(facts(0).added, 0);
}

static void large_file_is_binary(void **state)
{
    csn_autobuf patch;

    (void)state;
    large_file("base/f", CSN_DIFF_FILE_MAX);
    large_file("0/f", CSN_DIFF_FILE_MAX + 1);
    csn_diff_facts f = facts(CSN_FACTS_LINES | CSN_FACTS_HASHES);
    assert_true(f.binary);
    assert_int_equal(f.added, 0);
    assert_string_not_equal(f.before_hash, f.after_hash);
    csn_layer_changes c = list();
    csn_buf_init(&patch, 4096);
    assert_int_equal(csn_diff_patch_write_all(&lw.stack, &c, 3, &patch, NULL), CSN_OK);
    assert_non_null(strstr(patch.data, "Binary files a/f and b/f differ\n"));
    assert_non_null(strstr(patch.data, f.before_hash));
    assert_non_null(strstr(patch.data, f.after_hash));
    csn_layer_changes_release(&c);
}

static void nul_makes_a_file_binary(void **state)
{
    (void)state;
    world_file(&lw, "base/f", "text\n");
    large_file("0/f", 100);
    assert_true(facts(0).binary);
}

static void file_that_changed_meanwhile_is_unavailable(void **state)
{
    csn_autobuf patch;
    csn_diff_facts f;

    (void)state;
    world_file(&lw, "0/a", "x\n");
    world_file(&lw, "0/f", "x\n");
    csn_layer_changes c = list();
    must(renameat(lw.top_fd, "0/f", lw.top_fd, "0/g") == 0, "rename");
    world_file(&lw, "0/f", "y\n");
    assert_int_equal(csn_diff_facts_read(&lw.stack, &c.v[1], 0, &f, NULL), CSN_UNAVAILABLE);
    csn_buf_init(&patch, 4096);
    csn_buf_puts(&patch, "before");
    assert_int_equal(csn_diff_patch_write_all(&lw.stack, &c, 3, &patch, NULL), CSN_UNAVAILABLE);
    assert_string_equal(patch.data, "before");
    csn_layer_changes_release(&c);
}

/* Applied to the base, nothing but times is left to change. */
static void git_applies_the_patch_of_all_changes(void **state)
{
    git_fixture r = {.fd = lw.top_fd};
    csn_autobuf patch, rest;

    (void)state;
    SKIP_WITHOUT_GIT();
    world_file(&lw, "base/changed", "a\nb\nc\n");
    world_file(&lw, "0/changed", "a\nB\nc\n");
    world_file(&lw, "base/mode", "x");
    world_file(&lw, "0/mode", "x");
    must(fchmodat(lw.top_fd, "0/mode", 0755, 0) == 0, "chmod");
    world_file(&lw, "base/touched", "x");
    world_file(&lw, "0/touched", "x");
    world_time(lw.top_fd, "0/touched", 77);
    world_file(&lw, "0/new dir/n\xc3\xa4w", "no newline");
    world_file(&lw, "base/dir_to_file/a/b", "x\n");
    world_file(&lw, "0/dir_to_file", "y\n");
    world_file(&lw, "base/file_to_dir", "x\n");
    world_file(&lw, "0/file_to_dir/a", "y\n");
    world_file(&lw, "base/file_to_link", "x\n");
    put_link(lw.top_fd, "changed", "0/file_to_link");
    world_file(&lw, "base/gone/f", "x\n");
    world_whiteout(&lw, "0/gone");
    must(mkfifoat(lw.top_fd, "0/fifo", 0600) == 0, "fifo");
    csn_layer_changes c = list();
    csn_buf_init(&patch, 1u << 20);
    assert_int_equal(csn_diff_patch_write_all(&lw.stack, &c, 3, &patch, NULL), CSN_OK);
    csn_layer_changes_release(&c);
    put_file(lw.top_fd, "patch", patch.data);
    memcpy(r.top, lw.top, sizeof(r.top));
    git(&r, "base", "apply --whitespace=nowarn ../patch");
    c = list();
    world_rows(&c, &rest);
    csn_layer_changes_release(&c);
    assert_string_equal(rest.data, "X changed\nX dir_to_file\nA fifo\nX file_to_dir/a\nX mode\n"
                                   "X new dir/n\xc3\xa4w\nX touched\n");
}

#define TEST(f)                                                                                \
    {                                                                                          \
#f, f, setup, teardown, NULL                                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hashes_are_those_of_both_sides),
        TEST(hash_of_a_link_is_that_of_its_text),
        TEST(lines_are_counted),
        TEST(large_file_is_binary),
        TEST(nul_makes_a_file_binary),
        TEST(file_that_changed_meanwhile_is_unavailable),
        TEST(git_applies_the_patch_of_all_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
