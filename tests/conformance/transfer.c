/* transfer.c: directories to the host and back, and the same as tar streams. What comes from an
 * archive is hostile: names that leave, links, devices and bombs. */
#include "conformance/conformance.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRANSFER(...) CSN_OPTS(csn_transfer_opts, __VA_ARGS__)

/* A tree as text: one line per entry with type, mode, target and content, sorted. */
static void describe(csn_fx *f, FILE *out, const char *dir, const char *rel)
{
    char *at = csn_fx_keep(f, csn_test_format("%s/%s", dir, rel));
    struct dirent **names = NULL;
    int n = scandir(at, &names, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        struct stat st;
        char *sub = csn_test_format("%s%s%s", rel, *rel ? "/" : "", names[i]->d_name);
        char *path = csn_test_join(dir, sub), target[256] = "", *data = NULL;

        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            assert_int_equal(lstat(path, &st), 0);
            if (S_ISLNK(st.st_mode))
                (void)!readlink(path, target, sizeof(target) - 1);
            if (S_ISREG(st.st_mode))
                data = csn_test_get(path, NULL);
            fprintf(out, "%s %o %s %s\n", sub, S_ISLNK(st.st_mode) ? S_IFLNK : st.st_mode,
                    target, data ? data : "");
            if (S_ISDIR(st.st_mode))
                describe(f, out, dir, sub);
        }
        free(data);
        free(path);
        free(sub);
        free(names[i]);
    }
    free(names);
}

static char *tree_text(csn_fx *f, const char *dir)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    describe(f, out, dir, "");
    fclose(out);
    return csn_fx_keep(f, text);
}

static void make_tree(csn_fx *f, const char *top)
{
    char *cmd = csn_test_format(
        "umask 022; mkdir -p %s/src/deep %s/empty && cd %s && echo hello > src/a.txt && "
        "printf 'bin\\001\\377' > src/deep/b && ln -s src/a.txt link && ln -s nowhere dangling "
        "&& "
        "echo run > tool && chmod 755 tool && echo ro > ro && chmod 444 ro && : > zero && "
        "echo odd > 'odd\nname \"x\"' && echo d > -dash && chmod 750 src/deep && "
        "ln src/a.txt hard",
        top, top, top);

    csn_fx_run(f, cmd);
    free(cmd);
}

/* S1: ExportDirectory, RefreshFromHost */
static void export_and_import_round_trip(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "exported"));

    make_tree(f, "t");
    ok(csn_export(f->sb, "t", out, NULL, E)); /* makes the directory */
    char *want = tree_text(f, csn_fx_host(f, "t")), *have = tree_text(f, out);
    assert_string_equal(have, want);
    ok(csn_import(f->sb, out, "back/here", NULL, E));
    assert_string_equal(tree_text(f, csn_fx_host(f, "back/here")), want);
    /* it can be run again over itself */
    ok(csn_export(f->sb, "t", out, NULL, E));
    assert_string_equal(tree_text(f, out), want);
    ok(csn_import(f->sb, out, "back/here", NULL, E));
    assert_string_equal(tree_text(f, csn_fx_host(f, "back/here")), want);
}

static void import_overwrites_and_keeps_what_else_is_there(csn_fx *f)
{
    char *in = csn_fx_keep(f, csn_test_join(f->dir, "in"));

    csn_test_mkdir(in);
    csn_test_put(csn_fx_keep(f, csn_test_join(in, "a")), "new", 3);
    csn_fx_put(f, "d/a", "old");
    csn_fx_put(f, "d/other", "stays");
    ok(csn_import(f->sb, in, "d", NULL, E));
    csn_fx_holds(f, "d/a", "new");
    csn_fx_holds(f, "d/other", "stays");
}

static void transfer_drops_set_id_and_leaves_out_special_files(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "out"));

    csn_fx_run(f, "mkdir t && echo x > t/suid && mkfifo t/pipe && echo y > t/plain");
    assert_int_equal(chmod(csn_fx_host(f, "t/suid"), 06755), 0);
    ok(csn_export(f->sb, "t", out, NULL, E));
    assert_int_equal(csn_fx_strays(f, out), 2);
    char *suid = csn_fx_keep(f, csn_test_join(out, "suid"));
    assert_int_equal(csn_test_mode(suid) & 07777, 0755);
    assert_int_equal(chmod(suid, 06755), 0);
    assert_int_equal(mkfifo(csn_fx_keep(f, csn_test_join(out, "p2")), 0600), 0);
    ok(csn_import(f->sb, out, "in", NULL, E));
    assert_int_equal(csn_test_mode(csn_fx_host(f, "in/suid")) & 07777, 0755);
    assert_int_equal(csn_fx_strays(f, csn_fx_host(f, "in")), 2);
}

/* A link in a tree is copied as a link: nothing behind it comes along. */
static void links_to_outside_are_inert(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "out")), target[256] = "";

    csn_fx_run(f, "mkdir t");
    assert_int_equal(symlink(f->outside, csn_fx_host(f, "t/out")), 0);
    ok(csn_export(f->sb, "t", out, NULL, E));
    assert_true(readlink(csn_fx_keep(f, csn_test_join(out, "out")), target, 255) > 0);
    assert_string_equal(target, f->outside);
    csn_fx_canary(f);
}

/* A link that lies where the copy wants to write must not lead it away. */
static void export_does_not_write_through_links_on_the_host(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "out"));

    csn_test_mkdir(out);
    assert_int_equal(symlink(f->outside, csn_fx_keep(f, csn_test_join(out, "d"))), 0);
    char *canary = csn_fx_keep(f, csn_test_join(f->outside, "canary"));
    assert_int_equal(symlink(canary, csn_fx_keep(f, csn_test_join(out, "f"))), 0);
    csn_fx_run(f, "mkdir -p t/d && echo evil > t/d/x && echo evil > t/f");
    csn_conf_reset();
    (void)csn_export(f->sb, "t", out, NULL, E); /* refused or replaced: both are safe */
    csn_fx_canary(f);
}

static void transfer_names_what_is_missing(csn_fx *f)
{
    char *missing = csn_fx_keep(f, csn_test_join(f->dir, "missing"));
    char *file = csn_fx_keep(f, csn_test_join(f->dir, "hostfile"));

    csn_test_put(file, "x", 1);
    csn_fx_put(f, "file", "x");
    fails(CSN_NOT_FOUND, csn_export(f->sb, "nope", f->outside, NULL, E));
    says("nope");
    fails(CSN_NOT_FOUND, csn_import(f->sb, missing, "d", NULL, E));
    fails(CSN_WRONG_TYPE, csn_import(f->sb, file, "d", NULL, E));
    fails(CSN_WRONG_TYPE, csn_export(f->sb, "file", f->outside, NULL, E));
    fails(CSN_WRONG_TYPE, csn_export(f->sb, ".", file, NULL, E));
    fails(CSN_INVALID, csn_export(f->sb, ".", NULL, NULL, E));
    fails(CSN_INVALID, csn_import(f->sb, NULL, ".", NULL, E));
    csn_fx_canary(f);
}

static void limits_hold(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "out"));

    csn_fx_run(f, "mkdir t && cd t && for i in 1 2 3 4 5; do yes | head -c 1000 > f$i; done");
    fails(CSN_TOO_LARGE, csn_export(f->sb, "t", out, TRANSFER(.max_entries = 3), E));
    fails(CSN_TOO_LARGE, csn_export(f->sb, "t", out, TRANSFER(.max_bytes = 2500), E));
    ok(csn_export(f->sb, "t", out, TRANSFER(.max_entries = 6, .max_bytes = 5000), E));
    fails(CSN_TOO_LARGE, csn_import(f->sb, out, "in", TRANSFER(.max_bytes = 4999), E));
    fails(CSN_INVALID, csn_export(f->sb, "t", out, &(csn_transfer_opts){0}, E));
}

typedef struct progress {
    csn_cancel *cancel;
    uint64_t entries, bytes, calls;
    bool back;
} progress;

static void on_progress(void *ctx, uint64_t entries, uint64_t bytes)
{
    progress *p = ctx;

    p->back |= entries < p->entries || bytes < p->bytes;
    p->entries = entries;
    p->bytes = bytes;
    if (++p->calls == 3 && p->cancel)
        csn_cancel_fire(p->cancel);
}

static void progress_is_told_and_can_be_cancelled(csn_fx *f)
{
    char *out = csn_fx_keep(f, csn_test_join(f->dir, "out"));
    progress p = {0}, stop = {0};
    AUTO(csn_cancel, c);

    csn_fx_run(f, "mkdir t && cd t && i=0; while [ $i -lt 50 ]; do echo 1234567 > f$i; "
                  "i=$((i+1)); done");
    ok(csn_export(f->sb, "t", out, TRANSFER(.on_progress = on_progress, .on_progress_ctx = &p),
                  E));
    assert_false(p.back);
    assert_true(p.entries >= 50);
    assert_int_equal(p.bytes, 400);
    ok(csn_cancel_new(&c, E));
    stop.cancel = c;
    fails(CSN_CANCELLED,
          csn_import(
              f->sb, out, "in",
              TRANSFER(.on_progress = on_progress, .on_progress_ctx = &stop, .cancel = c), E));
}

/* ---- tar ---- */

typedef struct bytes {
    char *data;
    size_t len, at;
} bytes;

static int bytes_write(void *ctx, const void *data, size_t len)
{
    bytes *b = ctx;

    b->data = realloc(b->data, b->len + len);
    memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

static int64_t bytes_read(void *ctx, void *buf, size_t len)
{
    bytes *b = ctx;
    size_t n = b->len - b->at < len ? b->len - b->at : len;

    if (n > 0)
        memcpy(buf, b->data + b->at, n);
    b->at += n;
    return (int64_t)n;
}

static void tar_round_trip(csn_fx *f)
{
    bytes b = {0};

    make_tree(f, "t");
    ok(csn_export_tar(f->sb, "t", bytes_write, &b, NULL, E));
    assert_true(b.len > 1024);
    assert_int_equal(b.len % 512, 0);
    ok(csn_import_tar(f->sb, "u/v", bytes_read, &b, NULL, E));
    free(b.data);
    assert_string_equal(tree_text(f, csn_fx_host(f, "u/v")), tree_text(f, csn_fx_host(f, "t")));
}

static void tar_is_understood_by_tar(csn_fx *f)
{
    bytes b = {0};

    csn_fx_run(f, "mkdir t && echo hi > t/f && ln -s f t/l");
    ok(csn_export_tar(f->sb, "t", bytes_write, &b, NULL, E));
    csn_fx_putn(f, "x.tar", b.data, b.len);
    free(b.data);
    csn_fx_run(f, "mkdir u && cd u && tar xf ../x.tar");
    csn_fx_holds(f, "u/f", "hi\n");
    csn_fx_run(f, "tar cf y.tar -C t . && test -s y.tar");
    b = (bytes){0};
    b.data = csn_fx_get(f, "y.tar", &b.len);
    ok(csn_import_tar(f->sb, "w", bytes_read, &b, NULL, E));
    csn_fx_holds(f, "w/f", "hi\n");
}

static void put_octal(char *at, int digits, unsigned long long n)
{
    for (int i = digits - 1; i >= 0; i--, n /= 8)
        at[i] = (char)('0' + n % 8);
}

/* One header block and its data, as an attacker would write it. */
static void tar_add(bytes *b, const char *name, char type, unsigned mode, const char *target,
                    const char *data, unsigned long long claim)
{
    char h[512] = {0};
    unsigned sum = 0;
    size_t len = strlen(data), padded = (len + 511) / 512 * 512;

    snprintf(h, 100, "%s", name);
    put_octal(h + 100, 7, mode);
    put_octal(h + 108, 7, 0);
    put_octal(h + 116, 7, 0);
    put_octal(h + 124, 11, claim ? claim : len);
    put_octal(h + 136, 11, 1000000000);
    memset(h + 148, ' ', 8);
    h[156] = type;
    snprintf(h + 157, 100, "%s", target);
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)h[i];
    put_octal(h + 148, 6, sum);
    h[154] = '\0';
    bytes_write(b, h, 512);
    b->data = realloc(b->data, b->len + padded + 1);
    memset(b->data + b->len, 0, padded);
    memcpy(b->data + b->len, data, len);
    b->len += padded;
}

static void tar_end(bytes *b)
{
    static const char zero[1024];

    bytes_write(b, zero, 1024);
}

/* D09 */
static void hostile_archives_stay_inside(csn_fx *f)
{
    char *up = csn_fx_keep(f, csn_test_format("%s/x", f->outside));
    const struct {
        const char *name;
        char type;
        const char *target;
    } cases[] = {
        {"../evil", '0', ""},
        {"../../outside/evil", '0', ""},
        {"a/../../evil", '0', ""},
        {up, '0', ""},
        {"hard", '1', up},
        {"hard2", '1', "../evil"},
        {"dev", '3', ""},
        {"blk", '4', ""},
        {"fifo", '6', ""},
        {"..", '5', ""},
        {"/", '5', ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bytes b = {0};

        tar_add(&b, cases[i].name, cases[i].type, 0644, cases[i].target, "", 0);
        tar_end(&b);
        fails(CSN_INVALID, csn_import_tar(f->sb, "in", bytes_read, &b, NULL, E));
        free(b.data);
        csn_fx_canary(f);
        assert_false(csn_test_exists(csn_fx_host(f, "evil")));
        assert_false(csn_test_exists(csn_fx_host(f, "in/dev")));
    }
}

static void link_then_file_does_not_escape(csn_fx *f)
{
    bytes b = {0};

    tar_add(&b, "d", '2', 0777, f->outside, "", 0);
    tar_add(&b, "d/evil", '0', 0644, "", "evil", 0);
    tar_end(&b);
    fails(CSN_EXISTS, csn_import_tar(f->sb, "in", bytes_read, &b, NULL, E));
    free(b.data);
    csn_fx_canary(f);
}

static void set_id_bits_of_archives_are_dropped(csn_fx *f)
{
    bytes b = {0};

    tar_add(&b, "suid", '0', 06755, "", "x", 0);
    tar_end(&b);
    ok(csn_import_tar(f->sb, "in", bytes_read, &b, NULL, E));
    free(b.data);
    assert_int_equal(csn_test_mode(csn_fx_host(f, "in/suid")) & 07777, 0755);
}

static void broken_archives_are_invalid(csn_fx *f)
{
    bytes b = {0}, junk = {.data = csn_fx_fill(f, 3000), .len = 3000}, empty = {0};

    tar_add(&b, "f", '0', 0644, "", "x", 1ull << 32); /* claims 4 GiB */
    fails(CSN_IO, csn_import_tar(f->sb, "in", bytes_read, &b, NULL, E));
    free(b.data);
    fails(CSN_INVALID, csn_import_tar(f->sb, "in2", bytes_read, &junk, NULL, E));
    fails(CSN_INVALID, csn_import_tar(f->sb, "in3", bytes_read, &empty, NULL, E));
}

static void archive_limits_hold(csn_fx *f)
{
    bytes b = {0};
    char name[16];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tar_add(&b, name, '0', 0644, "", "0123456789", 0);
    }
    tar_end(&b);
    fails(CSN_TOO_LARGE,
          csn_import_tar(f->sb, "in", bytes_read, &b, TRANSFER(.max_entries = 10), E));
    b.at = 0;
    fails(CSN_TOO_LARGE,
          csn_import_tar(f->sb, "in", bytes_read, &b, TRANSFER(.max_bytes = 100), E));
    free(b.data);
}

static void write_tar_is_all_or_nothing(csn_fx *f)
{
    bytes b = {0}, bad = {0};

    tar_add(&b, "a", '0', 0644, "", "1", 0);
    tar_add(&b, "d/b", '0', 0755, "", "2", 0);
    tar_end(&b);
    ok(csn_write_tar(f->sb, "in", bytes_read, &b, 0, E));
    csn_fx_holds(f, "in/a", "1");
    csn_fx_holds(f, "in/d/b", "2");
    assert_int_equal(csn_test_mode(csn_fx_host(f, "in/d/b")) & 0777, 0755);
    free(b.data);
    tar_add(&bad, "a", '0', 0644, "", "changed", 0);
    tar_add(&bad, "../evil", '0', 0644, "", "x", 0);
    tar_end(&bad);
    csn_conf_reset();
    assert_int_not_equal(csn_write_tar(f->sb, "in", bytes_read, &bad, 0, E), CSN_OK);
    csn_fx_holds(f, "in/a", "1");
    free(bad.data);
}

const csn_conf_test csn_conf_transfer[] = {
    T(export_and_import_round_trip),
    T(import_overwrites_and_keeps_what_else_is_there),
    T(transfer_drops_set_id_and_leaves_out_special_files),
    T(links_to_outside_are_inert),
    T(export_does_not_write_through_links_on_the_host),
    T(transfer_names_what_is_missing),
    T(limits_hold),
    T(progress_is_told_and_can_be_cancelled),
    T(tar_round_trip),
    T(tar_is_understood_by_tar),
    T(hostile_archives_stay_inside),
    T(link_then_file_does_not_escape),
    T(set_id_bits_of_archives_are_dropped),
    T(broken_archives_are_invalid),
    T(archive_limits_hold),
    T(write_tar_is_all_or_nothing),
    T_END,
};
