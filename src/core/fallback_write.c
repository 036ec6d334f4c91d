/* fallback_write.c: atomic writes derived from exec, one file or many, all or none.
 *
 * A write has two steps. Staging copies the content through stdin to a temporary file next to
 * the target, with a random name that the library chooses. Committing moves it into place: mv
 * for an overwrite, a hard link for create-only (it fails atomically if the target exists), cat
 * >> for append. In between, the library checks that the source did not fail and that every
 * byte arrived: an early end of stdin must not produce a short file. Content that fits in
 * memory is complete before it is sent, so one script does both steps.
 *
 * Several files are staged one by one and committed by one script, which keeps a hard link to
 * each file that it replaces; if it stops, another script restores them. For if_hash the
 * library hashes the file just before the commit, under a lock of this process; it does not
 * notice a process in the sandbox that writes between the two. If the guest's tools fail, a
 * file named .csn-* may remain. */
#include "core/fallback.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/path.h"
#include "core/fallback_run.h"

#define ONE_GO_MAX (1024u * 1024u) /* content up to this size is read before it is sent */
#define LIST_MAX   (256u * 1024u * 1024u)
#define LOCKS      16

/* ---- scripts ---------------------------------------------------------------------------- */

/* Functions of the stage and commit scripts. t is the staged file, b its final name, f the
 * flags: c create-only, a append, s sync. */
#define PUT_FUNCTIONS                                                                          \
    "hard() {\n"                                                                               \
    "  e=$(link \"$1\" \"$2\" 2>&1) && return\n"                                               \
    "  [ ! -e \"$2\" ] && [ ! -L \"$2\" ] && e=$(ln \"$1\" \"$2\" 2>&1)\n"                     \
    "}\n"                                                                                      \
    "flush() {\n"                                                                              \
    "  case $f in *s*) ;; *) return 0 ;; esac\n"                                               \
    "  e=$(command -v sync) || fail " CSN_SH_UNSUP "\n"                                        \
    "  e=$(sync \"$1\" 2>&1) || sync || fail " CSN_SH_STDERR "\n"                              \
    "}\n"                                                                                      \
    "keep() {\n" /* copy mode (without set-id bits) and owner of $1 to $2 */                   \
    "  if m=$(stat -c '%a %u:%g' \"$1\" 2>&1); then\n"                                         \
    "    o=${m#* } m=${m% *}; case $m in ?[0-7]*[0-7][0-7]) m=${m#?} ;; esac\n"                \
    "    [ -O \"$1\" ] || e=$(chown \"$o\" \"$2\" 2>&1) || :\n"                                \
    "  else m=$(ls -ld \"$1\") || return\n"                                                    \
    "    m=${m#?} r=${m#???}; u=${m%\"$r\"} g=$r; r=${g#???}; g=${g%\"$r\"} o=$r\n"            \
    "    r=${o#???}; o=${o%\"$r\"}\n"                                                          \
    "    m=$(printf 'u=%s,g=%s,o=%s' \"$u\" \"$g\" \"$o\" | tr -d -- -ST | tr st xx)\n"        \
    "  fi\n"                                                                                   \
    "  chmod \"$m\" \"$2\"\n"                                                                  \
    "}\n"                                                                                      \
    "names() {\n" /* set names to the link count of ./$b */                                    \
    "  e=$(ls -ld \"./$b\") || fail " CSN_SH_STDERR "\n"                                       \
    "  set -f; set -- $e; set +f; names=$2\n"                                                  \
    "}\n"                                                                                      \
    "there() { [ -e \"./$b\" ] || [ -L \"./$b\" ]; }\n"                                        \
    "fits() {\n"                                                                               \
    "  [ ! -d \"./$b\" ] || fail " CSN_SH_ISDIR "\n"                                           \
    "  [ ! -e \"./$b\" ] || [ -f \"./$b\" ] || fail " CSN_SH_NOTREG "\n"                       \
    "}\n"                                                                                      \
    "put() {\n"                                                                                \
    "  case $f in\n"                                                                           \
    "  *c*)\n"                                                                                 \
    "    if ! hard \"$t\" \"./$b\"; then\n" /* it exists, or there are no hard links here */   \
    "      ! there || fail " CSN_SH_EXIST "\n"                                                 \
    "      (set -C; cat \"$t\" >\"./$b\") && keep \"$t\" \"./$b\" || fail " CSN_SH_STDERR "\n" \
    "    fi; rm -f \"$t\" ;;\n"                                                                \
    "  *a*)\n" /* create it empty: a new file has one link and needs no copy */                \
    "    [ -e \"./$b\" ] || ! e=$( (set -C; : >\"./$b\") 2>&1) || keep \"$t\" \"./$b\"\n"      \
    "    names\n"                                                                              \
    "    if [ \"$names\" -gt 1 ]; then\n" /* other hard links keep the old content */          \
    "      (umask 077; cat \"./$b\" \"$t\" >\"$t-a\") && keep \"./$b\" \"$t-a\" &&\n"          \
    "        mv -f \"$t-a\" \"./$b\" || { rm -f \"$t-a\"; fail " CSN_SH_STDERR "; }\n"         \
    "    else cat \"$t\" >>\"./$b\" || fail " CSN_SH_STDERR "; fi\n"                           \
    "    rm -f \"$t\"; flush \"./$b\" ;;\n"                                                    \
    "  *)\n"                                                                                   \
    "    if ! e=$(mv -fT \"$t\" \"./$b\" 2>&1); then\n" /* mv has no -T, or failed */          \
    "      fits; mv -f \"$t\" \"./$b\" || fail " CSN_SH_STDERR "\n"                            \
    "    fi ;;\n"                                                                              \
    "  esac\n"                                                                                 \
    "  t=; flush .\n"                                                                          \
    "}\n"

/* $1 path, $2 token, $3 flags as above and n refuse symlinks, p create parents, o commit at
 * once, $4 mode or "", $5 length or "". Prints
 *
 *     "<directories made> <bytes> <directory>\n/<name>." */
static const char stage_script[] = PUT_FUNCTIONS
    "f=$3 um=$(umask)\n"
    "case $f in *n*) nolinks \"$1\" ;; esac\n"
    "d=${1%/*}; [ -n \"$d\" ] || d=/\n"
    "if [ ! -d \"$d\" ]; then case $f in *p*) up \"$d\" ;; *) gone \"$d\" ;; esac; fi\n"
    "into \"$1\"\n"
    "land; fits\n"
    "case $f in *c*) ! there || fail " CSN_SH_EXIST " ;; esac\n"
    "[ ! -e \"./$b\" ] || [ -w \"./$b\" ] || fail " CSN_SH_ACCES "\n"
    /* busybox's test -w is always true for uid 0, even without CAP_DAC_OVERRIDE */
    "if [ -f \"./$b\" ]; then e=$({ true >>\"./$b\"; } 2>&1) ||\n"
    "  case $e in *busy*) ;; *) fail " CSN_SH_ACCES " ;; esac; fi\n"
    "trap 'fail " CSN_SH_INTR "' HUP INT TERM\n"
    "t=./.csn-$2\n"
    "umask 077\n"
    "(set -C; cat >\"$t\") || fail " CSN_SH_STDERR "\n"
    "n=$(wc -c <\"$t\") || fail " CSN_SH_STDERR "\n"
    "n=$((n))\n"
    "[ -z \"$5\" ] || [ \"$n\" = \"$5\" ] || fail " CSN_SH_SHORT "\n"
    "if [ -n \"$4\" ]; then chmod \"$4\" \"$t\"\n"
    "elif [ -e \"./$b\" ]; then keep \"./$b\" \"$t\"\n"
    "else chmod \"$(printf %o $((0644 & ~0$um)))\" \"$t\"; fi || fail " CSN_SH_STDERR "\n"
    "flush \"$t\"\n"
    "case $f in *o*) umask \"$um\"; put ;; esac\n"
    "printf '%s %s ' \"$made\" \"$n\" && pwd -P && printf '/%s.' \"$b\" || fail " CSN_SH_STDERR
    "\n"
    "exit 0\n";

/* stdin: lines "flags token made path", with the path encoded for printf %b; flag b: keep a
 * replaced file as token-b. Prints a dot for each file in place. */
static const char commit_script[] = PUT_FUNCTIONS
    "while read -r f k m e; do\n"
    "  p=$(printf '%b.' \"$e\"); p=${p%.}\n"
    "  into \"$p\"\n"
    "  t=./.csn-$k\n"
    "  fits\n"
    "  case $f in *b*) if [ -e \"./$b\" ]; then\n"
    "    hard \"./$b\" \"$t-b\" || cp -p \"./$b\" \"$t-b\" || fail " CSN_SH_STDERR "\n"
    "  fi ;; esac\n"
    "  put\n"
    "  printf .\n"
    "done\n"
    "exit 0\n";

/* stdin: the same lines in reverse order; flag d: the file was in place, else only staged.
 * Continues after errors. */
static const char undo_script[] =
    "while read -r f k m e; do\n"
    "  p=$(printf '%b.' \"$e\"); p=${p%.}\n"
    "  d=${p%/*} b=${p##*/}; cd -P \"${d:-/}\" || continue\n"
    "  t=./.csn-$k\n"
    "  case $f in\n"
    "  *d*) if [ -e \"$t-b\" ]; then mv -f \"$t-b\" \"./$b\"; else rm -f \"./$b\"; fi ;;\n"
    "  *) rm -f \"$t\" \"$t-b\" ;;\n"
    "  esac\n"
    "  cd /\n"
    "  while [ \"$m\" -gt 0 ] && e=$(rmdir \"$d\" 2>&1); do d=${d%/*} m=$((m - 1)); done\n"
    "done\n"
    "exit 0\n";

/* stdin: the same lines. Removes the kept copies of replaced files. */
static const char clean_script[] = "while read -r f k m e; do\n"
                                   "  p=$(printf '%b.' \"$e\"); p=${p%.}\n"
                                   "  d=${p%/*}; rm -f \"$d/.csn-$k-b\"\n"
                                   "done\n"
                                   "exit 0\n";

/* ---- content ---------------------------------------------------------------------------- */

typedef struct feed {
    const csn_source *source;
    csn_buf head; /* read before the script was started */
    size_t head_pos;
    csn_hash hash;
    uint64_t bytes;
    bool ended, failed;
} feed;

static void feed_release(feed *f)
{
    csn_buf_release(&f->head);
}

static int64_t feed_pull(feed *f, void *buf, size_t len)
{
    int64_t n = f->ended || f->failed ? 0 : f->source->read(f->source->ctx, buf, len);

    f->ended = f->ended || n == 0;
    f->failed = f->failed || n < 0 || (uint64_t)n > len;
    if (f->failed)
        return -1;
    csn_hash_add(&f->hash, buf, (size_t)n);
    f->bytes += (uint64_t)n;
    return n;
}

/* Reads up to ONE_GO_MAX bytes ahead, which may be the whole content. 0 or errno. */
static int feed_begin(feed *f, const csn_source *source)
{
    char chunk[16384];
    int e = 0;

    *f = (feed){.source = source};
    csn_hash_init(&f->hash);
    csn_buf_init(&f->head, ONE_GO_MAX + sizeof(chunk));
    while (e == 0 && !f->ended && f->head.len <= ONE_GO_MAX) {
        int64_t n = feed_pull(f, chunk, sizeof(chunk));
        if (n < 0)
            return EIO;
        if (n > 0)
            e = csn_buf_append(&f->head, chunk, (size_t)n);
    }
    return e;
}

static int64_t feed_read(void *ctx, void *buf, size_t len)
{
    feed *f = ctx;
    size_t n = f->head.len - f->head_pos;

    if (n == 0)
        return feed_pull(f, buf, len);
    if (n > len)
        n = len;
    memcpy(buf, f->head.data + f->head_pos, n);
    f->head_pos += n;
    return (int64_t)n;
}

/* ---- staging ---------------------------------------------------------------------------- */

typedef struct item {
    const csn_write_req *req;
    char *path;
    char token[17];
    char how[8];
    csn_written w; /* resolved_path: symlinks resolved, set by staging */
    unsigned made; /* number of directories created */
    bool staged, placed;
} item;

/* Parses the output of the stage script: "<made> <bytes> <directory>\n/<name>." */
static csn_status staged_answer(item *it, const csn_buf *text, uint64_t sent, csn_error **err)
{
    uint64_t arrived = 0;
    int at = 0;

    /* data may be NULL in an empty buffer. */
    const char *all = text->len > 0 ? text->data : "", *end = all + text->len;
    const char *name = memrchr(all, '/', text->len);
    if (!name || end[-1] != '.' || name < all + 6 || name[-1] != '\n' ||
        sscanf(all, "%u %" SCNu64 " %n", &it->made, &arrived, &at) != 2 || at == 0 ||
        all[at] != '/' || name <= all + at || strlen(all) != text->len)
        return csn_fail(err, CSN_IO, "write: the sandbox's tools gave no sensible answer");
    const char *dir = all + at;
    int dir_len = (int)(name - 1 - dir);
    if (dir_len == 1) /* the root */
        dir_len = 0;
    if (asprintf(&it->w.resolved_path, "%.*s/%.*s", dir_len, dir, (int)(end - name - 2),
                 name + 1) < 0) {
        it->w.resolved_path = NULL;
        return csn_fail(err, CSN_NOMEM, "out of memory");
    }
    it->staged = true;
    if (arrived != sent)
        return csn_fail(err, CSN_IO, "write: %" PRIu64 " of %" PRIu64 " bytes arrived", arrived,
                        sent);
    return CSN_OK;
}

static csn_status source_failed(const char *path, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);

    return csn_fail(err, CSN_IO, "write %s: its content could not be read", shown ? shown : "");
}

/* Runs the stage script with a feed that feed_begin has started. */
static csn_status stage_run(const csn_fs *fs, item *it, feed *f, bool alone, csn_error **err)
{
    const csn_write_req *req = it->req;
    const csn_source input = {.read = feed_read, .ctx = f};
    char mode[16] = "", length[24] = "", how[12];
    bool whole = f->ended;

    it->placed = alone && whole && !req->if_hash;
    snprintf(how, sizeof(how), "%s%s%s", it->how, it->placed ? "o" : "",
             req->flags & CSN_FILE_NOFOLLOW ? "n" : "");
    if (req->mode != 0)
        snprintf(mode, sizeof(mode), "%o", req->mode & 0777u);
    if (whole)
        snprintf(length, sizeof(length), "%" PRIu64, f->bytes);
    csn_autojob job = {
        .fs = fs,
        .script = stage_script,
        .paths = 1,
        .args = {it->path, it->token, how, mode, length},
        .input = &input,
    };
    job.exit_code = -1;
    csn_status st = csn_derive_do(&job, "write", req->path, err);
    if (st < 0 && job.exit_code < 0 && (it->w.resolved_path = strdup(it->path))) {
        it->staged = true; /* the script may have stopped anywhere: undo removes the remains */
        it->placed = false;
    }
    if (st < 0)
        return st;
    st = staged_answer(it, &job.text, f->bytes, err);
    if (st == CSN_OK && (f->failed || !f->ended))
        st = source_failed(req->path, err);
    return st;
}

static csn_status stage(const csn_fs *fs, item *it, bool alone, csn_error **err)
{
    const csn_write_req *req = it->req;
    CSN_CLEANUP(feed_release) feed f = {0};
    uint64_t token;
    bool dir;

    csn_status st = csn_derive_path("write", req->path, &it->path, &dir, err);
    if (st < 0)
        return st;
    if (getrandom(&token, sizeof(token), 0) != sizeof(token))
        return csn_fail_errno(err, errno, "getrandom");
    snprintf(it->token, sizeof(it->token), "%016" PRIx64, token);
    snprintf(it->how, sizeof(it->how), "-%s%s%s%s", req->flags & CSN_FILE_CREATE ? "c" : "",
             req->flags & CSN_FILE_APPEND ? "a" : "", req->flags & CSN_FILE_SYNC ? "s" : "",
             req->flags & CSN_FILE_NO_PARENTS ? "" : "p");
    int e = feed_begin(&f, &req->source);
    if (e == EIO)
        st = source_failed(req->path, err);
    else if (e != 0)
        st = csn_fail_errno(err, e, "write");
    else if (dir) /* the path can only be a directory */
        st = csn_derive_fail(EISDIR, "write", req->path, err);
    else
        st = stage_run(fs, it, &f, alone, err);
    if (st < 0)
        return st;
    it->w.bytes = f.bytes;
    if (!(req->flags & CSN_FILE_APPEND))
        csn_hash_hex(&f.hash, it->w.hash);
    return CSN_OK;
}

/* ---- committing ------------------------------------------------------------------------- */

/* Writes one line of a list for the scripts. 0 or errno. */
static int put_line(csn_buf *b, const char *how, const item *it)
{
    int e = csn_buf_printf(b, "%s %s %u ", how, it->token, it->made);

    for (const unsigned char *p = (const unsigned char *)it->w.resolved_path; *p && e == 0;
         p++) {
        if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
            *p == '/' || *p == '.' || *p == '_' || *p == '-')
            e = csn_buf_putc(b, (char)*p);
        else
            e = csn_buf_printf(b, "\\0%03o", *p);
    }
    return e == 0 ? csn_buf_putc(b, '\n') : e;
}

static csn_status run_list(const csn_fs *fs, csn_derive_job *job, const char *script,
                           const csn_buf *lines, const char *path, csn_error **err)
{
    csn_memory_source text = {.data = lines->data, .left = lines->len};
    const csn_source input = {.read = csn_memory_read, .ctx = &text};

    *job = (csn_derive_job){.fs = fs, .script = script, .input = &input};
    csn_status st = csn_derive_do(job, "write", path, err);
    job->input = NULL;
    return st;
}

/* Removes staged files and restores replaced ones, the last one first. Ignores errors: the
 * caller reports the original failure. */
static void undo(const csn_fs *fs, const item *items, size_t count)
{
    const csn_fs uncancelled = {.ops = fs->ops,
                                .state = fs->state}; /* the undo itself must not be cancelled */
    csn_autobuf lines;
    csn_autojob job = {0};

    csn_buf_init(&lines, LIST_MAX);
    for (size_t i = count; i > 0; i--)
        if (items[i - 1].staged &&
            put_line(&lines, items[i - 1].placed ? "d" : "u", &items[i - 1]) != 0)
            return;
    if (lines.len > 0)
        (void)run_list(&uncancelled, &job, undo_script, &lines, "/", NULL);
}

static csn_status commit(const csn_fs *fs, item *items, size_t count, csn_error **err)
{
    csn_autobuf lines;
    csn_autojob job = {0}, clean = {0};
    char how[10];
    int e = 0;

    csn_buf_init(&lines, LIST_MAX);
    for (size_t i = 0; i < count && e == 0; i++) {
        snprintf(how, sizeof(how), "%s%s", items[i].how, count > 1 ? "b" : "");
        e = put_line(&lines, how, &items[i]);
    }
    if (e != 0)
        return csn_fail_errno(err, e, "write");
    csn_status st = run_list(fs, &job, commit_script, &lines, items[0].req->path, err);
    size_t placed = job.text.len < count ? job.text.len : count;
    for (size_t i = 0; i < placed; i++)
        items[i].placed = true;
    if (st < 0 && placed < count && count > 1 && job.exit_code != 0) {
        /* The script stopped at one file: the error must name it. */
        if (err) {
            csn_error_free(*err);
            *err = NULL;
        }
        return csn_derive_verdict(&job, "write", items[placed].req->path, err);
    }
    if (st == CSN_OK && placed < count)
        return csn_fail(err, CSN_IO, "write: %zu of %zu files could be moved", placed, count);
    if (st == CSN_OK && count > 1)
        (void)run_list(fs, &clean, clean_script, &lines, "/", NULL);
    return st;
}

/* ---- if_hash ---------------------------------------------------------------------------- */

static pthread_mutex_t locks[LOCKS] = {
#define L4                                                                                     \
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,           \
        PTHREAD_MUTEX_INITIALIZER
    L4, L4, L4, L4};

static int hash_write(void *ctx, int stream, const void *data, size_t len)
{
    (void)stream;
    if (data)
        csn_hash_add(ctx, data, len);
    return CSN_SINK_MORE;
}

static csn_status verify(const csn_fs *fs, const item *it, csn_error **err)
{
    char hex[CSN_HASH_HEX];
    csn_hash h;
    const csn_sink sink = {.write = hash_write, .ctx = &h};

    if (!it->req->if_hash)
        return CSN_OK;
    csn_hash_init(&h);
    csn_error *why = NULL;
    csn_status st =
        csn_derive_read(fs, it->w.resolved_path, 0, 0, UINT64_MAX, &sink, NULL, &why);
    csn_hash_hex(&h, hex);
    if (st < 0 && st != CSN_NOT_FOUND) {
        if (err)
            *err = why;
        else
            csn_error_free(why);
        return st;
    }
    csn_error_free(why);
    if (st == CSN_OK && strcasecmp(hex, it->req->if_hash) == 0)
        return CSN_OK;
    csn_autofree char *shown = csn_path_printable(it->req->path);
    return csn_fail(err, CSN_CONFLICT, "File %s has changed since it was read",
                    shown ? shown : "");
}

static csn_status verify_and_commit(const csn_fs *fs, item *items, size_t count,
                                    csn_error **err)
{
    pthread_mutex_t *lock = &locks[((uintptr_t)fs->state >> 6) % LOCKS];
    csn_status st = CSN_OK;

    pthread_mutex_lock(lock);
    for (size_t i = 0; i < count && st == CSN_OK; i++)
        st = verify(fs, &items[i], err);
    if (st == CSN_OK)
        st = commit(fs, items, count, err);
    pthread_mutex_unlock(lock);
    return st;
}

/* ---- the operation ---------------------------------------------------------------------- */

static void items_free(item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i].path);
        free(items[i].w.resolved_path);
    }
    free(items);
}

static int by_place(const void *a, const void *b)
{
    return strcmp((*(const item *const *)a)->w.resolved_path,
                  (*(const item *const *)b)->w.resolved_path);
}

/* Refuses a batch in which two requests write the same file. */
static csn_status refuse_duplicates(const item *items, size_t count, csn_error **err)
{
    csn_autofree const item **order = calloc(count, sizeof(*order));

    if (!order)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        order[i] = &items[i];
    qsort(order, count, sizeof(*order), by_place);
    for (size_t i = 1; i < count; i++) {
        if (by_place(&order[i - 1], &order[i]) != 0)
            continue;
        csn_autofree char *shown = csn_path_printable(order[i]->req->path);
        return csn_fail(err, CSN_INVALID, "%s is written twice in one call",
                        shown ? shown : "");
    }
    return CSN_OK;
}

csn_status csn_derive_write(const csn_fs *fs, const csn_write_req *reqs, size_t count,
                            csn_written *rets, csn_error **err)
{
    csn_status st = CSN_OK;

    if (count == 0)
        return CSN_OK;
    for (size_t i = 0; i < count && count > 1; i++)
        if (reqs[i].flags & CSN_FILE_APPEND)
            return csn_fail(err, CSN_INVALID, "append is for one file at a time");
    item *items = calloc(count, sizeof(*items));
    if (!items)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    for (size_t i = 0; i < count && st == CSN_OK; i++) {
        items[i].req = &reqs[i];
        st = stage(fs, &items[i], count == 1, err);
    }
    if (st == CSN_OK && count > 1)
        st = refuse_duplicates(items, count, err);
    if (st == CSN_OK && !items[0].placed)
        st = verify_and_commit(fs, items, count, err);
    if (st < 0)
        undo(fs, items, count);
    for (size_t i = 0; i < count && st == CSN_OK && rets; i++) {
        rets[i] = items[i].w;
        items[i].w.resolved_path = NULL;
    }
    items_free(items, count);
    return st;
}
