/* read.c: text windows, numbered lines, images, raw bytes; what is not a regular file is
 * refused at once. Text is byte-exact: line endings, NUL and invalid UTF-8 come back as they
 * are. */
#include "conformance/conformance.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READ(...) CSN_OPTS(csn_read_opts, __VA_ARGS__)

/* `count` lines "1\n2\n..." */
static char *lines(csn_fx *f, unsigned count)
{
    char *s = csn_fx_keep(f, malloc((size_t)count * 8 + 1));
    size_t at = 0;

    for (unsigned i = 1; i <= count; i++)
        at += (size_t)snprintf(s + at, 9, "%u\n", i);
    s[at] = '\0';
    return s;
}

/* S0, S1 TestLocalSandbox_ReadFile, S3 "should read file from sandbox", S4 text read */
static void read_returns_the_text_and_its_measures(csn_fx *f)
{
    AUTO(csn_read_result, r);

    csn_fx_put(f, "a.txt", "hello\nworld\n");
    ok(csn_read(f->sb, "a.txt", READ(.flags = CSN_FILE_HASH, .limit = CSN_LINES_DEFAULT), &r,
                E));
    assert_int_equal(r->size, sizeof(*r));
    same_bytes(r->content, r->content_len, "hello\nworld\n", 12);
    assert_int_equal(r->bytes, 12);
    assert_int_equal(r->total_lines, 2);
    assert_int_equal(r->output_lines, 2);
    assert_int_equal(r->total_lines_exact, 1);
    assert_int_equal(r->truncated, 0);
    assert_null(r->truncated_by);
    assert_int_equal(r->is_image, 0);
    assert_null(r->mime_type);
    assert_string_equal(r->hash,
                        "4a1e67f2fe1d1cc7b31d0ca2ec441da4778203a036a77da10344c85e24ff0f92");
}

/* S3: null for a missing file; S0: File '<p>' not found */
static void read_of_a_missing_file_names_it(csn_fx *f)
{
    csn_read_result *r = NULL;

    fails(CSN_NOT_FOUND, csn_read(f->sb, "no/such.txt", NULL, &r, E));
    says("File 'no/such.txt' not found");
    assert_string_equal(csn_error_op(csn_conf_err), "read");
    assert_string_equal(csn_error_path(csn_conf_err), "no/such.txt");
    fails(CSN_INVALID, csn_read(f->sb, "", NULL, &r, E));
    fails(CSN_INVALID, csn_read(f->sb, NULL, NULL, &r, E));
    assert_null(r);
}

/* S4: offset/limit */
static void read_window_of_lines(csn_fx *f)
{
    static const struct {
        uint64_t offset, limit;
        const char *want;
        uint32_t truncated;
        uint64_t output_lines;
    } cases[] = {
        {0, CSN_LINES_DEFAULT, "1\n2\n3\n4\n5\n", 0, 5},
        {0, 0, "", 1, 0},
        {2, 0, "", 1, 0},
        {0, 5, "1\n2\n3\n4\n5\n", 0, 5},
        {0, 2, "1\n2\n", 1, 2},
        {1, 2, "2\n3\n", 1, 2},
        {3, 2, "4\n5\n", 0, 2},
        {4, 100, "5\n", 0, 1},
        {4, 1, "5\n", 0, 1},
        {5, 1, "", 0, 0},
        {5, 0, "", 0, 0},
        {1000, 1000, "", 0, 0},
        {UINT64_MAX, 1, "", 0, 0},
        {UINT64_MAX, UINT64_MAX, "", 0, 0},
        {2, UINT64_MAX, "3\n4\n5\n", 0, 3},
    };

    csn_fx_put(f, "five", "1\n2\n3\n4\n5\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_read_result, r);

        ok(csn_read(f->sb, "five", READ(.offset = cases[i].offset, .limit = cases[i].limit), &r,
                    E));
        same_bytes(r->content, r->content_len, cases[i].want, strlen(cases[i].want));
        assert_int_equal(r->total_lines, 5);
        assert_int_equal(r->output_lines, cases[i].output_lines);
        assert_int_equal(r->truncated, cases[i].truncated);
        if (cases[i].truncated)
            assert_string_equal(r->truncated_by, "lines");
        else
            assert_null(r->truncated_by);
    }
}

/* A caller compiled before CSN_LINES_DEFAULT has a shorter struct, in which 0 is the default.
 */
static void read_limit_0_counts_lines(csn_fx *f)
{
    AUTO(csn_read_result, r);
    AUTO(csn_read_result, old);
    AUTO(csn_read_result, empty);
    csn_read_opts before = {.size = offsetof(csn_read_opts, reserved)};
    char *text = csn_fx_fill(f, 300000);

    memset(text, 'x', 300000);
    for (size_t i = 99; i < 300000; i += 100)
        text[i] = '\n';
    csn_fx_putn(f, "f", text, 300000);
    csn_fx_put(f, "empty", "");
    ok(csn_read(f->sb, "f", READ(.limit = 0), &r, E));
    assert_int_equal(r->content_len, 0);
    assert_int_equal(r->output_lines, 0);
    assert_int_equal(r->total_lines, 3000);
    assert_int_equal(r->total_lines_exact, 1);
    assert_int_equal(r->bytes, 300000);
    assert_string_equal(r->truncated_by, "lines");
    ok(csn_read(f->sb, "empty", READ(.limit = 0), &empty, E));
    assert_int_equal(empty->total_lines, 0);
    assert_int_equal(empty->truncated, 0);
    ok(csn_read(f->sb, "f", &before, &old, E));
    assert_int_equal(old->output_lines, 2000);
    fails(CSN_INVALID, csn_read(f->sb, "f", READ(.reserved = 1), &r, E));
}

static void read_keeps_two_thousand_lines(csn_fx *f)
{
    AUTO(csn_read_result, r);
    AUTO(csn_read_result, more);

    csn_fx_put(f, "2000", lines(f, 2000));
    csn_fx_put(f, "2001", lines(f, 2001));
    ok(csn_read(f->sb, "2000", NULL, &r, E));
    assert_int_equal(r->output_lines, 2000);
    assert_int_equal(r->truncated, 0);
    ok(csn_read(f->sb, "2001", NULL, &more, E));
    assert_int_equal(more->output_lines, 2000);
    assert_int_equal(more->total_lines, 2001);
    assert_int_equal(more->truncated, 1);
    assert_string_equal(more->truncated_by, "lines");
    assert_string_equal(more->content + more->content_len - 10, "1999\n2000\n");
}

static void read_keeps_256_kibibytes(csn_fx *f)
{
    AUTO(csn_read_result, r);
    AUTO(csn_read_result, more);
    AUTO(csn_read_result, few);
    char *text = csn_fx_fill(f, 262145);

    csn_fx_putn(f, "exact", text, 262144);
    csn_fx_putn(f, "more", text, 262145);
    ok(csn_read(f->sb, "exact", NULL, &r, E));
    assert_int_equal(r->content_len, 262144);
    assert_int_equal(r->truncated, 0);
    ok(csn_read(f->sb, "more", NULL, &more, E));
    assert_int_equal(more->truncated, 1);
    assert_string_equal(more->truncated_by, "bytes");
    same_bytes(more->content, more->content_len, text, 262144);
    assert_int_equal(more->bytes, 262145);
    ok(csn_read(f->sb, "more", READ(.byte_max = 10, .limit = CSN_LINES_DEFAULT), &few, E));
    same_bytes(few->content, few->content_len, text, 10);
    assert_string_equal(few->truncated_by, "bytes");
}

static void read_of_an_empty_file(csn_fx *f)
{
    AUTO(csn_read_result, r);
    AUTO(csn_read_result, n);

    csn_fx_put(f, "empty", "");
    ok(csn_read(f->sb, "empty", NULL, &r, E));
    assert_int_equal(r->content_len, 0);
    assert_string_equal(r->content, "");
    assert_int_equal(r->bytes, 0);
    assert_int_equal(r->total_lines, 0);
    assert_int_equal(r->truncated, 0);
    /* S0's text, for models that read the numbered form */
    ok(csn_read(f->sb, "empty", READ(.flags = CSN_FILE_NUMBERS, .limit = CSN_LINES_DEFAULT), &n,
                E));
    assert_string_equal(n->content, "System reminder: File exists but has empty contents");
}

/* S0: %6d TAB line, 1-based */
static void read_numbers_lines(csn_fx *f)
{
    AUTO(csn_read_result, r);
    AUTO(csn_read_result, w);
    AUTO(csn_read_result, e);

    csn_fx_put(f, "f", "a\n\nc");
    ok(csn_read(f->sb, "f", READ(.flags = CSN_FILE_NUMBERS, .limit = CSN_LINES_DEFAULT), &r,
                E));
    assert_string_equal(r->content, "     1\ta\n     2\t\n     3\tc");
    assert_int_equal(r->output_lines, 3);
    csn_fx_put(f, "many", lines(f, 1200));
    ok(csn_read(f->sb, "many", READ(.flags = CSN_FILE_NUMBERS, .offset = 998, .limit = 3), &w,
                E));
    assert_string_equal(w->content, "   999\t999\n  1000\t1000\n  1001\t1001\n");
    ok(csn_read(f->sb, "f", READ(.flags = CSN_FILE_NUMBERS, .offset = 3, .limit = 9), &e, E));
    assert_string_equal(e->content, "");
}

static void read_is_byte_exact(csn_fx *f)
{
    static const struct {
        const char *data;
        size_t len;
        uint64_t lines;
    } cases[] = {
        {"crlf\r\nsecond\r\n", 14, 2},
        {"no newline at the end", 21, 1},
        {"\n", 1, 1},
        {"\n\n\n", 3, 3},
        {"bad \xff\xfe utf8 \xc3\n", 14, 1},
        {"nul\0in\0side\n", 12, 1},
        {"\xef\xbb\xbf"
         "bom\n",
         7, 1},
        {"a\rb\rc", 5, 1},
        {"tab\there \x1b[31m\n", 15, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_read_result, r);

        csn_fx_putn(f, "f", cases[i].data, cases[i].len);
        ok(csn_read(f->sb, "f", NULL, &r, E));
        same_bytes(r->content, r->content_len, cases[i].data, cases[i].len);
        assert_int_equal(r->total_lines, cases[i].lines);
        assert_int_equal(r->output_lines, cases[i].lines);
        assert_int_equal(r->content[r->content_len], '\0');
    }
}

/* D20: one endless line, cut at the byte */
static void read_of_a_very_long_line(csn_fx *f)
{
    AUTO(csn_read_result, r);

    csn_fx_run(f,
               "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | tr -d '\\n' | head -c 20000000 > long");
    ok(csn_read(f->sb, "long", NULL, &r, E));
    assert_int_equal(r->content_len, 262144);
    assert_int_equal(r->bytes, 20000000);
    assert_int_equal(r->output_lines, 1);
    assert_string_equal(r->truncated_by, "bytes");
}

/* S4: image read */
static void read_tells_images_by_their_bytes(csn_fx *f)
{
    static const struct {
        const char *name, *data;
        size_t len;
        const char *mime;
    } cases[] = {
        {"a.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "image/png"},
        {"b.jpg", "\xff\xd8\xff\xe0\0\x10JFIF\0", 11, "image/jpeg"},
        {"c.gif", "GIF89a\1\0\1\0", 10, "image/gif"},
        {"d.webp", "RIFF\x1a\0\0\0WEBPVP8 ", 16, "image/webp"},
        {"e.bmp", "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 18, "image/bmp"},
        {"f.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n", 47, "image/svg+xml"},
        {"g.pdf", "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", 15, "application/pdf"},
        {"wrong-name.txt", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, "image/png"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO(csn_read_result, r);
        AUTO(csn_read_result, t);

        csn_fx_putn(f, cases[i].name, cases[i].data, cases[i].len);
        ok(csn_read(f->sb, cases[i].name, NULL, &r, E));
        assert_int_equal(r->is_image, 1);
        assert_non_null(r->mime_type);
        assert_string_equal(r->mime_type, cases[i].mime);
        same_bytes(r->content, r->content_len, cases[i].data, cases[i].len);
        assert_int_equal(r->bytes, cases[i].len);
        ok(csn_read(f->sb, cases[i].name,
                    READ(.flags = CSN_FILE_TEXT, .limit = CSN_LINES_DEFAULT), &t, E));
        assert_int_equal(t->is_image, 0);
        assert_null(t->mime_type);
    }
}

static void text_that_looks_a_little_like_an_image_is_text(csn_fx *f)
{
    static const char *const texts[] = {"PNG is a format\n", "GIF8",  "BM", "RIFF....", "%PD",
                                        "the <svg> tag\n",   "\x89PN"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        AUTO(csn_read_result, r);

        csn_fx_put(f, "t.png", texts[i]);
        ok(csn_read(f->sb, "t.png", NULL, &r, E));
        assert_int_equal(r->is_image, 0);
    }
}

static void image_over_its_ceiling_is_refused(csn_fx *f)
{
    csn_read_result *r = NULL;
    char *data = csn_fx_fill(f, 5000);

    memcpy(data, "\x89PNG\r\n\x1a\n", 8);
    csn_fx_putn(f, "big.png", data, 5000);
    csn_conf_reset();
    /* half an image is no image: refused, or marked as cut */
    if (csn_read(f->sb, "big.png", READ(.byte_max = 4999), &r, E) == CSN_OK)
        assert_int_equal(r->truncated, 1);
    else
        assert_int_equal(csn_error_code(csn_conf_err), CSN_TOO_LARGE);
    csn_read_result_free(r);
}

/* P89-P92, D10-D13: at once, never a hang */
static void read_of_what_is_no_file_is_refused_at_once(csn_fx *f)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    csn_read_result *r = NULL;
    static const char *const bad[] = {"dir", "pipe", "link-pipe", "sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    csn_fx_run(f, "mkdir dir && mkfifo pipe && ln -s pipe link-pipe && ln -s dir link-dir");
    assert_int_equal(chdir(f->ws), 0); /* the address has 108 bytes only */
    snprintf(a.sun_path, sizeof(a.sun_path), "sock");
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    /* a double that makes a jail for each command hides sockets in it */
    size_t count = csn_fx_can(f->sb, CAP_LIVE) ? 4 : 3;
    for (size_t i = 0; i < count; i++) {
        fails(CSN_WRONG_TYPE, csn_read(f->sb, bad[i], NULL, &r, E));
        fails(CSN_WRONG_TYPE,
              csn_read_bytes(f->sb, bad[i], NULL, (csn_write_fn)abort, NULL, E));
    }
    fails(CSN_WRONG_TYPE, csn_read(f->sb, "link-dir", NULL, &r, E));
    close(fd);
}

static void read_of_a_device_is_refused(csn_fx *f)
{
    csn_read_result *r = NULL;
    char *path = csn_fx_host(f, "zero");

    if (mknod(path, S_IFCHR | 0666, (1 << 8) | 5) == 0) {
        fails(CSN_WRONG_TYPE, csn_read(f->sb, "zero", NULL, &r, E));
        fails(CSN_WRONG_TYPE, csn_write(f->sb, "zero", "x", 1, NULL, NULL, E));
        return;
    }
    /* An ordinary user makes no device nodes: a link to one. It leaves the tree where `/` is
     * the workspace, and is refused for its type where `/dev/zero` exists inside. */
    assert_int_equal(symlink("/dev/zero", path), 0);
    fails(f->be->traits & CONF_BENEATH ? CSN_OUTSIDE : CSN_WRONG_TYPE,
          csn_read(f->sb, "zero", NULL, &r, E));
}

/* D14, D15 */
static void read_of_a_huge_sparse_file_is_bounded(csn_fx *f)
{
    AUTO(csn_read_result, r);
    char *path = csn_fx_host(f, "sparse");
    off_t size = f->be->traits & CONF_BENEATH ? (off_t)10 << 30 : (off_t)200 << 20;

    csn_test_put(path, "first\n", 6);
    assert_int_equal(truncate(path, size), 0);
    ok(csn_read(f->sb, "sparse", READ(.limit = 1), &r, E));
    assert_string_equal(r->content, "first\n");
    assert_int_equal(r->bytes, size);
    assert_int_equal(r->truncated, 1);
    assert_int_equal(r->total_lines_exact, 0);
    assert_null(r->hash);
}

/* D26: the file calls may what a command may, no more and no less. */
static void read_of_what_we_may_not_read(csn_fx *f)
{
    csn_read_result *r = NULL;

    csn_fx_put(f, "locked", "x");
    csn_fx_run(f, "chmod 000 locked && mkdir shut && echo y > shut/f && chmod 000 shut");
    if (geteuid() == 0 && strcmp(f->be->isolation, "none") == 0) {
        csn_fx_holds(f, "locked", "x");
        csn_fx_holds(f, "shut/f", "y\n");
        return;
    }
    fails(CSN_DENIED, csn_read(f->sb, "locked", NULL, &r, E));
    fails(CSN_DENIED, csn_read(f->sb, "shut/f", NULL, &r, E));
    fails(CSN_DENIED, csn_write(f->sb, "locked", "y", 1, NULL, NULL, E));
    fails(CSN_DENIED, csn_write(f->sb, "shut/new", "y", 1, NULL, NULL, E));
    csn_fx_run(f, "chmod 700 shut && chmod 600 locked");
    csn_fx_holds(f, "locked", "x");
}

static void read_options_are_checked(csn_fx *f)
{
    csn_read_opts none = {0};
    csn_read_result *r = NULL;

    csn_fx_put(f, "f", "x");
    fails(CSN_INVALID, csn_read(f->sb, "f", &none, &r, E));
    fails(CSN_INVALID, csn_read(f->sb, "f", READ(.flags = 1u << 30), &r, E));
    fails(CSN_INVALID, csn_read(f->sb, "f", READ(.flags = CSN_FILE_APPEND), &r, E));
}

/* ---- bytes ---- */

typedef struct sum {
    uint64_t len, stop_after;
    char first[16];
} sum;

static int sum_write(void *ctx, const void *data, size_t len)
{
    sum *s = ctx;

    for (size_t i = 0; i < len && s->len + i < sizeof(s->first); i++)
        s->first[s->len + i] = ((const char *)data)[i];
    s->len += len;
    return s->stop_after && s->len >= s->stop_after;
}

static void bytes_come_whole(csn_fx *f)
{
    size_t len = 3 * 1048576 + 17, got = 0;
    char *data = csn_fx_fill(f, len);

    for (size_t i = 0; i < len; i += 997)
        data[i] = (char)i; /* every byte value */
    csn_fx_putn(f, "big", data, len);
    char *have = csn_fx_get(f, "big", &got);
    same_bytes(have, got, data, len);
    csn_fx_put(f, "empty", "");
    have = csn_fx_get(f, "empty", &got);
    assert_int_equal(got, 0);
}

static void bytes_have_a_window(csn_fx *f)
{
    static const struct {
        uint64_t offset, limit;
        const char *want;
    } cases[] = {{0, 0, "0123456789"}, {3, 4, "3456"}, {8, 100, "89"}, {9, 1, "9"},
                 {10, 0, ""},          {11, 5, ""},    {0, 1, "0"},    {UINT64_MAX, 1, ""}};

    csn_fx_put(f, "ten", "0123456789");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sum s = {0};

        ok(csn_read_bytes(f->sb, "ten",
                          READ(.offset = cases[i].offset, .limit = cases[i].limit), sum_write,
                          &s, E));
        same_bytes(s.first, s.len, cases[i].want, strlen(cases[i].want));
    }
}

static void sink_can_stop_without_error(csn_fx *f)
{
    sum s = {.stop_after = 1};

    csn_fx_run(f, "yes | head -c 5000000 > big");
    ok(csn_read_bytes(f->sb, "big", NULL, sum_write, &s, E));
    assert_true(s.len >= 1 && s.len < 5000000);
    fails(CSN_NOT_FOUND, csn_read_bytes(f->sb, "missing", NULL, sum_write, &s, E));
    says("File 'missing' not found");
    fails(CSN_INVALID, csn_read_bytes(f->sb, "big", NULL, NULL, NULL, E));
}

const csn_conf_test csn_conf_read[] = {
    T(read_returns_the_text_and_its_measures),
    T(read_of_a_missing_file_names_it),
    T(read_window_of_lines),
    T(read_limit_0_counts_lines),
    T(read_keeps_two_thousand_lines),
    T(read_keeps_256_kibibytes),
    T(read_of_an_empty_file),
    T(read_numbers_lines),
    T(read_is_byte_exact),
    T(read_of_a_very_long_line),
    T(read_tells_images_by_their_bytes),
    T(text_that_looks_a_little_like_an_image_is_text),
    T(image_over_its_ceiling_is_refused),
    T(read_of_what_is_no_file_is_refused_at_once),
    T(read_of_a_device_is_refused),
    T(read_of_a_huge_sparse_file_is_bounded),
    T(read_of_what_we_may_not_read),
    T(read_options_are_checked),
    T(bytes_come_whole),
    T(bytes_have_a_window),
    T(sink_can_stop_without_error),
    T_END,
};
