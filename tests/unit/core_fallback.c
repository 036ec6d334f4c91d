/* core_fallback.c: stat, read, list, walk, mkdir, symlink, remove, rename and cleanup out of
 * exec, on every place of core_fallback.h. Writes are in core_fallback_write.c. */
#include "core_fallback.h"

#include <errno.h>

#include "core/fallback_run.h"

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct bytes {
    char data[65536];
    size_t len, stop_at;
    uint64_t total;
} bytes;

static int collect(void *ctx, int stream, const void *data, size_t len)
{
    bytes *b = ctx;

    assert_int_equal(stream, CSN_STDOUT);
    b->total += len;
    if (b->len + len <= sizeof(b->data)) {
        memcpy(b->data + b->len, data, len);
        b->len += len;
    }
    return b->stop_at != 0 && b->total >= b->stop_at ? CSN_SINK_STOP : CSN_SINK_MORE;
}

static csn_status read_into(const place *p, const char *path, uint32_t flags, uint64_t offset,
                            uint64_t length, bytes *b, csn_file_stat *st, csn_error **err)
{
    const csn_sink sink = {.write = collect, .ctx = b};

    b->len = 0;
    b->total = 0;
    return csn_derive_read(&p->fs, path, flags, offset, length, &sink, st, err);
}

static void read_gives_every_byte(void **state)
{
    place *p = *state;
    char all[256];
    bytes b = {0};
    csn_file_stat st;

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    put(p, "all", all, sizeof(all));
    OK(read_into(p, in(p, "all"), 0, 0, UINT64_MAX, &b, &st, &err));
    assert_int_equal(b.len, 256);
    assert_memory_equal(b.data, all, 256);
    assert_int_equal(st.file_size, 256);
    assert_int_equal(st.mode, S_IFREG | 0644);
    assert_int_equal(p->execs, 1);

    put(p, "empty", "", 0);
    OK(read_into(p, in(p, "empty"), 0, 0, UINT64_MAX, &b, &st, &err));
    assert_int_equal(b.len, 0);
    assert_int_equal(st.file_size, 0);
}

static void read_takes_offset_and_length(void **state)
{
    place *p = *state;
    bytes b = {0};
    csn_file_stat st;
    char *big = malloc(200000);

    assert_non_null(big);
    for (size_t i = 0; i < 200000; i++)
        big[i] = (char)(i * 7 + i / 251);
    put(p, "big", big, 200000);
    const struct {
        uint64_t offset, length, want;
    } cases[] = {
        {0, 10, 10},
        {3, 10, 10},
        {65536, 100, 100},
        {65537, 100, 100},
        {131073, 9999, 9999},
        {199990, 100, 10},
        {200000, 5, 0},
        {200001, 5, 0},
        {5, 0, 0},
        {199999, UINT64_MAX, 1},
        {INT64_MAX, 5, 0},
        {UINT64_MAX, 5, 0},
        {150000, UINT64_MAX, 50000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OK(read_into(p, in(p, "big"), 0, cases[i].offset, cases[i].length, &b, &st, &err));
        assert_int_equal(b.total, cases[i].want);
        if (b.len > 0)
            assert_memory_equal(b.data, big + cases[i].offset, b.len);
        assert_int_equal(st.file_size, 200000);
    }
    free(big);
}

static void read_reaches_beyond_four_gibibytes(void **state)
{
    place *p = *state;
    bytes b = {0};
    csn_file_stat st;
    const off_t at = ((off_t)5 << 30) + 12345;

    puts_to(p, "sparse", "");
    assert_int_equal(truncate(on_host(p, "sparse"), at), 0);
    int fd = open(on_host(p, "sparse"), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "the end", 7), 7);
    close(fd);
    OK(read_into(p, in(p, "sparse"), 0, (uint64_t)at, 100, &b, &st, &err));
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "the end", 7);
    assert_int_equal(st.file_size, at + 7);
    unlink(on_host(p, "sparse"));
}

static void read_ends_when_the_sink_has_enough(void **state)
{
    place *p = *state;
    bytes b = {.stop_at = 1000};
    csn_file_stat st;

    puts_to(p, "large", "");
    assert_int_equal(truncate(on_host(p, "large"), 50000000), 0);
    OK(read_into(p, in(p, "large"), 0, 0, UINT64_MAX, &b, &st, &err));
    assert_true(b.total >= 1000 && b.total < 1000000);
    assert_int_equal(st.file_size, 50000000);
}

static struct {
    unsigned asked;
    csn_status answer;
    uint64_t size, offset, length;
} fetching;

/* Zeros, or a refusal. */
static csn_status fetch(void *state, const char *path, uint64_t file_size, uint64_t offset,
                        uint64_t length, const int32_t *cancel_fds, const csn_sink *sink,
                        csn_error **err)
{
    static const char zeros[65536];

    (void)state;
    (void)cancel_fds;
    assert_int_equal(path[0], '/');
    fetching.asked++;
    fetching.size = file_size;
    fetching.offset = offset;
    fetching.length = length;
    if (fetching.answer < 0)
        return csn_error_set(err, fetching.answer, "not this one");
    for (uint64_t n; length > 0; length -= n) {
        n = length < sizeof(zeros) ? length : sizeof(zeros);
        if (sink->write(sink->ctx, CSN_STDOUT, zeros, (size_t)n) == CSN_SINK_STOP)
            break;
    }
    return CSN_OK;
}

static void read_fetches_much_where_there_is_a_way(void **state)
{
    place *p = *state, far = *p;
    csn_backend_ops ops = *p->fs.ops;
    const csn_file_ops files = {.size = sizeof(files), .fetch = fetch};
    bytes b = {0};
    csn_file_stat st;

    ops.files = &files;
    far.fs.ops = &ops;
    puts_to(p, "much", "");
    puts_to(p, "little", "abc");
    assert_int_equal(truncate(on_host(p, "much"), 3000000), 0);
    fetching.asked = 0;
    fetching.answer = CSN_OK;
    OK(read_into(&far, in(p, "little"), 0, 0, UINT64_MAX, &b, &st, &err));
    OK(read_into(&far, in(p, "much"), 0, 2900000, UINT64_MAX, &b, &st, &err));
    OK(read_into(&far, in(p, "much"), CSN_FILE_NOFOLLOW, 0, UINT64_MAX, &b, &st, &err));
    assert_int_equal(b.total, 3000000);
    assert_int_equal(fetching.asked, 0);
    assert_int_equal(read_into(&far, in(p, "missing"), 0, 0, UINT64_MAX, &b, &st, NULL),
                     CSN_NOT_FOUND);
    OK(read_into(&far, in(p, "much"), 0, 1000, 2000000, &b, &st, &err));
    assert_int_equal(b.total, 2000000);
    assert_int_equal(st.file_size, 3000000);
    if (fetching.asked == 0)
        return; /* the tools here do not say which file it is */
    assert_int_equal(fetching.size, 3000000);
    assert_int_equal(fetching.offset, 1000);
    assert_int_equal(fetching.length, 2000000);
    fetching.answer = CSN_UNSUPPORTED;
    OK(read_into(&far, in(p, "much"), 0, 0, UINT64_MAX, &b, &st, &err));
    assert_int_equal(b.total, 3000000);
    fetching.answer = CSN_UNAVAILABLE;
    assert_int_equal(read_into(&far, in(p, "much"), 0, 0, UINT64_MAX, &b, &st, NULL),
                     CSN_UNAVAILABLE);
}

static void read_refuses_what_is_no_regular_file_at_once(void **state)
{
    place *p = *state;
    bytes b = {0};
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    assert_int_equal(mkfifo(on_host(p, "fifo"), 0644), 0);
    assert_int_equal(symlink("fifo", on_host(p, "to_fifo")), 0);
    assert_int_equal(mkdir(on_host(p, "dir"), 0755), 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", on_host(p, "sock"));
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
    close(s);
    const char *names[] = {"fifo", "to_fifo", "dir", "sock", "dir/", "."};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        FAILS(CSN_WRONG_TYPE, NULL,
              read_into(p, in(p, names[i]), 0, 0, UINT64_MAX, &b, NULL, &err));
    puts_to(p, "file", "x");
    FAILS(CSN_WRONG_TYPE, "ot a directory",
          read_into(p, in(p, "file/"), 0, 0, UINT64_MAX, &b, NULL, &err));
    FAILS(CSN_WRONG_TYPE, "ot a directory",
          read_into(p, in(p, "file/x"), 0, 0, UINT64_MAX, &b, NULL, &err));
}

static void read_says_why_it_finds_nothing(void **state)
{
    place *p = *state;
    bytes b = {0};
    char want[256];
    char long_name[300];

    snprintf(want, sizeof(want), "File '%s/nope' not found", p->at);
    FAILS(CSN_NOT_FOUND, want, read_into(p, in(p, "nope"), 0, 0, UINT64_MAX, &b, NULL, &err));
    FAILS(CSN_NOT_FOUND, NULL, read_into(p, in(p, "no/x"), 0, 0, UINT64_MAX, &b, NULL, &err));
    puts_to(p, "target", "t");
    /* by text this would be target; by the kernel it is nothing */
    FAILS(CSN_NOT_FOUND, NULL,
          read_into(p, in(p, "nope/../target"), 0, 0, UINT64_MAX, &b, NULL, &err));
    assert_int_equal(symlink("nowhere", on_host(p, "dangling")), 0);
    FAILS(CSN_NOT_FOUND, NULL,
          read_into(p, in(p, "dangling"), 0, 0, UINT64_MAX, &b, NULL, &err));
    assert_int_equal(symlink("loop", on_host(p, "loop")), 0);
    FAILS(CSN_INVALID, NULL, read_into(p, in(p, "loop"), 0, 0, UINT64_MAX, &b, NULL, &err));
    FAILS(CSN_INVALID, NULL, read_into(p, "", 0, 0, UINT64_MAX, &b, NULL, &err));
    memset(long_name, 'a', 256);
    long_name[256] = '\0';
    FAILS(CSN_INVALID, NULL, read_into(p, in(p, long_name), 0, 0, UINT64_MAX, &b, NULL, &err));
    if (geteuid() != 0) {
        puts_to(p, "secret", "x");
        assert_int_equal(chmod(on_host(p, "secret"), 0), 0);
        FAILS(CSN_DENIED, NULL,
              read_into(p, in(p, "secret"), 0, 0, UINT64_MAX, &b, NULL, &err));
    }
}

static void read_follows_links_unless_told_not_to(void **state)
{
    place *p = *state;
    bytes b = {0};

    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    puts_to(p, "d/f", "content");
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    assert_int_equal(symlink("d/f", on_host(p, "lf")), 0);
    OK(read_into(p, in(p, "lf"), 0, 0, UINT64_MAX, &b, NULL, &err));
    OK(read_into(p, in(p, "ld/../ld/f"), 0, 0, UINT64_MAX, &b, NULL, &err));
    assert_int_equal(b.len, 7);
    OK(read_into(p, in(p, "d/f"), CSN_FILE_NOFOLLOW, 0, UINT64_MAX, &b, NULL, &err));
    FAILS(CSN_DENIED, "not followed",
          read_into(p, in(p, "lf"), CSN_FILE_NOFOLLOW, 0, UINT64_MAX, &b, NULL, &err));
    FAILS(CSN_DENIED, NULL,
          read_into(p, in(p, "ld/f"), CSN_FILE_NOFOLLOW, 0, UINT64_MAX, &b, NULL, &err));
}

static void relative_paths_start_where_commands_start(void **state)
{
    place *p = *state;
    char name[64];
    bytes b = {0};

    puts_to(p, "f", "here");
    snprintf(name, sizeof(name), "t%u/f", p->count);
    OK(read_into(p, name, 0, 0, UINT64_MAX, &b, NULL, &err));
    assert_int_equal(b.len, 4);
    snprintf(name, sizeof(name), "./t%u/./d/e", p->count);
    OK(csn_derive_mkdir(&p->fs, name, 0, &err));
    assert_true(there(p, "d/e"));
    char to[64];
    snprintf(to, sizeof(to), "t%u/moved", p->count);
    OK(csn_derive_rename(&p->fs, name, to, 0, &err));
    assert_true(there(p, "moved") && !there(p, "d/e"));
    FAILS(CSN_INVALID, NULL, csn_derive_remove(&p->fs, ".", CSN_FILE_RECURSIVE, &err));
}

static void stat_tells_all(void **state)
{
    place *p = *state;
    csn_file_stat st;
    char *target = NULL;
    const struct timespec when[2] = {{.tv_sec = 1700000000, .tv_nsec = 123456789},
                                     {.tv_sec = 1700000000, .tv_nsec = 123456789}};

    puts_to(p, "f", "12345");
    assert_int_equal(chmod(on_host(p, "f"), 01751), 0);
    assert_int_equal(link(on_host(p, "f"), on_host(p, "g")), 0);
    assert_int_equal(utimensat(AT_FDCWD, on_host(p, "f"), when, 0), 0);
    OK(csn_derive_stat(&p->fs, in(p, "f"), 0, &st, &target, &err));
    assert_null(target);
    assert_int_equal(st.mode, S_IFREG | 01751);
    assert_int_equal(st.file_size, 5);
    assert_int_equal(st.nlink, 2);
    if (!p->no_times)
        assert_int_equal(st.modified_ns, 1700000000123456789);

    assert_int_equal(symlink("f\n", on_host(p, "l")), 0);
    assert_int_equal(symlink("f", on_host(p, "lf")), 0);
    OK(csn_derive_stat(&p->fs, in(p, "l"), CSN_FILE_NOFOLLOW, &st, &target, &err));
    assert_true(S_ISLNK(st.mode));
    assert_string_equal(target, "f\n");
    free(target);
    target = NULL;
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_stat(&p->fs, in(p, "l"), 0, &st, &target, &err));
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    puts_to(p, "d/f", "");
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    FAILS(CSN_DENIED, NULL,
          csn_derive_stat(&p->fs, in(p, "ld/f"), CSN_FILE_NOFOLLOW, &st, &target, &err));
    OK(csn_derive_stat(&p->fs, in(p, "lf"), 0, &st, &target, &err));
    assert_true(S_ISREG(st.mode));
    OK(csn_derive_stat(&p->fs, "/", 0, &st, NULL, &err));
    assert_true(S_ISDIR(st.mode));
    OK(csn_derive_stat(&p->fs, in(p, "."), 0, &st, NULL, &err));
    assert_int_equal(mkfifo(on_host(p, "fifo"), 0600), 0);
    OK(csn_derive_stat(&p->fs, in(p, "fifo"), 0, &st, NULL, &err));
    assert_int_equal(st.mode, S_IFIFO | 0600);
}

/* ---- listing ---------------------------------------------------------------------------- */

typedef struct found {
    char *path, *target;
    csn_file_stat st;
} found;

typedef struct founds {
    found items[3000];
    size_t count, stop_at;
} founds;

static int note(void *ctx, const char *path, const csn_file_stat *st, const char *target)
{
    founds *f = ctx;

    assert_true(f->count < 3000);
    f->items[f->count++] =
        (found){.path = strdup(path), .target = target ? strdup(target) : NULL, .st = *st};
    return f->stop_at != 0 && f->count >= f->stop_at;
}

static const found *find_in(const founds *f, const char *path)
{
    const found *hit = NULL;

    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->items[i].path, path) == 0) {
            assert_null(hit); /* once only */
            hit = &f->items[i];
        }
    return hit;
}

static void forget(founds *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].path);
        free(f->items[i].target);
    }
    f->count = 0;
}

static void list_survives_any_name(void **state)
{
    place *p = *state;
    founds *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    for (size_t i = 0; i < ODD_NAMES; i++)
        put(p, odd_names[i], "12345", i % 5);
    OK(csn_derive_list(&p->fs, p->at, 0, note, f, &err));
    assert_int_equal(f->count, ODD_NAMES);
    for (size_t i = 0; i < ODD_NAMES; i++) {
        const found *e = find_in(f, odd_names[i]);
        assert_non_null(e);
        assert_int_equal(e->st.file_size, i % 5);
        assert_int_equal(e->st.mode, S_IFREG | 0644);
        assert_int_equal(e->st.nlink, 1);
        assert_null(e->target);
        if (!p->no_times)
            assert_true(e->st.modified_ns > 1600000000000000000);
    }
    forget(f);
    free(f);
}

static void list_gives_targets_of_links(void **state)
{
    place *p = *state;
    founds *f = calloc(1, sizeof(*f));
    char name[32];
    static const char *const targets[] = {
        "plain",    "with space", "new\nline", "end\n", "//E0\n//E0\n", "' -> '",
        "x' -> 'y", "\n//g/./a",  "\xff\xfe",  "/",     "a//b",         "-dash",
    };
    size_t n = sizeof(targets) / sizeof(targets[0]);

    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "l%zu", i);
        assert_int_equal(symlink(targets[i], on_host(p, name)), 0);
    }
    assert_int_equal(symlink("t", on_host(p, "na\nme -> ")), 0);
    OK(csn_derive_list(&p->fs, p->at, 0, note, f, &err));
    assert_int_equal(f->count, n + 1);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "l%zu", i);
        const found *e = find_in(f, name);
        assert_non_null(e);
        assert_true(S_ISLNK(e->st.mode));
        assert_string_equal(e->target, targets[i]);
    }
    assert_string_equal(find_in(f, "na\nme -> ")->target, "t");
    forget(f);
    free(f);
}

static void list_of_two_thousand_costs_one_command(void **state)
{
    place *p = *state;
    founds *f = calloc(1, sizeof(*f));
    char name[128];
    size_t n = p->no_times ? 300 : 2000; /* ls takes a process for each */

    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "a rather long name that fills the buffers %zu", i);
        puts_to(p, name, "");
    }
    OK(csn_derive_list(&p->fs, p->at, 0, note, f, &err));
    assert_int_equal(f->count, n);
    assert_int_equal(p->execs, 1);
    forget(f);
    f->stop_at = 5;
    OK(csn_derive_list(&p->fs, p->at, 0, note, f, &err));
    assert_int_equal(f->count, 5);
    forget(f);
    free(f);
}

static void list_says_why_it_cannot(void **state)
{
    place *p = *state;
    founds f = {0};

    puts_to(p, "f", "");
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_list(&p->fs, in(p, "no"), 0, note, &f, &err));
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_list(&p->fs, in(p, "f"), 0, note, &f, &err));
    OK(csn_derive_list(&p->fs, in(p, "ld"), 0, note, &f, &err));
    OK(csn_derive_list(&p->fs, in(p, "d/"), CSN_FILE_NOFOLLOW, note, &f, &err));
    FAILS(CSN_DENIED, NULL,
          csn_derive_list(&p->fs, in(p, "ld"), CSN_FILE_NOFOLLOW, note, &f, &err));
    assert_int_equal(f.count, 0);
    if (geteuid() != 0) {
        assert_int_equal(chmod(on_host(p, "d"), 0), 0);
        FAILS(CSN_DENIED, NULL, csn_derive_list(&p->fs, in(p, "d"), 0, note, &f, &err));
        OK(csn_derive_walk(&p->fs, p->at, 0, note, &f, &err)); /* what can be seen */
        assert_int_equal(f.count, 3);
        forget(&f);
        assert_int_equal(chmod(on_host(p, "d"), 0755), 0);
    }
}

static void walk_goes_deep_and_never_through_links(void **state)
{
    place *p = *state;
    founds *f = calloc(1, sizeof(*f));
    char path[4000] = "deep";

    assert_non_null(f);
    assert_int_equal(mkdir(on_host(p, path), 0755), 0);
    for (int i = 0; i < 300; i++) {
        snprintf(path + strlen(path), sizeof(path) - strlen(path), "/n");
        assert_int_equal(mkdir(on_host(p, path), 0755), 0);
    }
    assert_int_equal(mkdir(on_host(p, ".hidden"), 0755), 0);
    assert_int_equal(mkdir(on_host(p, "a\nb"), 0755), 0);
    puts_to(p, ".hidden/..x", "1");
    puts_to(p, "a\nb/\n", "22");
    assert_int_equal(symlink("..", on_host(p, "a\nb/up")), 0);
    assert_int_equal(symlink(".", on_host(p, "self")), 0);
    OK(csn_derive_walk(&p->fs, p->at, 0, note, f, &err));
    assert_int_equal(f->count, 301 + 2 + 2 + 2);
    assert_non_null(find_in(f, path));
    assert_int_equal(find_in(f, "a\nb/\n")->st.file_size, 2);
    assert_string_equal(find_in(f, "a\nb/up")->target, "..");
    assert_string_equal(find_in(f, "self")->target, ".");
    assert_int_equal(find_in(f, ".hidden/..x")->st.file_size, 1);
    assert_true(S_ISDIR(find_in(f, "a\nb")->st.mode));
    forget(f);
    /* of a file: itself, under no name */
    OK(csn_derive_walk(&p->fs, in(p, "a\nb/\n"), 0, note, f, &err));
    assert_int_equal(f->count, 1);
    assert_string_equal(f->items[0].path, "");
    assert_int_equal(f->items[0].st.file_size, 2);
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_walk(&p->fs, in(p, "a\nb/\n/"), 0, note, f, &err));
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_walk(&p->fs, in(p, "nope"), 0, note, f, &err));
    forget(f);
    free(f);
    OK(csn_derive_remove(&p->fs, in(p, "deep"), CSN_FILE_RECURSIVE, &err));
    assert_false(there(p, "deep"));
}

/* /proc gives links to open files a size that is not the length of their target. */
static void list_gives_targets_of_links_in_proc(void **state)
{
    place *p = *state;
    founds *f = calloc(1, sizeof(*f));
    char target[PATH_MAX], path[64], name[16];

    if (p->busybox) { /* it has another /proc */
        free(f);
        return;
    }
    assert_non_null(f);
    puts_to(p, "open", "1");
    int fd = open(on_host(p, "open"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_non_null(realpath(on_host(p, "open"), target));
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)getpid());
    snprintf(name, sizeof(name), "%d", fd);
    OK(csn_derive_walk(&p->fs, path, 0, note, f, &err));
    assert_non_null(find_in(f, name));
    assert_string_equal(find_in(f, name)->target, target);
    close(fd);
    forget(f);
    free(f);
}

/* ---- making, moving, removing ----------------------------------------------------------- */

static void mkdir_makes_parents_and_minds_what_is_there(void **state)
{
    place *p = *state;

    OK(csn_derive_mkdir(&p->fs, in(p, "a/b c/\nd"), 0, &err));
    assert_true(there(p, "a/b c/\nd"));
    OK(csn_derive_mkdir(&p->fs, in(p, "a/b c/"), 0, &err));
    FAILS(CSN_EXISTS, NULL, csn_derive_mkdir(&p->fs, in(p, "a"), CSN_FILE_NO_PARENTS, &err));
    FAILS(CSN_NOT_FOUND, NULL,
          csn_derive_mkdir(&p->fs, in(p, "x/y"), CSN_FILE_NO_PARENTS, &err));
    OK(csn_derive_mkdir(&p->fs, in(p, "x"), CSN_FILE_NO_PARENTS, &err));
    puts_to(p, "f", "");
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_mkdir(&p->fs, in(p, "f"), 0, &err));
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_mkdir(&p->fs, in(p, "f/g/h"), 0, &err));
    assert_int_equal(symlink("nowhere", on_host(p, "dangling")), 0);
    FAILS(CSN_EXISTS, NULL, csn_derive_mkdir(&p->fs, in(p, "dangling"), 0, &err));
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_mkdir(&p->fs, in(p, "dangling/x"), 0, &err));
    char deep[4000] = "";
    for (int i = 0; i < 500; i++)
        snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "%sm", i ? "/" : "");
    OK(csn_derive_mkdir(&p->fs, in(p, deep), 0, &err));
    assert_true(there(p, deep));
}

static void symlink_takes_any_target_and_no_taken_name(void **state)
{
    place *p = *state;
    char got[64];

    for (size_t i = 0; i < ODD_NAMES; i++) {
        if (left_out(p, i))
            continue;
        OK(csn_derive_symlink(&p->fs, odd_names[i], in(p, "links/l"), &err));
        ssize_t n = readlink(on_host(p, "links/l"), got, sizeof(got) - 1);
        assert_true(n > 0);
        got[n] = '\0';
        assert_string_equal(got, odd_names[i]);
        assert_int_equal(unlink(on_host(p, "links/l")), 0);
        OK(csn_derive_symlink(&p->fs, "t", in(p, odd_names[i]), &err));
        assert_true(there(p, odd_names[i]));
    }
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    FAILS(CSN_EXISTS, NULL, csn_derive_symlink(&p->fs, "t", in(p, "d"), &err));
    FAILS(CSN_EXISTS, NULL, csn_derive_symlink(&p->fs, "t", in(p, "plain"), &err));
    assert_false(there(p, "d/t"));
    FAILS(CSN_INVALID, NULL, csn_derive_symlink(&p->fs, "", in(p, "e"), &err));
}

static void remove_takes_the_link_and_never_its_target(void **state)
{
    place *p = *state;

    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    puts_to(p, "d/keep", "x");
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    FAILS(CSN_WRONG_TYPE, NULL,
          csn_derive_remove(&p->fs, in(p, "ld/"), CSN_FILE_RECURSIVE, &err));
    OK(csn_derive_remove(&p->fs, in(p, "ld"), CSN_FILE_RECURSIVE, &err));
    assert_false(there(p, "ld"));
    assert_true(there(p, "d/keep"));
    FAILS(CSN_CONFLICT, NULL, csn_derive_remove(&p->fs, in(p, "d"), 0, &err));
    assert_int_equal(symlink("/", on_host(p, "d/root")), 0);
    OK(csn_derive_remove(&p->fs, in(p, "d"), CSN_FILE_RECURSIVE, &err));
    assert_false(there(p, "d"));
    assert_true(access(p->root, F_OK) == 0);
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_remove(&p->fs, in(p, "d"), 0, &err));
    assert_int_equal(mkdir(on_host(p, "e"), 0755), 0);
    OK(csn_derive_remove(&p->fs, in(p, "e/"), 0, &err));
    puts_to(p, "f", "");
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_remove(&p->fs, in(p, "f/"), 0, &err));
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_remove(&p->fs, in(p, "f/x"), 0, &err));
    for (size_t i = 0; i < ODD_NAMES; i++) {
        if (left_out(p, i))
            continue;
        puts_to(p, odd_names[i], "");
        OK(csn_derive_remove(&p->fs, in(p, odd_names[i]), 0, &err));
        assert_false(there(p, odd_names[i]));
    }
    assert_true(there(p, "f"));
}

static void remove_refuses_what_has_no_name(void **state)
{
    place *p = *state;
    const char *none[] = {"/", "//", "/.", "/..", "", "."};
    const char *below[] = {".", "..", "d/.", "d/..", "d/./"};

    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        FAILS(CSN_INVALID, NULL, csn_derive_remove(&p->fs, none[i], CSN_FILE_RECURSIVE, &err));
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
        FAILS(CSN_INVALID, NULL,
              csn_derive_remove(&p->fs, in(p, below[i]), CSN_FILE_RECURSIVE, &err));
    assert_true(there(p, "d"));
    assert_int_equal(p->execs, 0);
}

static void rename_is_the_kernels_rename(void **state)
{
    place *p = *state;

    puts_to(p, "f", "from");
    puts_to(p, "g", "to");
    OK(csn_derive_rename(&p->fs, in(p, "f"), in(p, "g"), 0, &err));
    assert_false(there(p, "f"));
    assert_string_equal(get(p, "g", NULL), "from");
    OK(csn_derive_rename(&p->fs, in(p, "g"), in(p, "new/dir/h"), 0, &err));
    assert_string_equal(get(p, "new/dir/h", NULL), "from");

    /* a directory is never entered */
    puts_to(p, "f", "f");
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_rename(&p->fs, in(p, "f"), in(p, "d"), 0, &err));
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_rename(&p->fs, in(p, "d"), in(p, "f"), 0, &err));
    FAILS(CSN_WRONG_TYPE, NULL, csn_derive_rename(&p->fs, in(p, "f"), in(p, "n/"), 0, &err));
    assert_false(there(p, "d/f"));
    OK(csn_derive_rename(&p->fs, in(p, "new"), in(p, "d"), 0,
                         &err)); /* an empty one is replaced */
    assert_true(there(p, "d/dir/h") && !there(p, "new"));
    assert_int_equal(mkdir(on_host(p, "e"), 0755), 0);
    FAILS(CSN_CONFLICT, NULL, csn_derive_rename(&p->fs, in(p, "e"), in(p, "d"), 0, &err));
    FAILS(CSN_CONFLICT, NULL, csn_derive_rename(&p->fs, in(p, "d/dir"), in(p, "d"), 0, &err));
    FAILS(CSN_INVALID, NULL, csn_derive_rename(&p->fs, in(p, "d"), in(p, "d/in"), 0, &err));
    FAILS(CSN_INVALID, NULL,
          csn_derive_rename(&p->fs, in(p, "d"), in(p, "d/dir/x/y"), 0, &err));
    assert_false(there(p, "d/dir/x")); /* what was made for it is gone again */
    OK(csn_derive_rename(&p->fs, in(p, "d"), in(p, "d"), 0, &err));
    assert_true(there(p, "d/dir/h"));
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_rename(&p->fs, in(p, "no"), in(p, "x/y"), 0, &err));
    assert_false(there(p, "x"));
    FAILS(CSN_NOT_FOUND, NULL,
          csn_derive_rename(&p->fs, in(p, "f"), in(p, "x/y"), CSN_FILE_NO_PARENTS, &err));
    nothing_left(p);
}

static void rename_moves_links_themselves(void **state)
{
    place *p = *state;
    struct stat st;

    puts_to(p, "f", "f");
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    assert_int_equal(symlink("f", on_host(p, "lf")), 0);
    OK(csn_derive_rename(&p->fs, in(p, "ld"), in(p, "moved"), 0, &err));
    assert_int_equal(lstat(on_host(p, "moved"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    /* onto a link to a directory: the link goes */
    OK(csn_derive_rename(&p->fs, in(p, "f"), in(p, "moved"), 0, &err));
    assert_int_equal(lstat(on_host(p, "moved"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_false(there(p, "d/f"));
    /* a link onto its own target */
    puts_to(p, "f", "f");
    OK(csn_derive_rename(&p->fs, in(p, "lf"), in(p, "f"), 0, &err));
    assert_int_equal(lstat(on_host(p, "f"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_false(there(p, "lf"));
    /* two names of one file: nothing happens */
    puts_to(p, "one", "1");
    assert_int_equal(link(on_host(p, "one"), on_host(p, "two")), 0);
    OK(csn_derive_rename(&p->fs, in(p, "one"), in(p, "two"), 0, &err));
    assert_true(there(p, "one") && there(p, "two"));
    for (size_t i = 0; i + 1 < ODD_NAMES; i++) {
        if (left_out(p, i))
            continue;
        puts_to(p, odd_names[i], "x");
        OK(csn_derive_rename(&p->fs, in(p, odd_names[i]), in(p, odd_names[i + 1]), 0, &err));
        assert_true(there(p, odd_names[i + 1]) && !there(p, odd_names[i]));
    }
    nothing_left(p);
}

static void cleanup_empties_and_keeps_the_directory(void **state)
{
    place *p = *state;
    founds f = {0};

    for (size_t i = 0; i < ODD_NAMES; i++)
        puts_to(p, odd_names[i], "");
    assert_int_equal(mkdir(on_host(p, ".d"), 0755), 0);
    puts_to(p, ".d/..f", "");
    OK(csn_derive_cleanup(&p->fs, p->at, &err));
    OK(csn_derive_list(&p->fs, p->at, 0, note, &f, &err));
    assert_int_equal(f.count, 0);
    FAILS(CSN_INVALID, NULL, csn_derive_cleanup(&p->fs, "/", &err));
    FAILS(CSN_NOT_FOUND, NULL, csn_derive_cleanup(&p->fs, in(p, "no"), &err));
}

int main(void)
{
#define BODY(fn)                                                                               \
    {                                                                                          \
#fn, fn                                                                                \
    }
    static const body bodies[] = {
        BODY(read_gives_every_byte),
        BODY(read_takes_offset_and_length),
        BODY(read_reaches_beyond_four_gibibytes),
        BODY(read_ends_when_the_sink_has_enough),
        BODY(read_fetches_much_where_there_is_a_way),
        BODY(read_refuses_what_is_no_regular_file_at_once),
        BODY(read_says_why_it_finds_nothing),
        BODY(read_follows_links_unless_told_not_to),
        BODY(relative_paths_start_where_commands_start),
        BODY(stat_tells_all),
        BODY(list_survives_any_name),
        BODY(list_gives_targets_of_links),
        BODY(list_of_two_thousand_costs_one_command),
        BODY(list_says_why_it_cannot),
        BODY(walk_goes_deep_and_never_through_links),
        BODY(list_gives_targets_of_links_in_proc),
        BODY(mkdir_makes_parents_and_minds_what_is_there),
        BODY(symlink_takes_any_target_and_no_taken_name),
        BODY(remove_takes_the_link_and_never_its_target),
        BODY(remove_refuses_what_has_no_name),
        BODY(rename_is_the_kernels_rename),
        BODY(rename_moves_links_themselves),
        BODY(cleanup_empties_and_keeps_the_directory),
    };
    return run_bodies("core_fallback", bodies, sizeof(bodies) / sizeof(bodies[0]));
}
