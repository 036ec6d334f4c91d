/* core_fallback_write.c: writes out of exec, one and many, on every place of core_fallback.h.
 */
#include "core_fallback.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mount.h>

#include "base/hash.h"

/* ---- sources ---------------------------------------------------------------------------- */

typedef struct text {
    const char *data;
    size_t left;
} text;

static int64_t text_read(void *ctx, void *buf, size_t len)
{
    text *t = ctx;
    size_t n = len < t->left ? len : t->left;

    memcpy(buf, t->data, n);
    t->data += n;
    t->left -= n;
    return (int64_t)n;
}

static csn_status write_as(const place *p, const char *path, const void *data, size_t len,
                           csn_write_req req, csn_written *w, csn_error **err)
{
    text t = {.data = data, .left = len};
    csn_written mine = {0};

    req.path = path;
    req.source = (csn_source){.read = text_read, .ctx = &t};
    csn_status st = csn_derive_write(&p->fs, &req, 1, &mine, err);
    if (w)
        *w = mine;
    else
        free(mine.resolved_path);
    return st;
}

static csn_status write_flags(const place *p, const char *path, const char *s, uint32_t flags,
                              csn_error **err)
{
    return write_as(p, path, s, strlen(s), (csn_write_req){.flags = flags}, NULL, err);
}

/* Numbers without end until `left` is used up; then the end, or a failure. */
typedef struct stream {
    uint64_t left;
    uint32_t x;
    bool fails;
    csn_hash hash;
} stream;

static int64_t stream_read(void *ctx, void *buf, size_t len)
{
    stream *s = ctx;
    size_t n = len < s->left ? len : (size_t)s->left;
    unsigned char *p = buf;

    for (size_t i = 0; i < n; i++) {
        s->x = s->x * 1664525u + 1013904223u;
        p[i] = (unsigned char)(s->x >> 24);
    }
    s->left -= n;
    csn_hash_add(&s->hash, buf, n);
    return n == 0 && s->fails ? -1 : (int64_t)n;
}

static csn_status write_stream(const place *p, const char *path, stream *s, csn_written *w,
                               csn_error **err)
{
    csn_write_req req = {.path = path, .source = {.read = stream_read, .ctx = s}};

    csn_hash_init(&s->hash);
    return csn_derive_write(&p->fs, &req, 1, w, err);
}

static int hash_sink(void *ctx, int stream_no, const void *data, size_t len)
{
    (void)stream_no;
    csn_hash_add(ctx, data, len);
    return CSN_SINK_MORE;
}

/* ---- one file --------------------------------------------------------------------------- */

static void write_stores_any_byte_under_any_name(void **state)
{
    place *p = *state;
    char all[512], hash[CSN_HASH_HEX];
    csn_written w;
    size_t len;

    for (int i = 0; i < 512; i++)
        all[i] = (char)(i * 3);
    csn_hash_bytes(all, sizeof(all), hash);
    for (size_t i = 0; i < ODD_NAMES; i++) {
        if (left_out(p, i))
            continue;
        p->execs = 0;
        OK(write_as(p, in(p, odd_names[i]), all, sizeof(all), (csn_write_req){0}, &w, &err));
        assert_int_equal(w.bytes, 512);
        assert_string_equal(w.hash, hash);
        assert_string_equal(w.resolved_path, in(p, odd_names[i]));
        free(w.resolved_path);
        assert_memory_equal(get(p, odd_names[i], &len), all, 512);
        assert_int_equal(len, 512);
        assert_int_equal(p->execs, 1);
    }
    OK(write_as(p, in(p, "empty"), "", 0, (csn_write_req){0}, &w, &err));
    free(w.resolved_path);
    get(p, "empty", &len);
    assert_int_equal(len, 0);
    nothing_left(p);
}

static void write_carries_a_hundred_megabytes(void **state)
{
    place *p = *state;
    /* all of it where it matters; enough to need two steps everywhere */
    uint64_t size = p->missing || p->bash_as_sh ? 3000001 : 100000001;
    stream s = {.left = size, .x = 1};
    char sent[CSN_HASH_HEX], got[CSN_HASH_HEX];
    csn_written w = {0};
    csn_file_stat st;
    csn_hash h;
    const csn_sink sink = {.write = hash_sink, .ctx = &h};

    OK(write_stream(p, in(p, "big"), &s, &w, &err));
    csn_hash_hex(&s.hash, sent);
    assert_int_equal(w.bytes, size);
    assert_string_equal(w.hash, sent);
    free(w.resolved_path);
    csn_hash_init(&h);
    OK(csn_derive_read(&p->fs, in(p, "big"), 0, 0, UINT64_MAX, &sink, &st, &err));
    csn_hash_hex(&h, got);
    assert_string_equal(got, sent);
    assert_int_equal(st.file_size, size);
    nothing_left(p);
    unlink(on_host(p, "big"));
}

static void write_of_a_source_that_fails_changes_nothing(void **state)
{
    place *p = *state;
    const uint64_t sizes[] = {0, 1000, 3000000};
    csn_written w = {0};

    puts_to(p, "f", "old");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        stream s = {.left = sizes[i], .fails = true};
        FAILS(CSN_IO, NULL, write_stream(p, in(p, "f"), &s, &w, &err));
        s = (stream){.left = sizes[i], .fails = true};
        FAILS(CSN_IO, NULL, write_stream(p, in(p, "new/dir/f"), &s, &w, &err));
        assert_string_equal(get(p, "f", NULL), "old");
        assert_false(there(p, "new"));
        nothing_left(p);
    }
    assert_null(w.resolved_path);
}

static void write_keeps_the_mode_or_takes_the_usual_one(void **state)
{
    place *p = *state;
    mode_t um = umask(027);

    OK(write_flags(p, in(p, "usual"), "x", 0, &err));
    umask(um);
    assert_int_equal(mode_of(p, "usual"), 0640);
    puts_to(p, "f", "old");
    const mode_t modes[] = {0755, 0600, 0444, 04755, 02711, 0660};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(on_host(p, "f"), modes[i]), 0);
        if (geteuid() != 0 && !(modes[i] & 0200)) { /* as an open for writing would say */
            FAILS(CSN_DENIED, NULL, write_flags(p, in(p, "f"), "new", 0, &err));
            continue;
        }
        OK(write_flags(p, in(p, "f"), "new", 0, &err));
        assert_int_equal(mode_of(p, "f"), modes[i] & 0777);
    }
    OK(write_as(p, in(p, "f"), "x", 1, (csn_write_req){.mode = 04751}, NULL, &err));
    assert_int_equal(mode_of(p, "f"), 0751);
    OK(write_as(p, in(p, "g"), "x", 1, (csn_write_req){.mode = 0700, .flags = CSN_FILE_CREATE},
                NULL, &err));
    assert_int_equal(mode_of(p, "g"), 0700);
}

static void write_replaces_the_file_and_not_its_other_names(void **state)
{
    place *p = *state;

    puts_to(p, "f", "old");
    assert_int_equal(link(on_host(p, "f"), on_host(p, "other")), 0);
    OK(write_flags(p, in(p, "f"), "new", 0, &err));
    assert_string_equal(get(p, "f", NULL), "new");
    assert_string_equal(get(p, "other", NULL), "old");
}

static void write_goes_through_links_unless_told_not_to(void **state)
{
    place *p = *state;
    csn_written w;

    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    puts_to(p, "d/f", "old");
    assert_int_equal(symlink("d", on_host(p, "ld")), 0);
    assert_int_equal(symlink("ld/f", on_host(p, "l1")), 0);
    assert_int_equal(symlink("l1", on_host(p, "l2")), 0);
    OK(write_as(p, in(p, "l2"), "new", 3, (csn_write_req){0}, &w, &err));
    assert_string_equal(w.resolved_path, in(p, "d/f"));
    free(w.resolved_path);
    assert_string_equal(get(p, "d/f", NULL), "new");
    assert_int_equal(symlink("d/made", on_host(p, "dangling")), 0);
    OK(write_flags(p, in(p, "dangling"), "made", 0, &err));
    assert_string_equal(get(p, "d/made", NULL), "made");
    assert_int_equal(symlink("x/y", on_host(p, "nowhere")), 0);
    FAILS(CSN_NOT_FOUND, NULL, write_flags(p, in(p, "nowhere"), "x", 0, &err));
    assert_int_equal(symlink("loop", on_host(p, "loop")), 0);
    FAILS(CSN_INVALID, NULL, write_flags(p, in(p, "loop"), "x", 0, &err));
    FAILS(CSN_DENIED, "not followed",
          write_flags(p, in(p, "l2"), "x", CSN_FILE_NOFOLLOW, &err));
    FAILS(CSN_DENIED, NULL, write_flags(p, in(p, "ld/f"), "x", CSN_FILE_NOFOLLOW, &err));
    OK(write_flags(p, in(p, "d/f"), "x", CSN_FILE_NOFOLLOW, &err));
    nothing_left(p);
}

static void write_refuses_what_is_no_regular_file(void **state)
{
    place *p = *state;

    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    assert_int_equal(mkfifo(on_host(p, "fifo"), 0644), 0);
    puts_to(p, "f", "old");
    const char *names[] = {"d", "d/", "d/.", "fifo", "f/", "f/x", ".", "d/.."};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        FAILS(CSN_WRONG_TYPE, NULL, write_flags(p, in(p, names[i]), "x", 0, &err));
        FAILS(CSN_WRONG_TYPE, NULL,
              write_flags(p, in(p, names[i]), "x", CSN_FILE_APPEND, &err));
    }
    FAILS(CSN_WRONG_TYPE, NULL, write_flags(p, "/", "x", 0, &err));
    assert_string_equal(get(p, "f", NULL), "old");
    nothing_left(p);
}

static void write_makes_parents_unless_told_not_to(void **state)
{
    place *p = *state;
    char name[256];

    OK(write_flags(p, in(p, "a b/\nc/-d/f"), "x", 0, &err));
    assert_string_equal(get(p, "a b/\nc/-d/f", NULL), "x");
    FAILS(CSN_NOT_FOUND, NULL, write_flags(p, in(p, "n/f"), "x", CSN_FILE_NO_PARENTS, &err));
    assert_false(there(p, "n"));
    memset(name, 'n', 255); /* as long as a name can be: ours beside it must be shorter */
    name[255] = '\0';
    OK(write_flags(p, in(p, name), "x", 0, &err));
    assert_string_equal(get(p, name, NULL), "x");
    char longer[300];
    snprintf(longer, sizeof(longer), "%sn", name);
    FAILS(CSN_INVALID, NULL, write_flags(p, in(p, longer), "x", 0, &err));
    FAILS(CSN_INVALID, NULL, write_flags(p, "", "x", 0, &err));
    OK(write_flags(p, in(p, "synced"), "x", CSN_FILE_SYNC, &err));
    if (geteuid() != 0) {
        assert_int_equal(mkdir(on_host(p, "ro"), 0555), 0);
        FAILS(CSN_DENIED, NULL, write_flags(p, in(p, "ro/f"), "x", 0, &err));
        FAILS(CSN_DENIED, NULL, write_flags(p, in(p, "ro/d/f"), "x", 0, &err));
    }
}

static void create_only_never_overwrites(void **state)
{
    place *p = *state;
    char want[256];

    OK(write_flags(p, in(p, "f"), "first", CSN_FILE_CREATE, &err));
    snprintf(want, sizeof(want), "Cannot write to %s/f because it already exists.", p->at);
    FAILS(CSN_EXISTS, want, write_flags(p, in(p, "f"), "x", CSN_FILE_CREATE, &err));
    assert_string_equal(get(p, "f", NULL), "first");
    assert_int_equal(symlink("f", on_host(p, "link")), 0);
    FAILS(CSN_EXISTS, NULL, write_flags(p, in(p, "link"), "x", CSN_FILE_CREATE, &err));
    assert_int_equal(symlink("made", on_host(p, "dangling")), 0);
    OK(write_flags(p, in(p, "dangling"), "x", CSN_FILE_CREATE, &err));
    assert_string_equal(get(p, "made", NULL), "x");
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    FAILS(CSN_WRONG_TYPE, NULL, write_flags(p, in(p, "d"), "x", CSN_FILE_CREATE, &err));
    nothing_left(p);
}

static void append_adds_and_creates(void **state)
{
    place *p = *state;
    csn_written w;

    OK(write_as(p, in(p, "f"), "one\n", 4, (csn_write_req){.flags = CSN_FILE_APPEND}, &w,
                &err));
    assert_string_equal(w.hash, "");
    assert_int_equal(w.bytes, 4);
    free(w.resolved_path);
    assert_int_equal(mode_of(p, "f"), 0644);
    assert_int_equal(symlink("f", on_host(p, "l")), 0);
    OK(write_flags(p, in(p, "l"), "two\n", CSN_FILE_APPEND, &err));
    assert_string_equal(get(p, "f", NULL), "one\ntwo\n");
    assert_int_equal(link(on_host(p, "f"), on_host(p, "other")), 0);
    OK(write_flags(p, in(p, "f"), "3\n", CSN_FILE_APPEND, &err));
    assert_string_equal(get(p, "f", NULL), "one\ntwo\n3\n");
    assert_string_equal(get(p, "other", NULL), "one\ntwo\n");
    nothing_left(p);
}

static void if_hash_lets_only_the_known_file_be_replaced(void **state)
{
    place *p = *state;
    char hash[CSN_HASH_HEX];

    puts_to(p, "f", "old");
    csn_hash_bytes("old", 3, hash);
    for (size_t i = 0; i < 64; i++) /* either case is hex */
        hash[i] = i % 2 && hash[i] >= 'a' ? (char)(hash[i] - 32) : hash[i];
    csn_write_req req = {.if_hash = hash};
    OK(write_as(p, in(p, "f"), "new", 3, req, NULL, &err));
    FAILS(CSN_CONFLICT, NULL, write_as(p, in(p, "f"), "x", 1, req, NULL, &err));
    assert_string_equal(get(p, "f", NULL), "new");
    FAILS(CSN_CONFLICT, NULL, write_as(p, in(p, "no/f"), "x", 1, req, NULL, &err));
    assert_false(there(p, "no"));
    nothing_left(p);
}

/* ---- many files ------------------------------------------------------------------------- */

static csn_status write_all(const place *p, const char *const *names, size_t count,
                            uint32_t flags, const char *hash, csn_error **err)
{
    csn_write_req reqs[64] = {0};
    csn_written w[64] = {0};
    text t[64];

    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        t[i] = (text){.data = names[i], .left = strlen(names[i])};
        reqs[i] = (csn_write_req){.path = strdup(in(p, names[i])),
                                  .flags = flags,
                                  .if_hash = i + 1 == count ? hash : NULL,
                                  .source = {.read = text_read, .ctx = &t[i]}};
    }
    csn_status st = csn_derive_write(&p->fs, reqs, count, w, err);
    for (size_t i = 0; i < count; i++) {
        if (st == CSN_OK)
            assert_string_equal(w[i].resolved_path, reqs[i].path);
        else
            assert_null(w[i].resolved_path);
        free(w[i].resolved_path);
        free((char *)reqs[i].path);
    }
    return st;
}

static void many_are_written_together(void **state)
{
    place *p = *state;

    puts_to(p, "plain", "old");
    assert_int_equal(chmod(on_host(p, "plain"), 0751), 0);
    OK(write_all(p, odd_names, ODD_NAMES, 0, NULL, &err));
    for (size_t i = 0; i < ODD_NAMES; i++)
        assert_string_equal(get(p, odd_names[i], NULL), odd_names[i]);
    assert_int_equal(mode_of(p, "plain"), 0751);
    nothing_left(p);
}

static void many_are_all_or_nothing(void **state)
{
    place *p = *state;
    char hash[CSN_HASH_HEX];

    puts_to(p, "a", "old a");
    puts_to(p, "b", "old b");
    assert_int_equal(mkdir(on_host(p, "d"), 0755), 0);
    /* one that cannot be staged */
    const char *first[] = {"a", "n/e/w", "b", "d"};
    FAILS(CSN_WRONG_TYPE, "/d'", write_all(p, first, 4, 0, NULL, &err));
    assert_false(there(p, "n"));
    /* one that cannot be moved: its name became a directory for the last */
    const char *second[] = {"a", "new", "b", "x", "x/y"};
    FAILS(CSN_WRONG_TYPE, "/x'", write_all(p, second, 5, 0, NULL, &err));
    assert_false(there(p, "new"));
    assert_false(there(p, "x"));
    /* one that is another file by now */
    csn_hash_bytes("something else", 14, hash);
    const char *third[] = {"new", "a", "b"};
    FAILS(CSN_CONFLICT, "/b'", write_all(p, third, 3, 0, hash, &err));
    assert_false(there(p, "new"));
    /* one that is there already */
    FAILS(CSN_EXISTS, "/a ", write_all(p, third, 3, CSN_FILE_CREATE, NULL, &err));
    assert_false(there(p, "new"));
    assert_string_equal(get(p, "a", NULL), "old a");
    assert_string_equal(get(p, "b", NULL), "old b");
    const char *twins[] = {"new", "other", "d/../new"};
    FAILS(CSN_INVALID, "twice", write_all(p, twins, 3, 0, NULL, &err));
    assert_false(there(p, "new"));
    FAILS(CSN_INVALID, NULL, write_all(p, third, 3, CSN_FILE_APPEND, NULL, &err));
    nothing_left(p);
}

/* ---- at the same time ------------------------------------------------------------------- */

typedef struct racer {
    place *p;
    char path[256];
    int number, wins;
    bool stop;
} racer;

static void race(place *p, const char *name, void *(*fn)(void *), racer *r, size_t count)
{
    pthread_t t[8];

    for (size_t i = 0; i < count; i++) {
        r[i] = (racer){.p = p, .number = (int)i};
        snprintf(r[i].path, sizeof(r[i].path), "%s", in(p, name));
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&t[i], NULL, fn, &r[i]), 0);
    for (size_t i = 0; i < count; i++)
        pthread_join(t[i], NULL);
}

static void *race_create(void *ctx)
{
    racer *r = ctx;

    r->wins = write_flags(r->p, r->path, "x", CSN_FILE_CREATE, NULL) == CSN_OK;
    return NULL;
}

static void *race_append(void *ctx)
{
    racer *r = ctx;
    char line[512];

    memset(line, 'a' + r->number, sizeof(line) - 2);
    line[510] = '\n';
    line[511] = '\0';
    for (int i = 0; i < 4; i++)
        r->wins += write_flags(r->p, r->path, line, CSN_FILE_APPEND, NULL) == CSN_OK;
    return NULL;
}

/* Replaces the file if it is still the one that was read: of all who read the same, one may. */
static void *race_hash(void *ctx)
{
    racer *r = ctx;
    char hash[CSN_HASH_HEX], own[8];

    csn_hash_bytes("start", 5, hash);
    snprintf(own, sizeof(own), "%d", r->number);
    csn_write_req req = {.if_hash = hash};
    r->wins = write_as(r->p, r->path, own, 1, req, NULL, NULL) == CSN_OK;
    return NULL;
}

static void calls_at_the_same_time_do_not_lose_anything(void **state)
{
    place *p = *state;
    racer r[8];
    int wins = 0;
    size_t len;

    race(p, "created", race_create, r, 8);
    for (int i = 0; i < 8; i++)
        wins += r[i].wins;
    assert_int_equal(wins, 1);

    race(p, "appended", race_append, r, 6);
    const char *lines = get(p, "appended", &len);
    assert_int_equal(len, 6 * 4 * 511);
    for (size_t i = 0; i < len; i += 511)
        for (size_t k = 1; k < 510; k++)
            assert_int_equal(lines[i + k], lines[i]);

    puts_to(p, "hashed", "start");
    wins = 0;
    race(p, "hashed", race_hash, r, 6);
    for (int i = 0; i < 6; i++)
        wins += r[i].wins;
    assert_int_equal(wins, 1);
    nothing_left(p);
}

/* Whole files of one letter each, of different lengths. */
static void *race_whole(void *ctx)
{
    racer *r = ctx;
    char letter[50000];

    memset(letter, 'a' + r->number, sizeof(letter));
    for (int i = 0; i < 6; i++)
        r->wins += write_as(r->p, r->path, letter, 10000 + 7000 * (size_t)r->number,
                            (csn_write_req){0}, NULL, NULL) == CSN_OK;
    return NULL;
}

typedef struct seen {
    char first;
    bool mixed;
    size_t len;
} seen;

static int one_letter(void *ctx, int stream_no, const void *data, size_t len)
{
    seen *s = ctx;
    const char *c = data;

    (void)stream_no;
    s->first = s->len == 0 ? c[0] : s->first;
    for (size_t i = 0; i < len; i++)
        s->mixed |= c[i] != s->first;
    s->len += len;
    return CSN_SINK_MORE;
}

static void *reader_of_whole(void *ctx)
{
    racer *r = ctx;

    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
        seen s = {0};
        csn_file_stat st;
        const csn_sink sink = {.write = one_letter, .ctx = &s};
        csn_error *err = NULL;
        csn_status got =
            csn_derive_read(&r->p->fs, r->path, 0, 0, UINT64_MAX, &sink, &st, &err);
        if (got != CSN_OK || s.mixed || s.len != 10000 + 7000 * (size_t)(s.first - 'a') ||
            st.file_size != s.len) {
            r->wins++;
            print_message("read gave %s, %zu bytes of %c%s: %s\n", csn_status_name(got), s.len,
                          s.first, s.mixed ? ", mixed" : "", csn_error_message(err));
        }
        csn_error_free(err);
    }
    return NULL;
}

static void readers_see_whole_files_only(void **state)
{
    place *p = *state;
    racer r[3], reader = {.p = p};
    pthread_t t;
    char *start = calloc(1, 10000);

    assert_non_null(start);
    memset(start, 'a', 10000);
    put(p, "w", start, 10000);
    free(start);
    snprintf(reader.path, sizeof(reader.path), "%s", in(p, "w"));
    assert_int_equal(pthread_create(&t, NULL, reader_of_whole, &reader), 0);
    race(p, "w", race_whole, r, 3);
    __atomic_store_n(&reader.stop, true, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    assert_int_equal(reader.wins, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r[i].wins, 6);
}

/* ---- a place that is too small ---------------------------------------------------------- */

static void a_full_disk_leaves_the_old_file(void **state)
{
    place *p = *state;
    stream s = {.left = 4000000};
    csn_written w = {0};

    assert_int_equal(mkdir(on_host(p, "small"), 0755), 0);
    if (geteuid() != 0 || mount("tmpfs", on_host(p, "small"), "tmpfs", 0, "size=1m") != 0) {
        print_message("# not run: needs the right to mount\n");
        return;
    }
    puts_to(p, "small/f", "old");
    csn_error *err = NULL;
    csn_status st = write_stream(p, in(p, "small/f"), &s, &w, &err);
    char *kept = strdup(get(p, "small/f", NULL));
    bool clean = rmdir(on_host(p, "small/none")) != 0;
    DIR *d = opendir(on_host(p, "small"));
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        clean &= strncmp(e->d_name, ".csn-", 5) != 0;
    if (d)
        closedir(d);
    assert_int_equal(umount(on_host(p, "small")), 0);
    failed(st, CSN_IO, err, "o space left");
    assert_string_equal(kept, "old");
    assert_true(clean);
    free(kept);
}

int main(void)
{
#define BODY(fn)                                                                               \
    {                                                                                          \
#fn, fn                                                                                \
    }
    static const body bodies[] = {
        BODY(write_stores_any_byte_under_any_name),
        BODY(write_carries_a_hundred_megabytes),
        BODY(write_of_a_source_that_fails_changes_nothing),
        BODY(write_keeps_the_mode_or_takes_the_usual_one),
        BODY(write_replaces_the_file_and_not_its_other_names),
        BODY(write_goes_through_links_unless_told_not_to),
        BODY(write_refuses_what_is_no_regular_file),
        BODY(write_makes_parents_unless_told_not_to),
        BODY(create_only_never_overwrites),
        BODY(append_adds_and_creates),
        BODY(if_hash_lets_only_the_known_file_be_replaced),
        BODY(many_are_written_together),
        BODY(many_are_all_or_nothing),
        BODY(calls_at_the_same_time_do_not_lose_anything),
        BODY(readers_see_whole_files_only),
        BODY(a_full_disk_leaves_the_old_file),
    };
    return run_bodies("core_fallback_write", bodies, sizeof(bodies) / sizeof(bodies[0]));
}
