/* runtime_files.c: every path of the table through every file operation of the local backend,
 * with the kernel's resolver and with the walk. After each one: everything outside is as it
 * was, no temporary file is left, and a refused operation has changed nothing at all. */
#include "fixture.h"

#include <sys/resource.h>

#include "base/error.h"
#include "os/beneath.h"

static room rm;

typedef csn_status (*op_fn)(const char *path, csn_error **err);

static int ignore_entry(void *ctx, const char *path, const csn_file_stat *st,
                        const char *target)
{
    (void)ctx;
    (void)path;
    (void)st;
    (void)target;
    return 0;
}

static csn_status do_read(const char *path, csn_error **err)
{
    room_bytes b = {.answer = CSN_SINK_COUNT};
    csn_status st = room_read(&rm, path, &b, err);

    b.data[sizeof(b.data) - 1] = '\0';
    assert_true(st < 0 || strncmp(b.data, "outside", 7) != 0 || strstr(path, "hard"));
    return st;
}

static csn_status do_stat(const char *path, csn_error **err)
{
    csn_file_stat st;

    return csn_runtime_stat(&rm.l, path, 0, &st, NULL, err);
}

static csn_status do_list(const char *path, csn_error **err)
{
    return csn_runtime_list(&rm.l, path, 0, ignore_entry, NULL, err);
}

static csn_status do_walk(const char *path, csn_error **err)
{
    return csn_runtime_walk(&rm.l, path, 0, ignore_entry, NULL, err);
}

static csn_status do_write(const char *path, csn_error **err)
{
    return room_write_opts(&rm, path, "new content\n", 0, 0, NULL, err);
}

static csn_status do_append(const char *path, csn_error **err)
{
    return room_write_opts(&rm, path, "more\n", CSN_FILE_APPEND, 0, NULL, err);
}

static csn_status do_mkdir(const char *path, csn_error **err)
{
    return csn_runtime_mkdir(&rm.l, path, 0, err);
}

static csn_status do_delete(const char *path, csn_error **err)
{
    return csn_runtime_remove(&rm.l, path, CSN_FILE_RECURSIVE, err);
}

static csn_status do_rename_from(const char *path, csn_error **err)
{
    return csn_runtime_rename(&rm.l, path, "/moved here", 0, err);
}

static csn_status do_rename_to(const char *path, csn_error **err)
{
    return csn_runtime_rename(&rm.l, "/etc/passwd", path, 0, err);
}

static csn_status do_watch(const char *path, csn_error **err)
{
    void *w = NULL;
    csn_status st = csn_runtime_watch(&rm.l, path, 0, &w, err);

    csn_runtime_watch_free(w);
    return st;
}

static csn_status do_judge(const char *path, csn_error **err)
{
    char *resolved = NULL;
    csn_status st = csn_runtime_check_path(&rm.l, CSN_OP_WRITE, path, &resolved, err);

    assert_true(st < 0 || strncmp(resolved, rm.fx.root, strlen(rm.fx.root)) == 0);
    free(resolved);
    return st;
}

/* What an operation that follows links must say to each answer of the table. -100: anything but
 * an escape, since it depends on the case. */
typedef struct want {
    const char *name;
    op_fn fn;
    csn_status file, dir, notreg, enoent;
    bool own; /* acts on a link itself */
    bool changes;
} want;

#define ANY ((csn_status)-100)

static const want ops[] = {
    {"read", do_read, CSN_OK, CSN_WRONG_TYPE, CSN_WRONG_TYPE, CSN_NOT_FOUND, false, false},
    {"stat", do_stat, CSN_OK, CSN_OK, CSN_OK, CSN_NOT_FOUND, false, false},
    {"list", do_list, CSN_WRONG_TYPE, CSN_OK, CSN_WRONG_TYPE, CSN_NOT_FOUND, false, false},
    {"walk", do_walk, CSN_OK, CSN_OK, CSN_OK, CSN_NOT_FOUND, false, false},
    {"watch", do_watch, CSN_WRONG_TYPE, CSN_OK, CSN_WRONG_TYPE, CSN_NOT_FOUND, false, false},
    {"judge", do_judge, CSN_OK, CSN_OK, CSN_OK, ANY, false, false},
    {"write", do_write, CSN_OK, CSN_WRONG_TYPE, CSN_WRONG_TYPE, ANY, false, true},
    {"append", do_append, CSN_OK, CSN_WRONG_TYPE, CSN_WRONG_TYPE, ANY, false, true},
    {"mkdir", do_mkdir, CSN_WRONG_TYPE, CSN_OK, CSN_WRONG_TYPE, ANY, false, true},
    {"delete", do_delete, CSN_OK, ANY, CSN_OK, CSN_NOT_FOUND, true, true},
    {"rename-from", do_rename_from, CSN_OK, ANY, CSN_OK, CSN_NOT_FOUND, true, true},
    {"rename-to", do_rename_to, CSN_OK, ANY, CSN_OK, ANY, true, true},
};

static csn_status expected(const want *w, const char *answer)
{
    static const struct {
        const char *word;
        csn_status st;
    } fixed[] = {{"EXDEV", CSN_OUTSIDE},
                 {"ELOOP", CSN_INVALID},
                 {"ENOTDIR", CSN_WRONG_TYPE},
                 {"ENAMETOOLONG", CSN_INVALID}};

    for (size_t i = 0; i < 4; i++)
        if (strcmp(answer, fixed[i].word) == 0)
            return fixed[i].st;
    if (strcmp(answer, "OK-FILE") == 0)
        return w->file;
    if (strcmp(answer, "OK-DIR") == 0)
        return w->dir;
    return strcmp(answer, "NOTREG") == 0 ? w->notreg : w->enoent;
}

static void rebuild(void)
{
    int fd = openat(rm.fx.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(csn_tree_empty(fd), 0);
    close(fd);
    corpus_fill(&rm.fx);
}

static bool ends_as_link(const char *path)
{
    struct stat st;
    size_t len = strlen(path);
    char *text = strndup(path, path[len - 1] == '/' ? len - 1 : len);
    int fd = csn_beneath_open(rm.fx.fd, text, O_PATH | O_NOFOLLOW, 0);
    bool link = fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);

    free(text);

    if (fd >= 0)
        close(fd);
    return link;
}

/* 1: it went wrong. */
static int check(const want *w, const char *id, const char *path, csn_status want_st)
{
    csn_error *err = NULL;
    room_print before = room_fingerprint(&rm);
    csn_status st = w->fn(path, &err);
    room_print after = room_fingerprint(&rm);
    bool changed = before.sum != after.sum;
    int wrong = 0;

    wrong += want_st != ANY && st != want_st;
    wrong += want_st == ANY && st == CSN_OUTSIDE;
    wrong += !corpus_outside_intact(&rm.fx);
    wrong += after.temps != 0;
    wrong += changed && (st < 0 || !w->changes);
    wrong += (st < 0) != (err != NULL);
    wrong +=
        st == CSN_OUTSIDE && !strstr(csn_error_message(err), "path outside base directory");
    wrong += st == CSN_OUTSIDE && !csn_error_denial(err);
    if (wrong)
        print_message("# %s %s '%.40s': %s, expected %s%s%s%s\n", w->name, id, path,
                      csn_status_name(st), want_st == ANY ? "any" : csn_status_name(want_st),
                      changed ? ", changed" : "", after.temps ? ", temporary file" : "",
                      corpus_outside_intact(&rm.fx) ? "" : ", OUTSIDE TOUCHED");
    csn_error_free(err);
    if (changed)
        rebuild();
    return wrong != 0;
}

static int run_table(void)
{
    int wrong = 0;

    for (size_t i = 0; i < corpus_count; i++) {
        const corpus_case *c = &corpus_cases[i];
        char asked[8192];
        if (!c->path || !c->path[0] || c->path[0] == '/' || strcmp(c->id, "P87") == 0 ||
            (strcmp(c->id, "P92") == 0 && !rm.fx.chardev))
            continue;
        bool link = ends_as_link(c->path);
        snprintf(asked, sizeof(asked), "%s/%s", rm.fx.root, c->path);
        for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
            csn_status st = expected(&ops[k], c->beneath);
            if (ops[k].own && link) /* "link/" means what it points to, and that is not done */
                st = c->path[strlen(c->path) - 1] == '/' ? CSN_WRONG_TYPE : CSN_OK;
            wrong += check(&ops[k], c->id, asked, st);
        }
    }
    return wrong;
}

static void table_holds_for_every_operation(void **state)
{
    (void)state;
    assert_int_equal(run_table(), 0);
}

static void table_holds_for_every_operation_without_openat2(void **state)
{
    (void)state;
    csn_beneath_force_walk(true);
    int wrong = run_table();
    csn_beneath_force_walk(false);
    assert_int_equal(wrong, 0);
}

/* P23-P27, P68, P69: a leading slash is the base; the base's own host path names itself. */
static void absolute_paths_start_at_the_base(void **state)
{
    char path[256];

    (void)state;
    assert_int_equal(do_read("/etc/passwd", NULL), CSN_OK);
    assert_int_equal(do_read("//etc/passwd", NULL), CSN_OK);
    assert_int_equal(do_list("/", NULL), CSN_OK);
    assert_int_equal(do_read("/", NULL), CSN_WRONG_TYPE);
    assert_int_equal(do_list("/..", NULL), CSN_OUTSIDE);
    assert_int_equal(do_read("/proc/self/root/etc/passwd", NULL), CSN_NOT_FOUND);
    assert_int_equal(do_read("/dev/fd/0", NULL), CSN_NOT_FOUND);
    snprintf(path, sizeof(path), "%s/target", rm.fx.root);
    assert_int_equal(do_read(path, NULL), CSN_OK);
    snprintf(path, sizeof(path), "/%s//target", rm.fx.root);
    assert_int_equal(do_read(path, NULL), CSN_OK);
    snprintf(path, sizeof(path), "%s/../outside", rm.fx.root);
    assert_int_equal(do_read(path, NULL), CSN_OUTSIDE);
    /* a neighbour that only begins with the same letters is not below it */
    snprintf(path, sizeof(path), "%s-evil/target", rm.fx.root);
    assert_int_equal(do_read(path, NULL), CSN_NOT_FOUND);
    snprintf(path, sizeof(path), "%s/outside", rm.fx.top);
    assert_int_equal(do_read(path, NULL), CSN_NOT_FOUND);
}

static void base_itself_can_not_be_removed_or_moved(void **state)
{
    static const char *const names[] = {"/", ".", "/.", "/a/..", "/a/.", "//"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(do_delete(names[i], NULL), CSN_INVALID);
        assert_int_equal(do_rename_from(names[i], NULL), CSN_INVALID);
    }
    assert_int_equal(do_delete(rm.fx.root, NULL), CSN_INVALID);
    assert_int_equal(do_delete("/..", NULL), CSN_OUTSIDE);
    assert_true(room_has(&rm, "target"));
}

static void messages_name_the_path_as_asked(void **state)
{
    csn_error *err = NULL;

    (void)state;
    assert_int_equal(do_read("/no/such", &err), CSN_NOT_FOUND);
    assert_string_equal(csn_error_message(err), "File '/no/such' not found");
    csn_error_free(err);
    err = NULL;
    assert_int_equal(do_read("/link_out", &err), CSN_OUTSIDE);
    assert_null(strstr(csn_error_message(err), rm.fx.top));
    assert_string_equal(csn_error_denial(err)->op, "read");
    assert_string_equal(csn_error_denial(err)->target, "/link_out");
    assert_non_null(csn_error_denial(err)->hint);
    csn_error_free(err);
    err = NULL;
    assert_int_equal(room_write_opts(&rm, "/target", "x", CSN_FILE_CREATE, 0, NULL, &err),
                     CSN_EXISTS);
    assert_string_equal(csn_error_message(err),
                        "Cannot write to /target because it already exists.");
    csn_error_free(err);
}

static void nofollow_refuses_links_by_rule(void **state)
{
    csn_error *err = NULL;
    csn_file_stat st;
    char *target = NULL;
    csn_sink sink = {room_sink, &(room_bytes){.len = 0}};

    (void)state;
    assert_int_equal(
        csn_runtime_read(&rm.l, "/link", CSN_FILE_NOFOLLOW, 0, CSN_NO_LIMIT, &sink, &st, &err),
        CSN_DENIED);
    assert_string_equal(csn_error_denial(err)->rule, "nofollow");
    csn_error_free(err);
    assert_int_equal(room_write(&rm, "/link", "x", CSN_FILE_NOFOLLOW), CSN_DENIED);
    assert_int_equal(room_write(&rm, "/dirlink/file", "x", CSN_FILE_NOFOLLOW), CSN_DENIED);
    assert_int_equal(csn_runtime_stat(&rm.l, "/link", CSN_FILE_NOFOLLOW, &st, &target, NULL),
                     CSN_OK);
    assert_true(S_ISLNK(st.mode));
    assert_string_equal(target, "target");
    free(target);
    rm.config.flags = CSN_OPEN_NOFOLLOW;
    assert_int_equal(do_read("/link", NULL), CSN_DENIED);
    assert_int_equal(do_stat("/link", NULL), CSN_DENIED);
    assert_int_equal(do_list("/dirlink", NULL), CSN_DENIED);
    assert_int_equal(do_read("/target", NULL), CSN_OK);
    assert_int_equal(do_delete("/link", NULL), CSN_OK);
    rm.config.flags = 0;
    assert_true(room_has(&rm, "target"));
    rebuild();
}

/* D06 */
static void replaced_base_stays_the_one_that_was_opened(void **state)
{
    (void)state;
    assert_int_equal(renameat(rm.fx.top_fd, "root", rm.fx.top_fd, "was-root"), 0);
    assert_int_equal(symlinkat("outdir", rm.fx.top_fd, "root"), 0);
    assert_int_equal(do_read("/target", NULL), CSN_OK);
    assert_int_equal(do_read("/file", NULL), CSN_NOT_FOUND);
    assert_int_equal(do_write("/written", NULL), CSN_OK);
    assert_true(room_has(&rm, "written"));
    assert_int_equal(unlinkat(rm.fx.top_fd, "root", 0), 0);
    assert_int_equal(renameat(rm.fx.top_fd, "was-root", rm.fx.top_fd, "root"), 0);
    assert_true(corpus_outside_intact(&rm.fx));
    rebuild();
}

static void cleanup_empties_the_base_and_nothing_else(void **state)
{
    int count = 0;

    (void)state;
    assert_int_equal(csn_runtime_cleanup(&rm.l, NULL), CSN_OK);
    int fd = openat(rm.fx.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    csn_tree_list(fd, corpus_count_entry, &count);
    close(fd);
    assert_int_equal(count, 0);
    assert_true(corpus_outside_intact(&rm.fx));
    rebuild();
}

/* D39: with 32 descriptors at most */
static void deep_tree_is_walked_and_removed_with_few_descriptors(void **state)
{
    char deep[1300] = "";
    size_t n = 0;
    struct rlimit old, few = {48, 48};

    (void)state;
    rm.fx.deep = true;
    rebuild();
    for (int i = 0; i < 600; i++)
        n += (size_t)snprintf(deep + n, sizeof(deep) - n, "/n");
    snprintf(deep + n, sizeof(deep) - n, "/leaf");
    getrlimit(RLIMIT_NOFILE, &old);
    few.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int walk = 0; walk < 2; walk++) {
        csn_beneath_force_walk(walk);
        assert_int_equal(do_read(deep, NULL), CSN_OK);
        assert_int_equal(do_write(deep, NULL), CSN_OK);
        assert_int_equal(do_walk("/n", NULL), CSN_OK);
    }
    csn_beneath_force_walk(false);
    assert_int_equal(do_delete("/n", NULL), CSN_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_false(room_has(&rm, "n"));
    assert_true(room_has(&rm, "target"));
    rm.fx.deep = false;
    rebuild();
}

static int setup(void **state)
{
    (void)state;
    /* A tree is built a thousand times here; races and disks have tests of their own. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    room_make(&rm);
    corpus_load(__FILE__, rm.fx.root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    corpus_unload();
    room_clean(&rm);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_holds_for_every_operation),
        cmocka_unit_test(table_holds_for_every_operation_without_openat2),
        cmocka_unit_test(absolute_paths_start_at_the_base),
        cmocka_unit_test(base_itself_can_not_be_removed_or_moved),
        cmocka_unit_test(messages_name_the_path_as_asked),
        cmocka_unit_test(nofollow_refuses_links_by_rule),
        cmocka_unit_test(replaced_base_stays_the_one_that_was_opened),
        cmocka_unit_test(cleanup_empties_the_base_and_nothing_else),
        cmocka_unit_test(deep_tree_is_walked_and_removed_with_few_descriptors),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
