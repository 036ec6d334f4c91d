/* files.c: delete, mkdir, rename, stat and list. Names may hold any byte; links are acted on,
 * not followed, where something is removed or moved. */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* Names that shells, parsers and terminals stumble over. Sorted by byte. */
static const char *const odd_names[] = {
    " lead",       "$(x)",        "%2e%2e",
    "*",           "-dash",       "-rf",
    "...",         "..foo",       ".hidden",
    "[a]",         "a\"b",        "a'b",
    "a;b",         "back\\slash", "cafe\xcc\x81",
    "caf\xc3\xa9", "new\nline",   "non\xffutf8",
    "tab\tname",   "trail ",      "\xe2\x80\xaegnp.exe",
};
#define ODD (sizeof(odd_names) / sizeof(odd_names[0]))

/* ---- delete ---- */

/* S1: DeleteFile */
static void delete_removes_a_file(csn_fx *f)
{
    csn_fx_put(f, "f", "x");
    ok(csn_delete(f->sb, "f", 0, E));
    assert_false(csn_fx_exists(f, "f"));
    fails(CSN_NOT_FOUND, csn_delete(f->sb, "f", 0, E));
    says("'f'");
    fails(CSN_NOT_FOUND, csn_delete(f->sb, "no/f", 0, E));
    fails(CSN_INVALID, csn_delete(f->sb, "", 0, E));
    fails(CSN_INVALID, csn_delete(f->sb, NULL, 0, E));
    fails(CSN_INVALID, csn_delete(f->sb, "f", CSN_FILE_APPEND, E));
}

static void delete_of_directories(csn_fx *f)
{
    csn_fx_run(f, "mkdir -p empty full/a/b && echo x > full/a/b/c");
    ok(csn_delete(f->sb, "empty", 0, E));
    fails(CSN_CONFLICT, csn_delete(f->sb, "full", 0, E)); /* not empty */
    assert_true(csn_fx_exists(f, "full/a/b/c"));
    ok(csn_delete(f->sb, "full", CSN_FILE_RECURSIVE, E));
    assert_false(csn_fx_exists(f, "full"));
    csn_fx_put(f, "file", "x");
    ok(csn_delete(f->sb, "file", CSN_FILE_RECURSIVE, E));
    fails(CSN_NOT_FOUND, csn_delete(f->sb, "full", CSN_FILE_RECURSIVE, E));
}

/* delete acts on the link itself, never on its target */
static void delete_removes_links_not_targets(csn_fx *f)
{
    csn_fx_run(
        f, "mkdir -p tree/sub real && echo x > real/f && ln -s real link && ln -s gone dang");
    assert_int_equal(symlink(f->outside, csn_fx_host(f, "tree/sub/out")), 0);
    assert_int_equal(symlink("../real", csn_fx_host(f, "tree/in")), 0);
    ok(csn_delete(f->sb, "link", 0, E));
    ok(csn_delete(f->sb, "dang", 0, E));
    csn_fx_holds(f, "real/f", "x\n");
    ok(csn_delete(f->sb, "tree", CSN_FILE_RECURSIVE, E));
    csn_fx_holds(f, "real/f", "x\n");
    csn_fx_canary(f);
}

static void delete_of_the_root_is_refused(csn_fx *f)
{
    static const char *const roots[] = {".", "./", "./."};

    csn_fx_put(f, "f", "x");
    for (size_t i = 0; i < 3; i++)
        fails(CSN_INVALID, csn_delete(f->sb, roots[i], CSN_FILE_RECURSIVE, E));
    csn_fx_holds(f, "f", "x");
}

static void delete_of_special_files(csn_fx *f)
{
    csn_fx_run(f, "mkfifo pipe");
    ok(csn_delete(f->sb, "pipe", 0, E));
    assert_false(csn_fx_exists(f, "pipe"));
}

/* P87, D39 */
static void delete_of_a_very_deep_tree(csn_fx *f)
{
    csn_fx_run(f, "i=0; p=top; while [ $i -lt 600 ]; do p=$p/n; i=$((i+1)); done; "
                  "mkdir -p $p; echo leaf > $p/leaf");
    ok(csn_delete(f->sb, "top", CSN_FILE_RECURSIVE, E));
    assert_int_equal(csn_fx_strays(f, NULL), 0);
}

/* ---- mkdir ---- */

static void mkdir_makes_parents(csn_fx *f)
{
    AUTO(csn_file_list, l);

    ok(csn_mkdir(f->sb, "a/b/c", 0, E));
    ok(csn_stat(f->sb, "a/b/c", 0, &l, E));
    assert_int_equal(l->items[0].is_dir, 1);
    fails(CSN_NOT_FOUND, csn_mkdir(f->sb, "x/y", CSN_FILE_NO_PARENTS, E));
    assert_false(csn_fx_exists(f, "x"));
    ok(csn_mkdir(f->sb, "x", CSN_FILE_NO_PARENTS, E));
    ok(csn_mkdir(f->sb, "slash/", 0, E));
    fails(CSN_INVALID, csn_mkdir(f->sb, "", 0, E));
}

static void mkdir_of_what_is_there(csn_fx *f)
{
    csn_fx_run(f, "mkdir d && echo x > file && ln -s d link");
    ok(csn_mkdir(f->sb, "d", 0, E)); /* as mkdir -p */
    fails(CSN_EXISTS, csn_mkdir(f->sb, "d", CSN_FILE_NO_PARENTS, E));
    fails(CSN_WRONG_TYPE, csn_mkdir(f->sb, "file", 0, E));
    fails(CSN_WRONG_TYPE, csn_mkdir(f->sb, "file/sub", 0, E));
    ok(csn_mkdir(f->sb, "link/sub", 0, E));
    assert_true(csn_fx_exists(f, "d/sub"));
}

/* ---- rename ---- */

static void rename_moves_files_and_directories(csn_fx *f)
{
    csn_fx_run(f, "mkdir -p dir/sub && echo x > dir/sub/f && echo y > g");
    ok(csn_rename(f->sb, "g", "h", 0, E));
    assert_false(csn_fx_exists(f, "g"));
    csn_fx_holds(f, "h", "y\n");
    ok(csn_rename(f->sb, "dir", "moved", 0, E));
    csn_fx_holds(f, "moved/sub/f", "x\n");
    ok(csn_rename(f->sb, "h", "new/parents/h", 0, E)); /* parents are made, as for write */
    csn_fx_holds(f, "new/parents/h", "y\n");
    csn_fx_put(f, "i", "z");
    fails(CSN_NOT_FOUND, csn_rename(f->sb, "i", "no/i", CSN_FILE_NO_PARENTS, E));
    assert_false(csn_fx_exists(f, "no"));
    fails(CSN_NOT_FOUND, csn_rename(f->sb, "missing", "x", 0, E));
    fails(CSN_INVALID, csn_rename(f->sb, "", "x", 0, E));
    fails(CSN_INVALID, csn_rename(f->sb, "i", "", 0, E));
    csn_fx_holds(f, "i", "z");
}

/* D36 */
static void rename_over_what_is_there(csn_fx *f)
{
    csn_fx_run(f,
               "echo a > a; echo b > b; mkdir empty full dir; echo x > full/x; ln -s a link; "
               "ln -s nowhere dang");
    ok(csn_rename(f->sb, "a", "b", 0, E)); /* replaces, as rename(2) does */
    csn_fx_holds(f, "b", "a\n");
    fails(CSN_WRONG_TYPE, csn_rename(f->sb, "b", "full", 0, E));
    fails(CSN_WRONG_TYPE, csn_rename(f->sb, "dir", "b", 0, E));
    fails(CSN_CONFLICT, csn_rename(f->sb, "dir", "full", 0, E));
    fails(CSN_INVALID, csn_rename(f->sb, "full", "full/inside", 0, E));
    csn_fx_holds(f, "full/x", "x\n");
    ok(csn_rename(f->sb, "b", "b", 0, E)); /* the same file: nothing */
    csn_fx_holds(f, "b", "a\n");
    ok(csn_rename(f->sb, "b", "dang", 0, E)); /* replaces the link, not its target */
    assert_false(csn_fx_exists(f, "nowhere"));
    csn_fx_holds(f, "dang", "a\n");
}

static void rename_moves_the_link_itself(csn_fx *f)
{
    AUTO(csn_file_list, l);

    csn_fx_run(f, "echo real > real && ln -s real link");
    ok(csn_rename(f->sb, "link", "link2", 0, E));
    ok(csn_stat(f->sb, "link2", CSN_FILE_NOFOLLOW, &l, E));
    assert_int_equal(l->items[0].is_symlink, 1);
    csn_fx_holds(f, "real", "real\n");
}

/* ---- stat ---- */

/* S2: fileExists, isDirectory */
static void stat_tells_what_it_is(csn_fx *f)
{
    AUTO(csn_file_list, file);
    AUTO(csn_file_list, dir);
    AUTO(csn_file_list, link);
    AUTO(csn_file_list, target);
    AUTO(csn_file_list, pipe);

    csn_fx_run(f, "printf 12345 > f && chmod 640 f && mkdir d && ln -s f link && mkfifo p");
    struct timeval tv[2] = {{1000000000, 0}, {1234567890, 0}};
    assert_int_equal(utimes(csn_fx_host(f, "f"), tv), 0);
    ok(csn_stat(f->sb, "f", 0, &file, E));
    assert_int_equal(file->count, 1);
    assert_string_equal(file->items[0].path, "f");
    assert_int_equal(file->items[0].file_size, 5);
    assert_int_equal(file->items[0].mode, S_IFREG | 0640);
    assert_int_equal(file->items[0].is_dir, 0);
    assert_int_equal(file->items[0].is_symlink, 0);
    assert_int_equal(file->items[0].nlink, 1);
    assert_int_equal(file->items[0].modified_ns / 1000000000, 1234567890);
    assert_null(file->items[0].target);
    ok(csn_stat(f->sb, "d", 0, &dir, E));
    assert_int_equal(dir->items[0].is_dir, 1);
    assert_int_equal(dir->items[0].mode & S_IFMT, S_IFDIR);
    ok(csn_stat(f->sb, "link", CSN_FILE_NOFOLLOW, &link, E));
    assert_int_equal(link->items[0].is_symlink, 1);
    assert_string_equal(link->items[0].target, "f");
    ok(csn_stat(f->sb, "link", 0, &target, E));
    assert_int_equal(target->items[0].is_symlink, 0);
    assert_int_equal(target->items[0].file_size, 5);
    ok(csn_stat(f->sb, "p", 0, &pipe, E));
    assert_int_equal(pipe->items[0].mode & S_IFMT, S_IFIFO);
}

static void stat_of_what_is_missing(csn_fx *f)
{
    csn_file_list *l = NULL;

    csn_fx_run(f, "echo x > file && ln -s nowhere dang && ln -s loop loop");
    fails(CSN_NOT_FOUND, csn_stat(f->sb, "missing", 0, &l, E));
    says("File 'missing' not found");
    fails(CSN_NOT_FOUND, csn_stat(f->sb, "dang", 0, &l, E));
    fails(CSN_WRONG_TYPE, csn_stat(f->sb, "file/x", 0, &l, E));
    csn_conf_reset();
    assert_int_not_equal(csn_stat(f->sb, "loop", 0, &l, E), CSN_OK);
    assert_null(l);
}

/* D49 */
static void stat_of_odd_times(csn_fx *f)
{
    static const time_t times[] = {-2177452800, 2145916800, 15032385535, 0, -1};

    csn_fx_put(f, "f", "x");
    for (size_t i = 0; i < 5; i++) {
        AUTO(csn_file_list, l);
        AUTO(csn_file_list, all);
        struct timespec ts[2] = {{times[i], 0}, {times[i], 0}}, have;
        struct stat st;

        assert_int_equal(utimensat(AT_FDCWD, csn_fx_host(f, "f"), ts, 0), 0);
        assert_int_equal(stat(csn_fx_host(f, "f"), &st), 0);
        have = st.st_mtim; /* the filesystem may have clamped it */
        ok(csn_stat(f->sb, "f", 0, &l, E));
        int64_t ns = l->items[0].modified_ns;
        if (have.tv_sec < INT64_MAX / 1000000000)
            assert_true(ns == (int64_t)have.tv_sec * 1000000000 + have.tv_nsec);
        else /* beyond the year 2262 nanoseconds do not fit: the end of the range, not nonsense
              */
            assert_true(ns > (int64_t)9000000000 * 1000000000);
        ok(csn_list(f->sb, ".", 0, &all, E));
        assert_int_equal(all->count, 1);
    }
}

/* ---- list ---- */

/* S0 "lsInfo lists files", S1 TestLocalSandbox_ListDirectory, S3 "should list files in sandbox"
 */
static void list_is_sorted_and_complete(csn_fx *f)
{
    AUTO(csn_file_list, l);
    static const char *const want[] = {".dot", "Zed", "a", "b", "dir", "link"};

    csn_fx_run(f, "echo 1 > b; echo 22 > a; echo x > Zed; mkdir dir; echo y > dir/inner; "
                  "ln -s a link; echo z > .dot");
    ok(csn_list(f->sb, ".", 0, &l, E));
    assert_int_equal(l->count, 6);
    assert_int_equal(l->truncated, 0);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(l->items[i].path, want[i]);
    assert_int_equal(l->items[2].file_size, 3);
    assert_int_equal(l->items[4].is_dir, 1);
    assert_int_equal(l->items[5].is_symlink, 1);
    assert_string_equal(l->items[5].target, "a");
    assert_true(l->items[0].modified_ns > 0);
    assert_int_equal(l->items[3].mode & S_IFMT, S_IFREG);
}

static void list_of_a_subdirectory_and_through_a_link(csn_fx *f)
{
    AUTO(csn_file_list, a);
    AUTO(csn_file_list, b);
    AUTO(csn_file_list, c);

    csn_fx_run(f, "mkdir -p d/e && echo x > d/e/f && ln -s d/e link");
    ok(csn_list(f->sb, "d/e", 0, &a, E));
    assert_int_equal(a->count, 1);
    assert_string_equal(a->items[0].path, "f");
    ok(csn_list(f->sb, "link", 0, &b, E));
    assert_int_equal(b->count, 1);
    ok(csn_list(f->sb, NULL, 0, &c, E)); /* the working directory */
    assert_int_equal(c->count, 2);
}

/* S3: "should return empty array when sandbox is empty"; S0: a missing directory is an empty
 * list in its adapter, not_found here */
static void list_of_nothing(csn_fx *f)
{
    AUTO(csn_file_list, l);
    csn_file_list *none = NULL;

    ok(csn_list(f->sb, ".", 0, &l, E));
    assert_int_equal(l->count, 0);
    csn_fx_put(f, "file", "x");
    fails(CSN_NOT_FOUND, csn_list(f->sb, "missing", 0, &none, E));
    says("missing");
    fails(CSN_WRONG_TYPE, csn_list(f->sb, "file", 0, &none, E));
    assert_null(none);
}

/* P72-P82: lossless, and reachable again by the name that was listed */
static void odd_names_survive_every_operation(csn_fx *f)
{
    AUTO(csn_file_list, l);
    AUTO(csn_file_list, g);

    for (size_t i = 0; i < ODD; i++)
        csn_fx_put(f, csn_fx_keep(f, csn_test_format("./%s", odd_names[i])), odd_names[i]);
    ok(csn_list(f->sb, ".", 0, &l, E));
    assert_int_equal(l->count, ODD);
    ok(csn_glob(f->sb, "*", NULL, 0, &g, E));
    assert_int_equal(g->count, ODD);
    for (size_t i = 0; i < ODD; i++) {
        AUTO(csn_file_list, st);
        char *to = csn_fx_keep(f, csn_test_format("moved/%s", odd_names[i]));

        assert_string_equal(l->items[i].path, odd_names[i]);
        assert_string_equal(g->items[i].path, odd_names[i]);
        csn_fx_holds(f, odd_names[i], odd_names[i]);
        ok(csn_stat(f->sb, odd_names[i], 0, &st, E));
        ok(csn_rename(f->sb, odd_names[i], to, 0, E));
        ok(csn_delete(f->sb, to, 0, E));
    }
    csn_file_list_free(l);
    l = NULL;
    ok(csn_list(f->sb, "moved", 0, &l, E));
    assert_int_equal(l->count, 0);
}

/* D44: two names that look alike are two files */
static void names_are_not_folded(csn_fx *f)
{
    csn_fx_put(f, "caf\xc3\xa9", "nfc");
    csn_fx_put(f, "cafe\xcc\x81", "nfd");
    csn_fx_put(f, "CASE", "upper");
    csn_fx_put(f, "case", "lower");
    csn_fx_holds(f, "caf\xc3\xa9", "nfc");
    csn_fx_holds(f, "CASE", "upper");
    assert_int_equal(csn_fx_strays(f, NULL), 4);
}

static void list_of_many_entries(csn_fx *f)
{
    AUTO(csn_file_list, l);

    csn_fx_run(f, "i=0; while [ $i -lt 3000 ]; do : > f$i; i=$((i+1)); done");
    ok(csn_list(f->sb, ".", 0, &l, E));
    assert_int_equal(l->count, 3000);
    for (size_t i = 1; i < l->count; i++)
        assert_true(strcmp(l->items[i - 1].path, l->items[i].path) < 0);
}

const csn_conf_test csn_conf_files[] = {
    T(delete_removes_a_file),
    T(delete_of_directories),
    T(delete_removes_links_not_targets),
    T(delete_of_the_root_is_refused),
    T(delete_of_special_files),
    T(delete_of_a_very_deep_tree),
    T(mkdir_makes_parents),
    T(mkdir_of_what_is_there),
    T(rename_moves_files_and_directories),
    T(rename_over_what_is_there),
    T(rename_moves_the_link_itself),
    T(stat_tells_what_it_is),
    T(stat_of_what_is_missing),
    T(stat_of_odd_times),
    T(list_is_sorted_and_complete),
    T(list_of_a_subdirectory_and_through_a_link),
    T(list_of_nothing),
    T(odd_names_survive_every_operation),
    T(names_are_not_folded),
    T(list_of_many_entries),
    T_END,
};
