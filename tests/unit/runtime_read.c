/* runtime_read.c: reading odd and changing files (D10-D20), lists and walks, renames (D36). */
#include "fixture.h"

static room rm;

/* D10-D13: at once, with and without somebody at the other end */
static void special_files_are_refused_at_once(void **state)
{
    static const char *const names[] = {"/fifo", "/link_fifo", "/sock", "/chardev"};
    int both = openat(rm.fx.fd, "fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    (void)state;
    for (int writer = 1; writer >= 0; writer--) {
        for (size_t i = 0; i < 3u + rm.fx.chardev; i++) {
            room_bytes b = {.len = 0};
            assert_int_equal(room_read(&rm, names[i], &b, NULL), CSN_WRONG_TYPE);
            assert_int_equal(room_write(&rm, names[i], "x", 0), CSN_WRONG_TYPE);
            assert_int_equal(room_write(&rm, names[i], "x", CSN_FILE_APPEND), CSN_WRONG_TYPE);
        }
        if (both >= 0)
            close(both);
        both = -1;
    }
}

/* D14, D15 */
static void huge_files_cost_nothing_when_only_counted(void **state)
{
    int fd = openat(rm.fx.fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    room_bytes b = {.answer = CSN_SINK_COUNT}, c = {.answer = CSN_SINK_STOP};

    (void)state;
    assert_int_equal(ftruncate(fd, ((off_t)1 << 32) + 1), 0);
    close(fd);
    assert_int_equal(room_read(&rm, "/sparse", &b, NULL), CSN_OK);
    assert_true(b.len + b.counted == (uint64_t)10 << 30);
    assert_true(b.len <= 128 * 1024);
    b = (room_bytes){.answer = CSN_SINK_COUNT};
    assert_int_equal(room_read(&rm, "/big", &b, NULL), CSN_OK);
    assert_true(b.len + b.counted == ((uint64_t)1 << 32) + 1);
    assert_int_equal(room_read(&rm, "/sparse", &c, NULL), CSN_OK);
    assert_true(c.len <= 128 * 1024 && c.counted == 0);
}

static csn_status read_part(const char *path, uint64_t offset, uint64_t length, room_bytes *b,
                            csn_file_stat *st)
{
    csn_sink sink = {room_sink, b};

    return csn_runtime_read(&rm.l, path, 0, offset, length, &sink, st, NULL);
}

/* D19 */
static void any_window_is_fine(void **state)
{
    csn_file_stat st = {0};
    static const struct {
        uint64_t offset, length;
        const char *want;
    } cases[] = {{0, 3, "ins"},       {3, 100, "ide\n"},
                 {7, 1, ""},          {8, 1, ""},
                 {0, 0, ""},          {UINT64_MAX, UINT64_MAX, ""},
                 {1ull << 63, 1, ""}, {2, UINT64_MAX, "side\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        room_bytes b = {.len = 0};
        assert_int_equal(read_part("/target", cases[i].offset, cases[i].length, &b, &st),
                         CSN_OK);
        assert_int_equal(b.len, strlen(cases[i].want));
        assert_memory_equal(b.data, cases[i].want, b.len);
        assert_int_equal(st.file_size, 7);
    }
}

typedef struct meddler {
    int fd;
    off_t cut; /* -1: append */
    uint64_t len;
    int calls;
} meddler;

static int meddle(void *ctx, int stream, const void *data, size_t len)
{
    meddler *m = ctx;
    static char more[256 * 1024];

    (void)stream;
    (void)data;
    m->len += len;
    m->calls++;
    if (m->cut >= 0)
        assert_int_equal(ftruncate(m->fd, m->cut), 0);
    else
        assert_true(write(m->fd, more, sizeof(more)) > 0);
    return CSN_SINK_MORE;
}

static uint64_t read_meddled(off_t cut)
{
    int fd =
        openat(rm.fx.fd, "moving", O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    meddler m = {.fd = fd, .cut = cut};
    csn_sink sink = {meddle, &m};
    csn_file_stat st = {0};

    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(csn_runtime_read(&rm.l, "/moving", 0, 0, CSN_NO_LIMIT, &sink, &st, NULL),
                     CSN_OK);
    assert_int_equal(st.file_size, 1 << 20);
    close(fd);
    return m.len;
}

/* D16, D17 */
static void growing_and_shrinking_files_end(void **state)
{
    (void)state;
    assert_int_equal(read_meddled(-1), 1 << 20);
    assert_true(read_meddled(10) < 1 << 20);
}

static int delete_it(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    (void)data;
    unlinkat(rm.fx.fd, "doomed", 0);
    *(uint64_t *)ctx += len;
    return CSN_SINK_MORE;
}

/* D18 */
static void deleted_file_is_read_to_its_end(void **state)
{
    int fd = openat(rm.fx.fd, "doomed", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    uint64_t len = 0;
    csn_sink sink = {delete_it, &len};
    csn_file_stat st;

    (void)state;
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    close(fd);
    assert_int_equal(csn_runtime_read(&rm.l, "/doomed", 0, 0, CSN_NO_LIMIT, &sink, &st, NULL),
                     CSN_OK);
    assert_int_equal(len, 1 << 20);
    assert_false(room_has(&rm, "doomed"));
}

/* D20: bytes are bytes */
static void bytes_survive_write_and_read(void **state)
{
    static char data[4096];
    room_text t = {data, sizeof(data)};
    csn_written w = {0};
    csn_write_req req = {.path = "/bytes", .source = {room_source, &t}};
    room_bytes b = {.len = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7 + i / 256);
    assert_int_equal(csn_runtime_write(&rm.l, &req, 1, &w, NULL), CSN_OK);
    free(w.resolved_path);
    assert_int_equal(room_read(&rm, "/bytes", &b, NULL), CSN_OK);
    assert_int_equal(b.len, sizeof(data));
    assert_memory_equal(b.data, data, sizeof(data));
}

static void files_without_a_size_are_read(void **state)
{
    room_bytes b = {.len = 0};

    (void)state;
    rm.config.workspace = "/proc/self";
    room_again(&rm);
    assert_int_equal(room_read(&rm, "/status", &b, NULL), CSN_OK);
    assert_true(b.len > 100);
    rm.config.workspace = rm.fx.root;
    room_again(&rm);
}

/* ---- list and walk ---- */

typedef struct seen {
    int count, stop_at, dirs, links;
    bool target, out, inner;
} seen;

static int see(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    seen *s = ctx;

    s->count++;
    s->dirs += S_ISDIR(st->mode);
    s->links += target != NULL;
    s->target |= strcmp(path, "target") == 0 && st->file_size == 7;
    s->out |= strstr(path, "outside") != NULL;
    s->inner |= strcmp(path, "a/b/c/target") == 0;
    return s->stop_at && s->count >= s->stop_at;
}

static void list_names_every_entry_once(void **state)
{
    seen s = {0}, few = {.stop_at = 10}, none = {0};

    (void)state;
    assert_int_equal(csn_runtime_list(&rm.l, "/", 0, see, &s, NULL), CSN_OK);
    assert_true(s.target && !s.inner && s.links > 60);
    assert_int_equal(csn_runtime_list(&rm.l, "/", 0, see, &few, NULL), CSN_OK);
    assert_int_equal(few.count, 10);
    put_dir(rm.fx.fd, "nothing");
    assert_int_equal(csn_runtime_list(&rm.l, "/nothing", 0, see, &none, NULL), CSN_OK);
    assert_int_equal(none.count, 0);
}

static void walk_goes_below_but_through_no_link(void **state)
{
    seen s = {0}, few = {.stop_at = 3}, one = {0};

    (void)state;
    assert_int_equal(csn_runtime_walk(&rm.l, "/", 0, see, &s, NULL), CSN_OK);
    assert_true(s.target && s.inner && !s.out);
    assert_int_equal(s.dirs, 7);
    assert_int_equal(csn_runtime_walk(&rm.l, "/", 0, see, &few, NULL), CSN_OK);
    assert_int_equal(few.count, 3);
    assert_int_equal(csn_runtime_walk(&rm.l, "/target", 0, see, &one, NULL), CSN_OK);
    assert_int_equal(one.count, 1);
    assert_int_equal(csn_runtime_walk(&rm.l, "/dirlink", 0, see, &one, NULL), CSN_OK);
}

/* D38 in small: a directory over many getdents calls */
static void large_directory_is_listed_and_removed(void **state)
{
    seen s = {0};
    char name[40];

    (void)state;
    put_dir(rm.fx.fd, "large");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "large/%s%d", i % 100 ? "file" : "dir", i);
        if (i % 100)
            must(symlinkat("x", rm.fx.fd, name) == 0, name);
        else
            put_dir(rm.fx.fd, name);
    }
    put_file(rm.fx.fd, "large/dir100/deeper", "x");
    assert_int_equal(csn_runtime_list(&rm.l, "/large", 0, see, &s, NULL), CSN_OK);
    assert_int_equal(s.count, 5000);
    assert_int_equal(csn_runtime_remove(&rm.l, "/large", 0, NULL), CSN_CONFLICT);
    assert_int_equal(csn_runtime_remove(&rm.l, "/large", CSN_FILE_RECURSIVE, NULL), CSN_OK);
    assert_false(room_has(&rm, "large"));
}

/* ---- change ---- */

static void remove_acts_on_the_link_itself(void **state)
{
    (void)state;
    assert_int_equal(csn_runtime_remove(&rm.l, "/link_out", 0, NULL), CSN_OK);
    assert_int_equal(csn_runtime_remove(&rm.l, "/dirlink", CSN_FILE_RECURSIVE, NULL), CSN_OK);
    assert_int_equal(csn_runtime_remove(&rm.l, "/dd", CSN_FILE_RECURSIVE, NULL), CSN_OK);
    assert_false(room_has(&rm, "link_out") || room_has(&rm, "dirlink"));
    assert_true(room_has(&rm, "dir/file"));
    /* links to everywhere below a tree that goes */
    put_link(rm.fx.fd, "/", "a/b/c/slash");
    put_link(rm.fx.fd, "../../../..", "a/b/c/up");
    assert_int_equal(csn_runtime_remove(&rm.l, "/a", CSN_FILE_RECURSIVE, NULL), CSN_OK);
    assert_false(room_has(&rm, "a"));
    assert_true(corpus_outside_intact(&rm.fx));
}

static csn_status move(const char *from, const char *to)
{
    return csn_runtime_rename(&rm.l, from, to, 0, NULL);
}

/* D36 */
static void rename_over_things(void **state)
{
    (void)state;
    assert_int_equal(move("/target", "/dir"), CSN_WRONG_TYPE);
    assert_int_equal(move("/dir", "/target"), CSN_WRONG_TYPE);
    assert_int_equal(move("/b", "/a"), CSN_CONFLICT);
    assert_int_equal(move("/a", "/a/b/inside"), CSN_INVALID);
    assert_int_equal(move("/target", "/target"), CSN_OK);
    assert_int_equal(move("/nope", "/x"), CSN_NOT_FOUND);
    assert_true(room_holds(&rm, "target", "inside\n"));
    assert_int_equal(move("/..foo", "/link_out"), CSN_OK); /* replaces the link */
    assert_true(room_holds(&rm, "link_out", "inside\n"));
    assert_int_equal(move("/target", "/p/q/t"), CSN_OK); /* makes parents */
    assert_true(room_holds(&rm, "p/q/t", "inside\n"));
    assert_int_equal(csn_runtime_rename(&rm.l, "/p/q/t", "/z/t", CSN_FILE_NO_PARENTS, NULL),
                     CSN_NOT_FOUND);
    assert_int_equal(csn_runtime_rename(&rm.l, "/p/q/t", "/link_out", CSN_FILE_CREATE, NULL),
                     CSN_EXISTS);
    assert_int_equal(move("/dir", "/v/w/"), CSN_OK);
    assert_true(room_has(&rm, "v/w/file"));
    assert_int_equal(move("/p/q/t", "/k/l/"), CSN_WRONG_TYPE);
    assert_false(room_has(&rm, "k"));
    assert_true(corpus_outside_intact(&rm.fx));
}

static void mkdir_and_symlink_make_what_was_asked(void **state)
{
    csn_file_stat st;
    char *target = NULL;

    (void)state;
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/x/y/z", 0, NULL), CSN_OK);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/x/y/z", 0, NULL), CSN_OK);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/x/y/z", CSN_FILE_NO_PARENTS, NULL), CSN_EXISTS);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/u/v", CSN_FILE_NO_PARENTS, NULL),
                     CSN_NOT_FOUND);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/dirlink", 0, NULL), CSN_OK);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/dangling", 0, NULL), CSN_EXISTS);
    assert_int_equal(csn_runtime_mkdir(&rm.l, "/link_up/made", 0, NULL), CSN_OUTSIDE);
    assert_int_equal(csn_runtime_symlink(&rm.l, "/anywhere at all", "/s/l", NULL), CSN_OK);
    assert_int_equal(csn_runtime_stat(&rm.l, "/s/l", CSN_FILE_NOFOLLOW, &st, &target, NULL),
                     CSN_OK);
    assert_string_equal(target, "/anywhere at all");
    free(target);
    assert_int_equal(csn_runtime_symlink(&rm.l, "x", "/s/l", NULL), CSN_EXISTS);
    assert_int_equal(csn_runtime_symlink(&rm.l, "", "/s/m", NULL), CSN_INVALID);
    room_bytes b = {.len = 0};
    assert_int_equal(room_read(&rm, "/s/l", &b, NULL), CSN_OUTSIDE);
}

static int setup(void **state)
{
    (void)state;
    room_make(&rm);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    room_clean(&rm);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(special_files_are_refused_at_once),
        T(huge_files_cost_nothing_when_only_counted),
        T(any_window_is_fine),
        T(growing_and_shrinking_files_end),
        T(deleted_file_is_read_to_its_end),
        T(bytes_survive_write_and_read),
        T(files_without_a_size_are_read),
        T(list_names_every_entry_once),
        T(walk_goes_below_but_through_no_link),
        T(large_directory_is_listed_and_removed),
        T(remove_acts_on_the_link_itself),
        T(rename_over_things),
        T(mkdir_and_symlink_make_what_was_asked),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
