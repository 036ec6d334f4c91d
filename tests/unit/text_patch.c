/* Patches of one file: the exact text, and that the real git applies it. */
#include "git_fixture.h"

#include "base/error.h"
#include "base/hash.h"
#include "random_text.h"
#include "text/patch.h"

#define FILE_MODE (S_IFREG | 0644)
#define EXEC_MODE (S_IFREG | 0755)
#define LINK_MODE (S_IFLNK | 0777)
#define TEXT(s)                                                                                \
    {                                                                                          \
        (s), sizeof(s) - 1                                                                     \
    }
/* A file, or no file. */
#define F(path, mode, s) (&(const csn_patch_file){path, mode, TEXT(s)})

static void check(const csn_patch_file *before, const csn_patch_file *after,
                  csn_patch_kind kind, const char *want, uint64_t removed, uint64_t added)
{
    csn_autobuf out;
    csn_patch_stat stat = {77, 77, false}, counted = {88, 88, false};
    csn_error *err = NULL;

    csn_buf_init(&out, 1 << 20);
    if (csn_patch_write(before, after, CSN_PATCH_CONTEXT, &out, &stat, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    assert_string_equal(out.data ? out.data : "", want);
    assert_int_equal(csn_patch_kind_of(before, after), kind);
    assert_int_equal(stat.removed, removed);
    assert_int_equal(stat.added, added);
    assert_int_equal(csn_patch_count(before, after, &counted, NULL), CSN_OK);
    assert_memory_equal(&counted, &stat, sizeof(stat));
}

static void added_and_deleted_files(void **state)
{
    (void)state;
    check(NULL, F("d/x", FILE_MODE, "a\nb\n"), CSN_PATCH_ADDED,
          "diff --git a/d/x b/d/x\nnew file mode 100644\n--- /dev/null\n+++ b/d/x\n"
          "@@ -0,0 +1,2 @@\n+a\n+b\n",
          0, 2);
    check(F("x", EXEC_MODE, "a"), NULL, CSN_PATCH_DELETED,
          "diff --git a/x b/x\ndeleted file mode 100755\n--- a/x\n+++ /dev/null\n"
          "@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n",
          1, 0);
    check(NULL, F("x", FILE_MODE, ""), CSN_PATCH_ADDED,
          "diff --git a/x b/x\nnew file mode 100644\n", 0, 0);
    check(F("x", FILE_MODE, ""), NULL, CSN_PATCH_DELETED,
          "diff --git a/x b/x\ndeleted file mode 100644\n", 0, 0);
}

static void modified_files_show_three_lines_around_a_change(void **state)
{
    (void)state;
    check(F("x", FILE_MODE, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n"),
          F("x", FILE_MODE, "1\n2\n3\n4\nX\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"),
          CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
          "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"
          "@@ -12,3 +12,4 @@\n 12\n 13\n 14\n+15\n",
          1, 2);
}

static void changes_six_lines_apart_share_a_hunk(void **state)
{
    (void)state;
    check(F("x", FILE_MODE, "a\n1\n2\n3\n4\n5\n6\nb\n"),
          F("x", FILE_MODE, "A\n1\n2\n3\n4\n5\n6\nB\n"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
          "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n",
          2, 2);
    check(F("x", FILE_MODE, "a\n1\n2\n3\n4\n5\n6\n7\nb\n"),
          F("x", FILE_MODE, "A\n1\n2\n3\n4\n5\n6\n7\nB\n"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
          "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n",
          2, 2);
}

static void a_missing_last_line_end_is_told(void **state)
{
    (void)state;
    check(F("x", FILE_MODE, "a\nb"), F("x", FILE_MODE, "a\nb\n"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n"
          "\\ No newline at end of file\n+b\n",
          1, 1);
    check(F("x", FILE_MODE, "a\nb"), F("x", FILE_MODE, "c\nb"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n"
          "\\ No newline at end of file\n",
          1, 1);
}

static void modes_links_and_types(void **state)
{
    (void)state;
    check(F("x", FILE_MODE, "a\n"), F("x", EXEC_MODE, "a\n"), CSN_PATCH_MODE,
          "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", 0, 0);
    check(F("x", FILE_MODE, "a\n"), F("x", EXEC_MODE, "b\n"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n"
          "@@ -1 +1 @@\n-a\n+b\n",
          1, 1);
    check(F("x", LINK_MODE, "to"), F("x", LINK_MODE, "too"), CSN_PATCH_MODIFIED,
          "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-to\n"
          "\\ No newline at end of file\n+too\n\\ No newline at end of file\n",
          1, 1);
    check(F("x", FILE_MODE, "a\n"), F("x", LINK_MODE, "to"), CSN_PATCH_RETYPED,
          "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n"
          "@@ -1 +0,0 @@\n-a\n"
          "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n"
          "@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n",
          1, 1);
    check(F("x", S_IFREG | 0600, "a\n"), F("x", FILE_MODE, "a\n"), CSN_PATCH_SAME, "", 0, 0);
}

static void renames(void **state)
{
    (void)state;
    check(F("x", FILE_MODE, "a\n"), F("y", FILE_MODE, "a\n"), CSN_PATCH_RENAMED,
          "diff --git a/x b/y\nrename from x\nrename to y\n", 0, 0);
}

static void names_are_quoted_as_git_quotes_them(void **state)
{
    static const struct {
        const char *path, *want;
    } names[] = {
        {"plain-name_1.c", "a/plain-name_1.c"},
        {"with space", "a/with space"},
        {"tab\tnl\nquote\"back\\", "\"a/tab\\tnl\\nquote\\\"back\\\\\""},
        {"\x01\x1f\x7f\a\b\v\f\r", "\"a/\\001\\037\\177\\a\\b\\v\\f\\r\""},
        {"\xc3\xa9", "\"a/\\303\\251\""},
        {"~", "a/~"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        csn_autobuf out;
        csn_buf_init(&out, 1000);
        assert_int_equal(csn_patch_put_path(&out, "a/", names[i].path), 0);
        assert_string_equal(out.data, names[i].want);
    }
    check(F("a b", FILE_MODE, "a\n"), F("a b", FILE_MODE, "b\n"), CSN_PATCH_MODIFIED,
          "diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-a\n+b\n", 1, 1);
}

static void binary_changes_are_named_by_hash(void **state)
{
    char want[512], old[CSN_HASH_HEX], new[CSN_HASH_HEX];

    (void)state;
    csn_hash_bytes("a\0b", 3, old);
    csn_hash_bytes("text\n", 5, new);
    snprintf(
        want, sizeof(want),
        "diff --git a/x b/x\nindex 0000000..0000000 100644\nBinary files a/x and b/x differ\n"
        "# old: 3 bytes, sha256 %s\n# new: 5 bytes, sha256 %s\n",
        old, new);
    check(F("x", FILE_MODE, "a\0b"), F("x", FILE_MODE, "text\n"), CSN_PATCH_MODIFIED, want, 0,
          0);
    snprintf(want, sizeof(want),
             "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..0000000\n"
             "Binary files /dev/null and b/x differ\n"
             "# new: 3 bytes, sha256 %s\n",
             old);
    check(NULL, F("x", FILE_MODE, "a\0b"), CSN_PATCH_ADDED, want, 0, 0);
}

static void wrong_requests_are_invalid_and_leave_the_buffer(void **state)
{
    static const char *const paths[] = {"",     "/x",     "a//b",  "a/", ".",
                                        "../x", "a/../b", "a/./b", NULL};
    csn_autobuf out;

    (void)state;
    csn_buf_init(&out, 40);
    assert_int_equal(csn_buf_puts(&out, "before"), 0);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_int_equal(
            csn_patch_write(NULL, F(paths[i], FILE_MODE, "a"), 3, &out, NULL, NULL),
            CSN_INVALID);
    assert_int_equal(csn_patch_write(NULL, F("x", S_IFDIR | 0755, ""), 3, &out, NULL, NULL),
                     CSN_INVALID);
    assert_int_equal(csn_patch_write(NULL, NULL, 3, &out, NULL, NULL), CSN_INVALID);
    assert_int_equal(csn_patch_write(NULL, F("x", FILE_MODE, "long\n"), 3, &out, NULL, NULL),
                     CSN_TOO_LARGE);
    assert_string_equal(out.data, "before");
    assert_int_equal(out.len, 6);
    assert_int_equal(out.err, 0);
}

/* ---- the real git ---------------------------------------------------------------------- */

#define PAIRS 60

/* One file of the directory, before and after. */
typedef struct pair {
    char path[64];
    csn_buf content[2];
    csn_patch_file side[2];
    bool there[2];
} pair;

static void pair_make(pair *p, unsigned i)
{
    static const char *const names[] = {
        "plain%u", "dir/sub/%u",     "with space %u", "tab\t%u",  "quote\"%u", "back\\%u",
        "nl\n%u",  "caf\xc3\xa9 %u", "\xff\x01%u",    "x b/x %u", "-dash %u",  " lead %u"};
    static const unsigned alphabets[] = {2, 10, 1000};
    random_style s = {alphabets[random_below(3)], random_below(2) ? 0 : 50, 40};
    unsigned shape = i % 10; /* the first ten are one of each */

    memset(p, 0, sizeof(*p));
    snprintf(p->path, sizeof(p->path), names[i % 12], i);
    for (int n = 0; n < 2; n++)
        csn_buf_init(&p->content[n], 1 << 20);
    random_text(&p->content[0], shape == 7 ? 0 : random_below(40), &s);
    random_change(&p->content[1], as_text(&p->content[0]), random_below(40), &s);
    if (shape == 8)
        (void)csn_buf_puts(&p->content[1], "\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n\xff\r\n\r");
    for (int n = 0; n < 2; n++) {
        bool link = shape == 4 || (shape == 5 && n == 0) || (shape == 6 && n == 1);
        p->there[n] = shape != (n == 0 ? 2 : 3) && !(shape == 7 && n == 0);
        if (link) {
            csn_buf_release(&p->content[n]);
            (void)csn_buf_printf(&p->content[n], "target/%u", random_below(1000));
        }
        p->side[n] = (csn_patch_file){.path = p->path, .content = as_text(&p->content[n])};
        p->side[n].mode = link                            ? LINK_MODE
                          : shape == 1 && random_below(2) ? EXEC_MODE
                                                          : FILE_MODE;
    }
}

static void pair_release(pair *p)
{
    csn_buf_release(&p->content[0]);
    csn_buf_release(&p->content[1]);
}

static void put_side(const git_fixture *r, const csn_patch_file *f)
{
    char path[PATH_MAX], dir[PATH_MAX];

    snprintf(path, sizeof(path), "tree/%s", f->path);
    snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
    room_mkdir(r, dir);
    if (S_ISLNK(f->mode)) {
        assert_int_equal(symlinkat(f->content.data, r->fd, path), 0);
        return;
    }
    room_put_bytes(r, path, f->content.data, f->content.len);
    assert_int_equal(fchmodat(r->fd, path, f->mode & 07777, 0), 0);
}

/* What is in the directory is the side, or nothing. */
static void check_side(const git_fixture *r, const pair *p)
{
    char path[PATH_MAX], target[100];
    struct stat st;
    const csn_patch_file *want = &p->side[1];

    snprintf(path, sizeof(path), "tree/%s", p->path);
    bool there = fstatat(r->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (there != p->there[1])
        fail_msg("%s: %s", p->path, there ? "not deleted" : "not there");
    if (!there)
        return;
    assert_int_equal(st.st_mode & S_IFMT, want->mode & S_IFMT);
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(r->fd, path, target, sizeof(target));
        assert_true(csn_text_equal((csn_text){target, n > 0 ? (size_t)n : 0}, want->content));
        return;
    }
    assert_int_equal(st.st_mode & S_IXUSR, want->mode & S_IXUSR);
    size_t len = 0;
    csn_autofree char *data = room_get(r->fd, path, &len);
    if (!csn_text_equal((csn_text){data, len}, want->content))
        fail_msg("%s: other content", p->path);
}

static void git_applies_random_patches(void **state)
{
    static pair pairs[PAIRS];
    csn_autobuf patch;
    git_fixture r;

    (void)state;
    SKIP_WITHOUT_GIT();
    random_begin();
    git_room_make(&r);
    room_mkdir(&r, "tree");
    csn_buf_init(&patch, 1 << 22);
    for (unsigned i = 0; i < PAIRS; i++) {
        pair *p = &pairs[i];
        pair_make(p, i);
        if (p->there[0])
            put_side(&r, &p->side[0]);
        assert_int_equal(csn_patch_write(p->there[0] ? &p->side[0] : NULL,
                                         p->there[1] ? &p->side[1] : NULL, CSN_PATCH_CONTEXT,
                                         &patch, NULL, NULL),
                         CSN_OK);
    }
    room_put_bytes(&r, "patch", patch.data, patch.len);
    git(&r, "tree", "apply --whitespace=nowarn ../patch");
    for (unsigned i = 0; i < PAIRS; i++) {
        check_side(&r, &pairs[i]);
        pair_release(&pairs[i]);
    }
    git_room_wipe(&r);
}

static void git_refuses_a_binary_change_and_reads_past_its_hashes(void **state)
{
    csn_autobuf patch;
    git_fixture r;
    size_t len = 0;

    (void)state;
    SKIP_WITHOUT_GIT();
    git_room_make(&r);
    csn_buf_init(&patch, 1 << 20);
    assert_int_equal(csn_patch_write(F("bin", FILE_MODE, "a\0"), F("bin", FILE_MODE, "b\0"), 3,
                                     &patch, NULL, NULL),
                     CSN_OK);
    assert_int_equal(csn_patch_write(F("x", FILE_MODE, "a\n"), F("x", FILE_MODE, "b\n"), 3,
                                     &patch, NULL, NULL),
                     CSN_OK);
    room_put_bytes(&r, "bin", "a\0", 2);
    room_put(&r, "x", "a\n");
    room_put_bytes(&r, "patch", patch.data, patch.len);
    assert_int_not_equal(git_try(&r, ".", "apply patch"), 0);
    git(&r, ".", "apply --exclude=bin patch");
    csn_autofree char *data = room_get(r.fd, "x", &len);
    assert_string_equal(data, "b\n");
    git_room_wipe(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_and_deleted_files),
        cmocka_unit_test(modified_files_show_three_lines_around_a_change),
        cmocka_unit_test(changes_six_lines_apart_share_a_hunk),
        cmocka_unit_test(a_missing_last_line_end_is_told),
        cmocka_unit_test(modes_links_and_types),
        cmocka_unit_test(renames),
        cmocka_unit_test(names_are_quoted_as_git_quotes_them),
        cmocka_unit_test(binary_changes_are_named_by_hash),
        cmocka_unit_test(wrong_requests_are_invalid_and_leave_the_buffer),
        cmocka_unit_test(git_applies_random_patches),
        cmocka_unit_test(git_refuses_a_binary_change_and_reads_past_its_hashes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
