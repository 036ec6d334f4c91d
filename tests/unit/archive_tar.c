/* archive_tar.c: the archive module, loaded as the library loads it: what is written comes
 * back, and what an attacker writes is refused. */
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tar.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

static const csn_tar_api *api;

/* ---- the module ------------------------------------------------------------------------- */

/* Beside the library, as in the build tree: two directories above the tests. */
static void module_path(char ret[4200])
{
    char exe[4096];
    const char *given = getenv("CSN_TEST_MODULE");

    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    assert_true(n > 0);
    exe[n] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(exe, '/') = '\0';
    snprintf(ret, 4200, "%s/caisson-archive.so", exe);
    if (given)
        snprintf(ret, 4200, "%s", given);
}

static int load(void **state)
{
    char path[4200];
    csn_error *err = NULL;

    (void)state;
    module_path(path);
    csn_tar_module_path_set(path);
    if (csn_tar_load(&api, &err) != CSN_OK) {
        print_error("%s\n", csn_error_message(err));
        return -1;
    }
    return 0;
}

static void a_missing_module_is_named(void **state)
{
    const csn_tar_api *none = NULL;
    csn_error *err = NULL;

    (void)state;
    csn_tar_module_path_set("/nonexistent/caisson-archive.so");
    assert_int_equal(csn_tar_load(&none, &err), CSN_UNSUPPORTED);
    assert_non_null(strstr(csn_error_message(err), "/nonexistent/caisson-archive.so"));
    assert_null(none);
    csn_error_free(err);
    /* a library that is none of ours */
    csn_tar_module_path_set("libc.so.6");
    assert_int_equal(csn_tar_load(&none, NULL), CSN_UNSUPPORTED);
    assert_int_equal(load(state), 0);
}

/* ---- streams ---------------------------------------------------------------------------- */

static int sink_write(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    return csn_buf_append(ctx, data, len) == 0 ? CSN_SINK_MORE : CSN_SINK_STOP;
}

typedef struct bytes {
    const char *data;
    size_t left;
    size_t step; /* bytes at a time; 0: all */
    bool fails;  /* in place of the end */
} bytes;

static int64_t bytes_read(void *ctx, void *buf, size_t len)
{
    bytes *b = ctx;
    size_t n = len < b->left ? len : b->left;

    n = b->step != 0 && n > b->step ? b->step : n;
    memcpy(buf, b->data, n);
    b->data += n;
    b->left -= n;
    return n == 0 && b->fails ? -1 : (int64_t)n;
}

/* What came out, as lines: "type mode size mtime path>target=content\n". */
typedef struct seen {
    csn_buf text;
    csn_status answer; /* what fn returns */
    size_t count;
    bool read;
} seen;

static csn_status see(void *ctx, const csn_tar_entry *e, const csn_source *data,
                      csn_error **err)
{
    seen *s = ctx;
    char chunk[1000];
    int64_t n = 0;

    s->count++;
    assert_int_equal(csn_buf_printf(&s->text, "%o %llu %lld %s", e->mode,
                                    (unsigned long long)e->file_size, (long long)e->modified_ns,
                                    e->path),
                     0);
    if (e->target)
        csn_buf_printf(&s->text, ">%s", e->target);
    csn_buf_putc(&s->text, '=');
    while (s->read && (n = data->read(data->ctx, chunk, sizeof(chunk))) > 0)
        csn_buf_append(&s->text, chunk, (size_t)n);
    csn_buf_putc(&s->text, '\n');
    if (s->answer < 0)
        return csn_fail(err, s->answer, "as asked");
    return CSN_OK;
}

static csn_status read_bytes(const void *data, size_t len, seen *s, uint64_t max_entries,
                             uint64_t max_bytes, csn_error **err)
{
    bytes b = {.data = data, .left = len, .step = 777};
    const csn_source source = {.read = bytes_read, .ctx = &b};

    csn_buf_init(&s->text, 1 << 24);
    s->read = true;
    return api->read(&source, max_entries, max_bytes, see, s, err);
}

/* ---- archives by hand ------------------------------------------------------------------- */

static void header(char block[512], const char *name, char type, uint64_t size, unsigned mode,
                   const char *target)
{
    unsigned sum = 0;

    memset(block, 0, 512);
    memcpy(block, name, strlen(name) < 100 ? strlen(name) : 100);
    snprintf(block + 100, 8, "%07o", mode);
    snprintf(block + 108, 8, "%07o", 0u);
    snprintf(block + 116, 8, "%07o", 0u);
    if (size < 077777777777ull)
        snprintf(block + 124, 12, "%011llo", (unsigned long long)size);
    else
        snprintf(block + 124, 12, "%011llo", 077777777777ull);
    snprintf(block + 136, 12, "%011o", 1700000000u);
    block[156] = type;
    if (target)
        memcpy(block + 157, target, strlen(target));
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

static void add(csn_buf *b, const char *name, char type, const char *content, unsigned mode,
                const char *target)
{
    char block[512];
    size_t len = content ? strlen(content) : 0;

    header(block, name, type, len, mode, target);
    assert_int_equal(csn_buf_append(b, block, 512), 0);
    for (size_t at = 0; at < len; at += 512) {
        memset(block, 0, 512);
        memcpy(block, content + at, len - at < 512 ? len - at : 512);
        assert_int_equal(csn_buf_append(b, block, 512), 0);
    }
}

static void finish(csn_buf *b)
{
    char zeros[1024] = {0};

    assert_int_equal(csn_buf_append(b, zeros, sizeof(zeros)), 0);
}

/* One entry after a good one: the good one is seen, this one is refused by name. */
static void refused(const char *name, char type, const char *target, const char *why)
{
    csn_autobuf b;
    csn_error *err = NULL;
    seen s = {0};

    csn_buf_init(&b, 1 << 20);
    add(&b, "good", '0', "x", 0644, NULL);
    add(&b, name, type, "", 0644, target);
    add(&b, "after", '0', "x", 0644, NULL);
    finish(&b);
    csn_status st = read_bytes(b.data, b.len, &s, 100, 1000, &err);
    if (st != CSN_INVALID || !strstr(csn_error_message(err), why))
        fail_msg("%s: %s, %s", name, csn_status_name(st), csn_error_message(err));
    assert_string_equal(s.text.data, "100644 1 1700000000000000000 good=x\n");
    csn_error_free(err);
    csn_buf_release(&s.text);
}

static void entries_that_would_leave_are_refused(void **state)
{
    (void)state;
    refused("../x", '0', NULL, "..");
    refused("a/../../x", '0', NULL, "..");
    refused("a/..", '5', NULL, "..");
    refused("..", '5', NULL, "..");
    refused("./..", '2', "x", "..");
    refused("/etc/passwd", '0', NULL, "absolute");
    refused("//x", '0', NULL, "absolute");
    refused("/", '5', NULL, "absolute");
    refused("hard", '1', "/etc/passwd", "hard link");
    refused("hard", '1', "good", "hard link");
    refused("char", '3', NULL, "neither");
    refused("block", '4', NULL, "neither");
    refused("fifo", '6', NULL, "neither");
    refused(".", '0', NULL, "no name");
    refused("link", '2', "", "to nothing");
}

static void names_modes_and_types_are_made_plain(void **state)
{
    csn_autobuf b;
    seen s = {0};
    csn_error *err = NULL;

    (void)state;
    csn_buf_init(&b, 1 << 20);
    add(&b, "./", '5', NULL, 0755, NULL);
    add(&b, "./d/", '5', NULL, 07755, NULL);
    add(&b, "d//./f", '0', "content", 06751, NULL);
    add(&b, "old", '\0', "", 0600, NULL);
    add(&b, "out", '2', NULL, 0777, "../../etc");
    add(&b, "out/passwd", '0', "evil", 0644, NULL); /* the consumer resolves beneath */
    add(&b, "...", '0', "", 0644, NULL);
    finish(&b);
    if (read_bytes(b.data, b.len, &s, 100, 1000, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    assert_string_equal(s.text.data, "40755 0 1700000000000000000 d=\n"
                                     "100751 7 1700000000000000000 d/f=content\n"
                                     "100600 0 1700000000000000000 old=\n"
                                     "120777 0 1700000000000000000 out>../../etc=\n"
                                     "100644 4 1700000000000000000 out/passwd=evil\n"
                                     "100644 0 1700000000000000000 ...=\n");
    csn_buf_release(&s.text);
}

static void what_is_no_tar_is_refused(void **state)
{
    csn_autobuf b;
    seen s = {0};
    char noise[2000];
    csn_error *err = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 37 + 11);
    assert_int_equal(read_bytes(noise, sizeof(noise), &s, 10, 1000, &err), CSN_INVALID);
    csn_error_free(err);
    csn_buf_release(&s.text);
    assert_int_equal(read_bytes("", 0, &s, 10, 1000, NULL), CSN_INVALID);
    csn_buf_release(&s.text);
    /* cut off in the middle of content */
    csn_buf_init(&b, 1 << 20);
    char big[3000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    add(&b, "f", '0', big, 0644, NULL);
    err = NULL;
    assert_int_equal(read_bytes(b.data, 1500, &s, 10, 100000, &err), CSN_INVALID);
    csn_error_free(err);
    csn_buf_release(&s.text);
    /* a source that fails is not the archive's fault */
    bytes fails = {.data = b.data, .left = 1500, .fails = true};
    const csn_source source = {.read = bytes_read, .ctx = &fails};
    csn_buf_init(&s.text, 1 << 20);
    err = NULL;
    assert_int_equal(api->read(&source, 10, 100000, see, &s, &err), CSN_IO);
    csn_error_free(err);
    csn_buf_release(&s.text);
}

static void limits_hold(void **state)
{
    csn_autobuf b;
    csn_error *err = NULL;
    seen s = {0};

    (void)state;
    csn_buf_init(&b, 1 << 20);
    add(&b, "a", '0', "12345", 0644, NULL);
    add(&b, "b", '0', "12345", 0644, NULL);
    finish(&b);
    assert_int_equal(read_bytes(b.data, b.len, &s, 2, 10, NULL), CSN_OK);
    csn_buf_release(&s.text);
    s.count = 0;
    assert_int_equal(read_bytes(b.data, b.len, &s, 1, 10, &err), CSN_TOO_LARGE);
    csn_error_free(err);
    assert_int_equal(s.count, 1);
    csn_buf_release(&s.text);
    s.count = 0;
    assert_int_equal(read_bytes(b.data, b.len, &s, 2, 9, NULL), CSN_TOO_LARGE);
    assert_int_equal(s.count, 1);
    csn_buf_release(&s.text);
    /* what the callback says ends it */
    s.answer = CSN_CONFLICT;
    err = NULL;
    assert_int_equal(read_bytes(b.data, b.len, &s, 2, 10, &err), CSN_CONFLICT);
    assert_string_equal(csn_error_message(err), "as asked");
    csn_error_free(err);
    csn_buf_release(&s.text);
}

/* ---- endless archives ------------------------------------------------------------------- */

/* A gzip stream made as it is read: a tar header, then zeros without end, 258 of them to 13
 * bits of deflate with fixed codes. */
typedef struct bomb {
    char head[512];
    size_t at;      /* of head */
    uint64_t zeros; /* left */
    uint64_t given; /* bytes of gzip so far */
    uint32_t bits;
    unsigned bit_count, endings;
    bool begun, literal_zero;
} bomb;

static void put_bits(bomb *z, uint32_t value, unsigned count)
{
    z->bits |= value << z->bit_count;
    z->bit_count += count;
}

/* Huffman codes go in with their highest bit first. */
static void put_code(bomb *z, uint32_t code, unsigned count)
{
    for (unsigned i = count; i > 0; i--)
        put_bits(z, (code >> (i - 1)) & 1, 1);
}

static void put_literal(bomb *z, unsigned char c)
{
    if (c < 144)
        put_code(z, 0x30u + c, 8);
    else
        put_code(z, 0x190u + (c - 144u), 9);
}

static int64_t bomb_read(void *ctx, void *buf, size_t len)
{
    static const unsigned char gzip[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    bomb *z = ctx;
    unsigned char *out = buf;
    size_t n = 0;

    if (!z->begun) {
        memcpy(out, gzip, sizeof(gzip));
        n = sizeof(gzip);
        z->begun = true;
        put_bits(z, 2, 3); /* not the last block; fixed codes */
    }
    while (n < len) {
        if (z->bit_count >= 8) {
            out[n++] = (unsigned char)z->bits;
            z->bits >>= 8;
            z->bit_count -= 8;
        } else if (z->at < 512) {
            put_literal(z, (unsigned char)z->head[z->at++]);
        } else if (!z->literal_zero) {
            put_literal(z, 0);
            z->literal_zero = true;
        } else if (z->zeros >= 258) {
            put_code(z, 0xc5, 8); /* length 258 */
            put_code(z, 0, 5);    /* distance 1 */
            z->zeros -= 258;
        } else if (z->endings < 12) { /* both blocks end; checksums that nobody looks at */
            if (z->endings == 0)
                put_code(z, 0, 7);
            else if (z->endings == 1)
                put_bits(z, 3, 3);
            else if (z->endings == 2)
                put_code(z, 0, 7);
            else
                put_bits(z, 0, 8 - (z->bit_count % 8));
            z->endings++;
        } else {
            break;
        }
    }
    z->given += n;
    return (int64_t)n;
}

static csn_status count_data(void *ctx, const csn_tar_entry *e, const csn_source *data,
                             csn_error **err)
{
    uint64_t *total = ctx;
    char chunk[65536];
    int64_t n;

    (void)e;
    (void)err;
    while ((n = data->read(data->ctx, chunk, sizeof(chunk))) > 0)
        *total += (uint64_t)n;
    return n < 0 ? csn_fail(err, CSN_IO, "data") : CSN_OK;
}

static void a_gzip_of_zeros_ends_at_the_limit(void **state)
{
    uint64_t total = 0;
    static const char types[] = {'0', '5', '2', '7'};

    (void)state;
    /* gigabytes announced: for a file that is too much, for others it means nothing */
    for (size_t i = 0; i < sizeof(types); i++) {
        bomb z = {.zeros = 10ull << 30};
        const csn_source source = {.read = bomb_read, .ctx = &z};
        header(z.head, "zeros", types[i], 077777777776ull, 0644, "t");
        csn_error *err = NULL;
        csn_status st = api->read(&source, 100, 1 << 20, count_data, &total, &err);
        if (st != CSN_TOO_LARGE && (types[i] == '0' || types[i] == '7' || st != CSN_OK))
            fail_msg("type %c: %s, %s", types[i], csn_status_name(st), csn_error_message(err));
        csn_error_free(err);
        assert_true(z.given < (1 << 20));
        assert_int_equal(total, 0);
    }
    /* within the limit it is read, and comes out whole */
    bomb z = {.zeros = (20 << 20) + 4096};
    const csn_source source = {.read = bomb_read, .ctx = &z};
    header(z.head, "zeros", '0', 20 << 20, 0644, NULL);
    csn_error *err = NULL;
    csn_status st = api->read(&source, 100, 20 << 20, count_data, &total, &err);
    if (st != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    assert_int_equal(total, 20 << 20);
    assert_true(z.given < 200000);
}

/* Special headers come before an entry and are no entry themselves. */
static void endless_special_headers_end(void **state)
{
    uint64_t total = 0;
    static const char types[] = {'x', 'g', 'L', 'K', 'V'};

    (void)state;
    for (size_t i = 0; i < sizeof(types); i++) {
        bomb z = {.zeros = 300 << 20};
        const csn_source source = {.read = bomb_read, .ctx = &z};
        header(z.head, "special", types[i], 300 << 20, 0644, NULL);
        csn_status st = api->read(&source, 100, 1 << 20, count_data, &total, NULL);
        /* volume labels are passed over, and then there is nothing */
        assert_true(st == CSN_INVALID || st == CSN_TOO_LARGE ||
                    (types[i] == 'V' && st == CSN_OK));
        assert_true(z.given < (1 << 20));
        assert_int_equal(total, 0);
    }
}

typedef struct many {
    char block[512];
    uint64_t left; /* bytes */
} many;

static int64_t many_read(void *ctx, void *buf, size_t len)
{
    many *m = ctx;
    size_t n = len / 512 * 512;

    n = n < m->left ? n : (size_t)m->left;
    for (size_t i = 0; i < n; i += 512)
        memcpy((char *)buf + i, m->block, 512);
    m->left -= n;
    return (int64_t)n;
}

static csn_status count_entry(void *ctx, const csn_tar_entry *e, const csn_source *data,
                              csn_error **err)
{
    (void)e;
    (void)data;
    (void)err;
    ++*(uint64_t *)ctx;
    return CSN_OK;
}

static void a_million_entries_and_one_are_too_many(void **state)
{
    many m = {.left = 512ull * (CSN_TAR_ENTRIES_MAX + 10)};
    const csn_source source = {.read = many_read, .ctx = &m};
    uint64_t count = 0;

    (void)state;
    header(m.block, "same", '0', 0, 0644, NULL);
    assert_int_equal(
        api->read(&source, CSN_TAR_ENTRIES_MAX, CSN_TAR_BYTES_MAX, count_entry, &count, NULL),
        CSN_TOO_LARGE);
    assert_int_equal(count, CSN_TAR_ENTRIES_MAX);
}

/* ---- there and back --------------------------------------------------------------------- */

static void what_is_written_comes_back(void **state)
{
    static const char *const names[] = {
        "plain",        "with space",    "new\nline",   "caf\xc3\xa9", "cafe\xcc\x81",
        "non\xffutf8",  "-dash",         "=",           "d/e/f",       "...",
        "\xe2\x80\xae", "1 path=evil\n", "back\\slash", "\x01\x7f",    "\xc3\x28",
    };
    static const int64_t times[] = {0,           1700000000123456789, -1,
                                    -1500000000, 4102444800000000001, 1700000000000000000};
    csn_autobuf b, want;
    const csn_sink sink = {.write = sink_write, .ctx = &b};
    csn_tar_writer *w = NULL;
    csn_error *err = NULL;
    seen s = {0};
    char long_name[600], line[1200];

    (void)state;
    csn_buf_init(&b, 1 << 24);
    csn_buf_init(&want, 1 << 24);
    assert_int_equal(api->writer_new(&sink, &w, NULL), CSN_OK);
    size_t n = sizeof(names) / sizeof(names[0]);
    for (size_t i = 0; i < n; i++) {
        csn_tar_entry e = {.path = names[i],
                           .mode = S_IFREG | 0640,
                           .file_size = 5,
                           .modified_ns = times[i % 6]};
        assert_int_equal(api->writer_entry(w, &e, NULL), CSN_OK);
        assert_int_equal(api->writer_data(w, "12", 2, NULL), CSN_OK);
        assert_int_equal(api->writer_data(w, "\n45", 3, NULL), CSN_OK);
        csn_buf_printf(&want, "100640 5 %lld %s=12\n45\n", (long long)times[i % 6], names[i]);
        csn_tar_entry l = {.path = "link", .target = names[i], .mode = S_IFLNK | 0777};
        assert_int_equal(api->writer_entry(w, &l, NULL), CSN_OK);
        csn_buf_printf(&want, "120777 0 0 link>%s=\n", names[i]);
    }
    memset(long_name, 'n', sizeof(long_name));
    for (size_t i = 0; i + 50 < sizeof(long_name); i += 50)
        memcpy(long_name + i, "/\xff\xc3\xa9", 4);
    long_name[0] = 'l';
    long_name[sizeof(long_name) - 1] = '\0';
    csn_tar_entry d = {.path = long_name, .mode = S_IFDIR | 0751, .modified_ns = 5};
    assert_int_equal(api->writer_entry(w, &d, NULL), CSN_OK);
    snprintf(line, sizeof(line), "40751 0 5 %s=\n", long_name);
    csn_buf_puts(&want, line);
    csn_tar_entry suid = {.path = "suid", .mode = S_IFREG | 06755};
    assert_int_equal(api->writer_entry(w, &suid, NULL), CSN_OK);
    csn_buf_puts(&want, "100755 0 0 suid=\n");
    assert_int_equal(api->writer_finish(w, NULL), CSN_OK);
    api->writer_free(w);

    if (read_bytes(b.data, b.len, &s, 1000, 1 << 20, &err) != CSN_OK)
        fail_msg("%s", csn_error_message(err));
    assert_string_equal(s.text.data, want.data);
    csn_buf_release(&s.text);
}

/* Extended headers of others say UTF-8, and libarchive would make it that of its locale. */
static void names_stay_bytes_in_any_locale(void **state)
{
    csn_autobuf b;
    static const char *const locales[] = {"C", "C.UTF-8"};
    csn_error *err = NULL;

    csn_buf_init(&b, 1 << 20);
    add(&b, "pax", 'x', "14 path=caf\xc3\xa9\n", 0644, NULL);
    add(&b, "x", '0', "1", 0644, NULL);
    add(&b, "pax", 'x', "15 path=cafe\xcc\x81\n", 0644, NULL);
    add(&b, "x", '0', "2", 0644, NULL);
    add(&b, "pax", 'x', "17 path=non\xffutf8\n", 0644, NULL);
    add(&b, "x", '0', "3", 0644, NULL);
    finish(&b);
    for (size_t i = 0; i < 2; i++) {
        seen s = {0};
        if (!setlocale(LC_ALL, locales[i]))
            continue; /* not on this machine */
        if (read_bytes(b.data, b.len, &s, 100, 1000, &err) != CSN_OK)
            fail_msg("%s", csn_error_message(err));
        assert_string_equal(s.text.data, "100644 1 1700000000000000000 caf\xc3\xa9=1\n"
                                         "100644 1 1700000000000000000 cafe\xcc\x81=2\n"
                                         "100644 1 1700000000000000000 non\xffutf8=3\n");
        csn_buf_release(&s.text);
        what_is_written_comes_back(state);
    }
    setlocale(LC_ALL, "C");
}

static int stop(void *ctx, int stream, const void *data, size_t len)
{
    (void)ctx;
    (void)stream;
    (void)data;
    (void)len;
    return CSN_SINK_STOP;
}

static void a_writer_keeps_to_what_was_announced(void **state)
{
    csn_autobuf b;
    csn_sink sink = {.write = sink_write, .ctx = &b};
    csn_tar_writer *w = NULL;
    csn_tar_entry e = {.path = "f", .mode = S_IFREG | 0644, .file_size = 3};
    csn_error *err = NULL;

    (void)state;
    csn_buf_init(&b, 1 << 20);
    assert_int_equal(api->writer_new(&sink, &w, NULL), CSN_OK);
    assert_int_equal(api->writer_entry(w, &e, NULL), CSN_OK);
    assert_int_equal(api->writer_data(w, "1234", 4, &err), CSN_INTERNAL);
    csn_error_free(err);
    assert_int_equal(api->writer_data(w, "12", 2, NULL), CSN_OK);
    assert_int_equal(api->writer_entry(w, &e, NULL), CSN_INTERNAL);
    assert_int_equal(api->writer_finish(w, NULL), CSN_INTERNAL);
    api->writer_free(w);
    api->writer_free(NULL);
    /* a receiver that has enough */
    sink.write = stop;
    assert_int_equal(api->writer_new(&sink, &w, NULL), CSN_OK);
    e.file_size = 200000;
    csn_status st = api->writer_entry(w, &e, NULL);
    char *zeros = calloc(1, 200000);
    assert_non_null(zeros);
    if (st == CSN_OK)
        st = api->writer_data(w, zeros, 200000, NULL);
    assert_int_equal(st, CSN_CANCELLED);
    free(zeros);
    api->writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_module_is_named),
        cmocka_unit_test(entries_that_would_leave_are_refused),
        cmocka_unit_test(names_modes_and_types_are_made_plain),
        cmocka_unit_test(what_is_no_tar_is_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_gzip_of_zeros_ends_at_the_limit),
        cmocka_unit_test(endless_special_headers_end),
        cmocka_unit_test(a_million_entries_and_one_are_too_many),
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(names_stay_bytes_in_any_locale),
        cmocka_unit_test(a_writer_keeps_to_what_was_announced),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, load, NULL);
}
