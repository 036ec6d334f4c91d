/* tar.c: reads and writes tar streams with libarchive, as the module caisson-archive.so.
 *
 * The author of an archive is an attacker, who chooses every name, type and size, and the
 * compression. This file opens no file; it passes entries to a callback, which writes beneath a
 * root.
 *
 * Invariants for every entry that reaches the callback: its path is relative without `.` and
 * `..`; it is a regular file, a directory or a symlink; it has no set-id bits; the sizes
 * announced so far are within the limit. Announced sizes and the output of the decompressor are
 * both counted, against sparse files and compression bombs. A symlink's target is not checked:
 * the callback must not follow it. */
#include "archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"

#define BLOCK 65536
/* Bytes of headers, padding and long names that do not count against max_bytes: per entry, and
 * in total. */
#define OVERHEAD_ENTRY (64u * 1024u)
#define OVERHEAD_ALL   (1024u * 1024u)

/* ---- writing ---------------------------------------------------------------------------- */

struct csn_tar_writer {
    struct archive *a;
    struct archive_entry *entry;
    csn_sink sink;
    uint64_t left; /* bytes of the current entry still to be written */
    bool stopped;
};

static la_ssize_t writer_out(struct archive *a, void *ctx, const void *data, size_t len)
{
    csn_tar_writer *w = ctx;

    if (!w->stopped)
        w->stopped = w->sink.write(w->sink.ctx, CSN_STDOUT, data, len) == CSN_SINK_STOP;
    if (!w->stopped)
        return (la_ssize_t)len;
    archive_set_error(a, ECANCELED, "stopped by the receiver");
    return -1;
}

static csn_status writer_fail(const csn_tar_writer *w, const char *what, csn_error **err)
{
    const char *why = archive_error_string(w->a);
    csn_status code = w->stopped                      ? CSN_CANCELLED
                      : archive_errno(w->a) == ENOMEM ? CSN_NOMEM
                                                      : CSN_IO;

    return csn_fail(err, code, "tar: %s: %s", what, why ? why : "failed");
}

static void writer_free(csn_tar_writer *w)
{
    if (!w)
        return;
    if (w->a) {
        w->stopped = true; /* archive_write_free would write the end blocks */
        archive_write_free(w->a);
    }
    archive_entry_free(w->entry);
    free(w);
}
CSN_DEFINE_CLEANUP(csn_tar_writer, writer_free)

static csn_status writer_new(const csn_sink *sink, csn_tar_writer **ret, csn_error **err)
{
    CSN_CLEANUP(writer_freep) csn_tar_writer *w = calloc(1, sizeof(*w));

    if (!w || !(w->a = archive_write_new()) || !(w->entry = archive_entry_new()))
        return csn_fail(err, CSN_NOMEM, "tar");
    w->sink = *sink;
    /* Not pax_restricted, which drops nanoseconds. BINARY: names are bytes in any locale. */
    if (archive_write_set_format_pax(w->a) != ARCHIVE_OK ||
        archive_write_set_format_option(w->a, NULL, "hdrcharset", "BINARY") != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(w->a, BLOCK) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(w->a, 1) != ARCHIVE_OK ||
        archive_write_open2(w->a, w, NULL, writer_out, NULL, NULL) != ARCHIVE_OK)
        return writer_fail(w, "open", err);
    *ret = CSN_STEAL(w);
    return CSN_OK;
}

/* Splits into seconds and nanoseconds; the nanoseconds are never negative. */
static int64_t split_time(int64_t ns, long *ret_rest)
{
    int64_t rest = ns % 1000000000;

    if (rest < 0)
        rest += 1000000000;
    *ret_rest = (long)rest;
    return (ns - rest) / 1000000000;
}

static csn_status writer_entry(csn_tar_writer *w, const csn_tar_entry *e, csn_error **err)
{
    uint32_t type = e->mode & S_IFMT;
    long ns = 0;

    if (w->left > 0)
        return csn_fail(err, CSN_INTERNAL, "tar: the previous entry is incomplete");
    archive_entry_clear(w->entry);
    archive_entry_copy_pathname(w->entry, e->path);
    archive_entry_set_mode(w->entry, type | (e->mode & 0777u));
    int64_t seconds = split_time(e->modified_ns, &ns);
    archive_entry_set_mtime(w->entry, seconds, ns);
    archive_entry_set_size(w->entry, type == S_IFREG ? (int64_t)e->file_size : 0);
    if (type == S_IFLNK)
        archive_entry_copy_symlink(w->entry, e->target ? e->target : "");
    int rc = archive_write_header(w->a, w->entry);
    if (rc < ARCHIVE_WARN)
        return writer_fail(w, "header", err);
    w->left = type == S_IFREG ? e->file_size : 0;
    return CSN_OK;
}

static csn_status writer_data(csn_tar_writer *w, const void *data, size_t len, csn_error **err)
{
    if (len > w->left)
        return csn_fail(err, CSN_INTERNAL, "tar: more data than the entry announced");
    for (const char *p = data; len > 0;) {
        la_ssize_t n = archive_write_data(w->a, p, len);
        if (n <= 0)
            return writer_fail(w, "data", err);
        p += n;
        len -= (size_t)n;
        w->left -= (uint64_t)n;
    }
    return CSN_OK;
}

static csn_status writer_finish(csn_tar_writer *w, csn_error **err)
{
    if (w->left > 0)
        return csn_fail(err, CSN_INTERNAL, "tar: the last entry is incomplete");
    return archive_write_close(w->a) == ARCHIVE_OK ? CSN_OK : writer_fail(w, "close", err);
}

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct reader {
    struct archive *a;
    const csn_source *source;
    char block[BLOCK];
    char path[CSN_PATH_MAX]; /* of the current entry, normalized */
    uint64_t entries, bytes; /* read so far; bytes as announced */
    uint64_t max_entries, max_bytes;
    uint64_t left;          /* bytes of the current entry */
    locale_t caller_locale; /* for the callbacks */
    bool source_failed, bad_data;
} reader;

static la_ssize_t reader_in(struct archive *a, void *ctx, const void **ret)
{
    reader *r = ctx;

    locale_t before = uselocale(r->caller_locale);
    int64_t n = r->source->read(r->source->ctx, r->block, sizeof(r->block));
    uselocale(before);
    *ret = r->block;
    if (n >= 0 && n <= (int64_t)sizeof(r->block))
        return (la_ssize_t)n;
    r->source_failed = true;
    archive_set_error(a, EIO, "the stream cannot be read");
    return -1;
}

static csn_status reader_fail(const reader *r, csn_error **err)
{
    const char *why = archive_error_string(r->a);
    csn_status code = r->source_failed                ? CSN_IO
                      : archive_errno(r->a) == ENOMEM ? CSN_NOMEM
                                                      : CSN_INVALID;

    return csn_fail(err, code, "tar: %s", why ? why : "not a tar stream");
}

static csn_status refuse(const char *name, const char *why, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(name);

    return csn_fail(err, CSN_INVALID, "tar: entry %s %s", shown ? shown : "", why);
}

/* Copies the name without empty and `.` components to r->path. Returns NULL, or the reason to
 * refuse the name. */
static const char *normalize_path(reader *r, const char *name)
{
    size_t len = 0;

    if (name[0] == '/')
        return "has an absolute name";
    for (const char *p = name + strspn(name, "/"); *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return "has .. in its name";
        if (n != 1 || p[0] != '.') {
            if (len + n + 2 > sizeof(r->path))
                return "has a name that is too long";
            if (len > 0)
                r->path[len++] = '/';
            memcpy(r->path + len, p, n);
            len += n;
        }
        p += n;
        p += strspn(p, "/");
    }
    r->path[len] = '\0';
    return NULL;
}

static csn_status check_limits(const reader *r, csn_error **err)
{
    uint64_t out = (uint64_t)archive_filter_bytes(r->a, 0);
    uint64_t over = r->entries * OVERHEAD_ENTRY + OVERHEAD_ALL;

    if (r->entries > r->max_entries)
        return csn_fail(err, CSN_TOO_LARGE, "tar: more than %llu entries",
                        (unsigned long long)r->max_entries);
    if (r->bytes > r->max_bytes ||
        (r->max_bytes < UINT64_MAX - over && out > r->max_bytes + over))
        return csn_fail(err, CSN_TOO_LARGE, "tar: more than %llu bytes",
                        (unsigned long long)r->max_bytes);
    return CSN_OK;
}

/* Sets *ret_skip if the entry is the top directory itself. */
static csn_status read_entry(reader *r, struct archive_entry *ae, csn_tar_entry *e,
                             bool *ret_skip, csn_error **err)
{
    const char *name = archive_entry_pathname(ae);
    uint32_t type = archive_entry_filetype(ae);
    int64_t size = archive_entry_size_is_set(ae) ? archive_entry_size(ae) : 0;

    if (!name)
        return csn_fail(err, CSN_INVALID, "tar: an entry has a name that cannot be read");
    if (archive_entry_hardlink(ae))
        return refuse(name, "is a hard link", err);
    if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
        return refuse(name, "is neither a file, a directory nor a symbolic link", err);
    const char *wrong = normalize_path(r, name);
    if (!wrong && !r->path[0] && type != AE_IFDIR)
        wrong = "has no name";
    if (!wrong && size < 0)
        wrong = "has a negative size";
    *e = (csn_tar_entry){
        .path = r->path,
        .file_size = type == AE_IFREG ? (uint64_t)size : 0,
        .mode = type | (archive_entry_perm(ae) & 0777u),
    };
    if (type == AE_IFLNK) {
        e->target = archive_entry_symlink(ae);
        if (!wrong && (!e->target || !e->target[0]))
            wrong = "is a symbolic link to nothing";
    }
    if (wrong)
        return refuse(name, wrong, err);
    int64_t seconds = archive_entry_mtime_is_set(ae) ? archive_entry_mtime(ae) : 0;
    if (seconds < INT64_MAX / 1000000000 - 1 && seconds > INT64_MIN / 1000000000 + 1)
        e->modified_ns = seconds * 1000000000 + archive_entry_mtime_nsec(ae);
    *ret_skip = !r->path[0];
    r->left = e->file_size;
    /* Counted for every type: data after a directory's header is skipped, but decompressed. */
    if (__builtin_add_overflow(r->bytes, (uint64_t)size, &r->bytes))
        r->bytes = UINT64_MAX;
    r->entries++;
    return check_limits(r, err);
}

static int64_t entry_data(void *ctx, void *buf, size_t len)
{
    reader *r = ctx;

    /* A sparse map may place data beyond the announced size. */
    if (len > r->left)
        len = (size_t)r->left;
    la_ssize_t n = len > 0 ? archive_read_data(r->a, buf, len) : 0;
    if (n >= 0) {
        r->left -= (uint64_t)n;
        return n;
    }
    r->bad_data = true;
    return -1;
}

typedef csn_status (*entry_fn)(void *ctx, const csn_tar_entry *e, const csn_source *data,
                               csn_error **err);

static csn_status read_all(reader *r, entry_fn fn, void *ctx, csn_error **err)
{
    const csn_source data = {.read = entry_data, .ctx = r};
    csn_tar_entry e;
    bool skip = false;

    for (;;) {
        struct archive_entry *ae = NULL;
        int rc = archive_read_next_header(r->a, &ae);
        if (rc == ARCHIVE_EOF)
            return CSN_OK;
        if (rc < ARCHIVE_WARN)
            return reader_fail(r, err);
        csn_status st = read_entry(r, ae, &e, &skip, err);
        if (st == CSN_OK && !skip) {
            locale_t before = uselocale(r->caller_locale);
            st = fn(ctx, &e, &data, err);
            uselocale(before);
        }
        if (st < 0)
            return st;
        if (r->bad_data) /* even if fn ignored the error */
            return reader_fail(r, err);
        st = check_limits(r, err);
        if (st < 0)
            return st;
    }
}

static csn_status open_and_read(reader *r, entry_fn fn, void *ctx, csn_error **err)
{
    if (archive_read_support_format_tar(r->a) != ARCHIVE_OK ||
        archive_read_support_filter_gzip(r->a) != ARCHIVE_OK ||
        archive_read_open(r->a, r, NULL, reader_in, NULL) != ARCHIVE_OK)
        return reader_fail(r, err);
    return read_all(r, fn, ctx, err);
}

static csn_status read_tar(const csn_source *source, uint64_t max_entries, uint64_t max_bytes,
                           entry_fn fn, void *ctx, csn_error **err)
{
    csn_autofree reader *r = calloc(1, sizeof(*r));
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    if (!r || !c_locale || !(r->a = archive_read_new())) {
        if (c_locale)
            freelocale(c_locale);
        return csn_fail(err, CSN_NOMEM, "tar");
    }
    r->source = source;
    r->max_entries = max_entries;
    r->max_bytes = max_bytes;
    /* In a UTF-8 locale libarchive normalizes names to NFC, which can make two files one. */
    r->caller_locale = uselocale(c_locale);
    csn_status st = open_and_read(r, fn, ctx, err);
    archive_read_free(r->a);
    uselocale(r->caller_locale);
    freelocale(c_locale);
    return st;
}

const csn_tar_api *csn_tar_module(void)
{
    static const csn_tar_api api = {
        .version = CSN_TAR_API_VERSION,
        .writer_new = writer_new,
        .writer_entry = writer_entry,
        .writer_data = writer_data,
        .writer_finish = writer_finish,
        .writer_free = writer_free,
        .read = read_tar,
    };

    return &api;
}
