/* fallback_list.c: list and walk derived from exec, with the parser of their output.
 *
 * The script uses the best tool of the guest: GNU find's -printf; else stat (GNU, busybox),
 * which find or the shell calls with batches of files; else ls, one file at a time and without
 * times. All print the same records:
 *
 *     "//" tag fields "/" path "\n"                       tag g (find), s (stat), l (ls)
 *     "//" TAG fields "/" path "//" target "\n"           G, S, L: a symlink
 *     "//E" exit-code "\n"                                the end; else the list is truncated
 *
 * Every path starts with "./" and contains no "//", so a name with newlines cannot look like
 * the next record; the size of a symlink is the length of its target, except in /proc. An
 * attacker chooses names
 * and targets, and with replaced tools the whole output: text that does not parse ends the list
 * with CSN_IO, a record has a maximum size, and only relative paths without `..` are
 * reported. */
#include "core/fallback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/path.h"
#include "core/fallback_run.h"

#define RECORD_MAX (256u * 1024u)
#define PROC_SIZE  64u /* that /proc gives its links to open files, whatever their target */

/* $1 directory, $2 "n": refuse symlinks in its path, $3 "w": walk. busybox's find runs -exec +
 * only outside of parentheses, so conditions are repeated. */
static const char list_script[] =
    "[ -z \"$2\" ] || nolinks \"$1\"\n"
    "[ -e \"$1\" ] || gone \"$1\"\n"
    "finish() { printf '//E%d\\n' \"$1\"; exit 0; }\n"
    "if [ ! -d \"$1\" ]; then\n"
    "  [ -n \"$3\" ] || fail " CSN_SH_NOTDIR "\n"
    "  e=$(fields -L \"$1\") || fail " CSN_SH_STDERR "\n"
    "  printf '//%s\\n' \"$e\"\n"
    "  finish 0\n"
    "fi\n"
    "cd -P \"$1\" || gone \"$1\"\n"
    "[ -r . ] || fail " CSN_SH_ACCES "\n"
    "W=$3\n"
    "s='//s%f %s %Y %h %d %i %y/%n'; S='//S%f %s %Y %h %d %i %y/%n//%N'\n"
    "g='%y %m %s %T@ %n %D %i/%p'\n"
    "case $(find . -prune -printf x 2>&1) in x)\n"
    "  [ -n \"$W\" ] && depth= || depth='-maxdepth 1'\n"
    "  find . -mindepth 1 $depth -type l -printf \"//G$g//%l\\n\" -o -printf \"//g$g\\n\"\n"
    "  finish $? ;;\n"
    "esac\n"
    "e=$(stat -c \"$s\" . 2>&1) && case $e in //s?*/.) tool=stat ;; *) tool=ls ;; esac || "
    "tool=ls\n"
    /* Prints the records of its arguments with ls. A string, because find runs it with sh
     * -c. */
    "lister='for f; do\n"
    "  e=$(ls -ldn \"$f\" && printf .) || continue; e=${e%??}\n"
    "  case $e in l*) r=${e#*\" $f -> \"} ;; esac\n"
    "  k=$e; set -f; set -- $e; set +f\n"
    "  case $k in l*) printf \"//L%s %s %s/%s//%s\\n\" \"$1\" \"$2\" \"$5\" \"$f\" \"$r\" ;;\n"
    "  *) printf \"//l%s %s %s/%s\\n\" \"$1\" \"$2\" \"$5\" \"$f\" ;; esac\n"
    "done'\n"
    "case $(find . -prune -exec printf %s {} + 2>&1) in .)\n"
    "  [ -n \"$W\" ] && p= || p=-prune\n"
    "  if [ $tool = stat ]; then\n"
    /* After a command that fails, busybox's find does not run the other -exec. */
    "    t='stat -c \"$0\" \"$@\" || :'\n"
    "    find . ! -name . $p -type l -exec sh -c \"$t\" \"$S\" {} + -o "
    "! -name . -exec sh -c \"$t\" \"$s\" {} +\n"
    "  else find . ! -name . $p -exec sh -c \"$lister\" sh {} +; fi\n"
    "  finish $? ;;\n"
    "esac\n"
    /* Without find the shell walks, in batches that fit on a command line. */
    "show() {\n"
    "  [ $# -gt 0 ] || return 0\n"
    "  if [ $tool = ls ]; then sh -c \"$lister\" sh \"$@\"; return; fi\n"
    "  for f; do shift; [ -L \"$f\" ] || set -- \"$@\" \"$f\"; done\n"
    "  [ $# = 0 ] || stat -c \"$s\" \"$@\"\n"
    "}\n"
    "links() {\n"
    "  [ $tool = stat ] || return 0\n"
    "  for f; do shift; [ ! -L \"$f\" ] || set -- \"$@\" \"$f\"; done\n"
    "  [ $# = 0 ] || stat -c \"$S\" \"$@\"\n"
    "}\n"
    "each() {\n"
    "  set -- \"$1\"\n"
    "  for f in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do\n"
    "    if [ -e \"$f\" ] || [ -L \"$f\" ]; then set -- \"$@\" \"$f\"; fi\n"
    "    if [ $# -gt 200 ]; then k=$1; shift; show \"$@\"; links \"$@\"; set -- \"$k\"; fi\n"
    "  done\n"
    "  k=$1; shift; show \"$@\"; links \"$@\"; set -- \"$k\"\n"
    "  [ -n \"$W\" ] || return 0\n"
    "  for f in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do\n"
    "    if [ -d \"$f\" ] && [ ! -L \"$f\" ]; then each \"$f\"; fi\n"
    "  done\n"
    "}\n"
    "each .\n"
    "finish 0\n";

/* ---- fields ----------------------------------------------------------------------------- */

static uint32_t type_of_letter(char c)
{
    switch (c) {
    case 'f':
    case '-':
        return S_IFREG;
    case 'd':
        return S_IFDIR;
    case 'l':
        return S_IFLNK;
    case 'p':
        return S_IFIFO;
    case 's':
        return S_IFSOCK;
    case 'b':
        return S_IFBLK;
    case 'c':
        return S_IFCHR;
    default:
        return 0;
    }
}

/* Parses "drwxr-xr-x", with or without a suffix such as + or a dot. */
static uint32_t mode_of_ls(const char *s)
{
    static const uint32_t special[] = {S_ISUID, S_ISGID, S_ISVTX};
    uint32_t mode = type_of_letter(s[0]);

    if (mode == 0 || strlen(s) < 10)
        return 0;
    for (unsigned i = 0; i < 9; i++) {
        char c = s[1 + i];
        if (c != '-' && c != 'S' && c != 'T')
            mode |= 0400u >> i;
        if (i % 3 == 2 && (c == 's' || c == 'S' || c == 't' || c == 'T'))
            mode |= special[i / 3];
    }
    return mode;
}

/* The digits after the first dot, as nanoseconds: "12:00:01.25 +0000" gives 250000000. */
static int64_t fraction(const char *s)
{
    int64_t ns = 0, unit = 100000000;

    s = strchr(s, '.');
    for (s = s ? s + 1 : ""; *s >= '0' && *s <= '9' && unit > 0; s++, unit /= 10)
        ns += (*s - '0') * unit;
    return ns;
}

bool csn_derive_fields(const char *s, size_t len, csn_file_stat *ret)
{
    csn_file_stat st = {0};
    char text[256], kind, letters[16], when[48] = "";
    int64_t seconds = 0;
    bool ok = false;

    if (len < 2 || len >= sizeof(text))
        return false;
    memcpy(text, s + 1, len - 1);
    text[len - 1] = '\0';
    switch (s[0]) {
    case 's':
    case 'S':
        ok = sscanf(text,
                    "%" SCNx32 " %" SCNu64 " %" SCNd64 " %" SCNu32 " %" SCNu64 " %" SCNu64
                    " %47[^/]",
                    &st.mode, &st.file_size, &seconds, &st.nlink, &st.dev, &st.ino, when) == 7;
        break;
    case 'g':
    case 'G':
        ok = sscanf(text, "%c %" SCNo32 " %" SCNu64 " %47s %" SCNu32 " %" SCNu64 " %" SCNu64,
                    &kind, &st.mode, &st.file_size, when, &st.nlink, &st.dev, &st.ino) == 7 &&
             sscanf(when, "%" SCNd64, &seconds) == 1;
        if (ok)
            st.mode = (st.mode & 07777u) | type_of_letter(kind);
        break;
    case 'l':
    case 'L': /* devices have no size */
        ok = sscanf(text, "%15s %" SCNu32 " %" SCNu64, letters, &st.nlink, &st.file_size) >= 2;
        st.mode = ok ? mode_of_ls(letters) : 0;
        break;
    default:
        break;
    }
    st.modified_ns = csn_epoch_ns(seconds, fraction(when));
    if (!ok || (st.mode & S_IFMT) == 0)
        return false;
    *ret = st;
    return true;
}

/* ---- records ---------------------------------------------------------------------------- */

typedef struct lister {
    csn_entry_fn fn;
    void *ctx;
    csn_buf buf; /* starts with the record being received */
    size_t seen; /* bytes of buf already searched for the end of the record */
    bool stopped, bad, ended;
    bool last; /* no more bytes will come */
    int exit_code;
} lister;

/* One relative path without empty, `.` or `..` components. */
static bool path_is_plain(const char *p)
{
    for (;;) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
            return false;
        if (!p[n])
            return true;
        p += n + 1;
    }
}

/* Skips the name in stat's %N, "path -> target" (busybox quotes both). Returns the start of the
 * target, or NULL. *ret_quote: bytes of quoting after the target. */
static char *skip_name(char *s, size_t len, const char *path, size_t *ret_quote)
{
    size_t n = strlen(path), quote = len > 0 && s[0] == '\'' && n > 0 && path[0] != '\'';

    if (len < n + 2 * quote + 4 + quote || memcmp(s + quote, path, n) != 0 ||
        memcmp(s + quote + n, quote ? "' -> '" : " -> ", quote ? 6 : 4) != 0)
        return NULL;
    *ret_quote = quote;
    return s + n + 4 + 3 * quote;
}

/* True if stat could not read the target of a link in /proc: it prints nothing (busybox) or the
 * name alone (GNU). */
static bool is_unreadable(const char *line, const char *nl, const char *path)
{
    size_t len = (size_t)(nl - line), n = strlen(path), quote = len == n + 2;

    return len == 0 || (len == n + 2 * quote && memcmp(line + quote, path, n) == 0);
}

/* A size of PROC_SIZE is the length of the target only if the record ends there. 1: it does;
 * 0: it does not; -1: not known yet. */
static int ends_at(const lister *l, const char *at, const char *end)
{
    if (end - at < 3)
        return l->last ? 0 : -1;
    return memcmp(at, "\n//", 3) == 0;
}

/* Finds the target of a symlink's record. Returns the offset after the record's newline, 0 if
 * the record is incomplete, -1 if it is malformed. */
static long link_end(const lister *l, char *path_end, uint64_t size, bool with_name,
                     const char *path, char **ret_target, size_t *ret_len)
{
    char *end = l->buf.data + l->buf.len, *target = path_end + 2;
    size_t quote = 0;
    char *line_end = memchr(target, '\n', (size_t)(end - target));
    bool in_proc = size == 0 || size == PROC_SIZE;

    if (with_name && in_proc && line_end && is_unreadable(target, line_end, path)) {
        *ret_target = line_end;
        *ret_len = 0;
        return line_end + 1 - l->buf.data;
    }
    if (with_name) {
        if ((size_t)(end - target) < strlen(path) + 7)
            return 0;
        target = skip_name(target, (size_t)(end - target), path, &quote);
        if (!target)
            return -1;
    }
    if (size > RECORD_MAX)
        return -1;
    if (size == PROC_SIZE) {
        int whole = (size_t)(end - target) < size + quote
                        ? (l->last ? 0 : -1)
                        : ends_at(l, target + size + quote, end);
        if (whole < 0)
            return 0;
        size = whole ? size : 0;
    }
    if (size == 0) { /* in /proc; the target is one line */
        char *nl = memchr(target, '\n', (size_t)(end - target));
        if (!nl)
            return 0;
        size = (size_t)(nl - target) >= quote ? (size_t)(nl - target) - quote : 0;
    }
    if ((uint64_t)(end - target) < size + quote + 1)
        return 0;
    if (target[size + quote] != '\n')
        return -1;
    *ret_target = target;
    *ret_len = size;
    return target + size + quote + 1 - l->buf.data;
}

/* Passes one entry to the callback. Returns false to stop. */
static bool entry_out(lister *l, char *path, const csn_file_stat *st, const char *target)
{
    bool start = path[0] == '\0'; /* a walk that started at a file */

    if (!start && (strncmp(path, "./", 2) != 0 || !path_is_plain(path + 2))) {
        l->bad = true;
        return false;
    }
    l->stopped = l->fn(l->ctx, start ? path : path + 2, st, target) != 0;
    return !l->stopped;
}

/* Parses the record at the start of buf. Returns its length, or 0 if it is incomplete or
 * parsing has ended (then one of the flags is set). */
static size_t take_record(lister *l)
{
    char *s = l->buf.data, *target = NULL;
    size_t len = l->buf.len, target_len = 0;
    csn_file_stat st;
    long used;

    if (len < 4)
        return 0;
    char tag = s[2];
    char *slash = memchr(s + 3, '/', len - 3);
    char *nl = memchr(s + 3, '\n', len - 3);
    l->bad = s[0] != '/' || s[1] != '/' || (slash && nl && nl < slash && tag != 'E');
    if (tag == 'E' && nl && !l->bad) {
        l->ended = sscanf(s + 3, "%d", &l->exit_code) == 1;
        l->bad = !l->ended;
    }
    if (l->bad || tag == 'E' || !slash)
        return 0;
    if (!csn_derive_fields(s + 2, (size_t)(slash - s) - 2, &st)) {
        l->bad = true;
        return 0;
    }
    bool is_link = tag == 'G' || tag == 'S' || tag == 'L';
    char *from = slash + 1;
    /* Continue where the last search ended; two bytes back, since the marker may be split. */
    char *at = l->seen > 2 && s + l->seen - 2 > from ? s + l->seen - 2 : from;
    char *end = memmem(at, len - (size_t)(at - s), is_link ? "//" : "\n//", is_link ? 2 : 3);
    if (!end) {
        l->seen = len;
        return 0;
    }
    *end = '\0';
    used = end + 1 - s;
    if (is_link) {
        used = link_end(l, end, st.file_size, tag == 'S', from, &target, &target_len);
        l->bad = used < 0;
        if (used <= 0) {
            *end = '/'; /* restore it for the next try */
            return 0;
        }
        target[target_len] = '\0';
    }
    return entry_out(l, from, &st, target) ? (size_t)used : 0;
}

static void take_records(lister *l)
{
    size_t used, done = 0;
    char *start = l->buf.data;
    size_t all = l->buf.len;
    while ((used = take_record(l)) > 0) {
        done += used;
        l->buf.data += used;
        l->buf.len -= used;
        l->seen = 0;
    }
    memmove(start, l->buf.data, l->buf.len);
    l->buf.data = start;
    l->buf.len = all - done;
}

static int lister_out(void *ctx, const void *data, size_t len)
{
    lister *l = ctx;

    if (!data || l->ended || csn_buf_append(&l->buf, data, len) != 0) {
        l->bad = true;
        return CSN_SINK_STOP;
    }
    take_records(l);
    if (l->buf.len > RECORD_MAX)
        l->bad = true;
    return l->bad || l->stopped ? CSN_SINK_STOP : CSN_SINK_MORE;
}

static csn_status list(const csn_fs *fs, const char *verb, const char *path, uint32_t flags,
                       bool below, csn_entry_fn fn, void *ctx, csn_error **err)
{
    lister l = {.fn = fn, .ctx = ctx};
    csn_autofree char *p = NULL;
    bool dir;

    csn_status st = csn_derive_path(verb, path, &p, &dir, err);
    if (st < 0)
        return st;
    /* One write of the backend may contain many records. */
    csn_buf_init(&l.buf, RECORD_MAX + 16u * 1024u * 1024u);
    csn_autojob job = {
        .fs = fs,
        .script = list_script,
        .paths = 1,
        .reads = true,
        .args = {csn_derive_slash(p, dir), flags & CSN_FILE_NOFOLLOW ? "n" : "",
                 below ? "w" : ""},
        .out = lister_out,
        .out_ctx = &l,
    };
    st = csn_derive_do(&job, verb, path, err);
    l.last = true;
    if (st == CSN_OK && !l.bad && !l.stopped && !l.ended && l.buf.len > 0)
        take_records(&l);
    csn_buf_release(&l.buf);
    if (st < 0 || l.stopped)
        return st;
    csn_autofree char *shown = csn_path_printable(path);
    csn_autofree char *message = csn_path_printable(job.stderr_tail);
    if (l.bad || !l.ended)
        return csn_fail(err, CSN_IO, "%s %s: the sandbox's tools gave no sensible answer: %s",
                        verb, shown ? shown : "", message ? message : "");
    /* The tools exit with 1 if a file vanished or a directory is unreadable: the list contains
     * the rest. */
    if (l.exit_code > 1 || strstr(job.stderr_tail, "Input/output error"))
        return csn_fail(err, CSN_IO, "%s %s: %s", verb, shown ? shown : "",
                        message ? message : "");
    return CSN_OK;
}

csn_status csn_derive_list(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                           void *ctx, csn_error **err)
{
    return list(fs, "list", path, flags, false, fn, ctx, err);
}

csn_status csn_derive_walk(const csn_fs *fs, const char *path, uint32_t flags, csn_entry_fn fn,
                           void *ctx, csn_error **err)
{
    return list(fs, "walk", path, flags, true, fn, ctx, err);
}
