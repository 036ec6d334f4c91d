/* fallback.c: stat, read, mkdir, symlink, remove, rename and cleanup derived from exec.
 *
 * Each operation is a script and the parser of its output; fallback_run.c has the functions
 * that scripts share. Output is untrusted. Invariants: test(1) checks the type of a path before
 * anything opens it, so a fifo or device never blocks; scripts test whether the target is a
 * directory, because mv and ln would place the file inside it; a file that was moved out of the
 * way is moved back if the next step fails. */
#include "core/fallback.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/path.h"
#include "core/fallback_run.h"

#define HEADER_MAX 256u
/* For files of at least this size, csn_file_ops.fetch is faster in spite of the second
 * request. */
#define FETCH_MIN (512u * 1024u)
/* Limit for reading a file of reported size 0, as in /proc. */
#define SIZELESS_MAX (16u * 1024u * 1024u)

/* ---- stat ------------------------------------------------------------------------------- */

/* $1 path, $2 "n": refuse symlinks in the path and stat the link itself. Prints the fields,
 * then for a symlink its target and a dot. */
static const char stat_script[] =
    "if [ -n \"$2\" ]; then\n"
    "  nolinks \"${1%/*}\"\n"
    "  [ -e \"$1\" ] || [ -L \"$1\" ] || gone \"$1\"\n"
    "  fields \"$1\" || fail " CSN_SH_STDERR "\n"
    "  [ ! -L \"$1\" ] || { where \"$1\"; printf '%s.' \"$r\"; }\n"
    "else\n"
    "  [ -e \"$1\" ] || gone \"$1\"\n"
    "  fields -L \"$1\" || fail " CSN_SH_STDERR "\n"
    "fi\n"
    "exit 0\n";

static csn_status bad_answer(const char *verb, const char *path, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);

    return csn_fail(err, CSN_IO, "%s %s: the sandbox's tools gave no sensible answer", verb,
                    shown ? shown : "");
}

csn_status csn_derive_stat(const csn_fs *fs, const char *path, uint32_t flags,
                           csn_file_stat *ret, char **ret_target, csn_error **err)
{
    csn_autofree char *target = NULL;
    csn_autofree char *p = NULL;
    csn_file_stat found;
    bool dir;

    csn_status st = csn_derive_path("stat", path, &p, &dir, err);
    if (st < 0)
        return st;
    csn_autojob job = {
        .fs = fs,
        .script = stat_script,
        .paths = 1,
        .reads = true,
        .args = {csn_derive_slash(p, dir), flags & CSN_FILE_NOFOLLOW ? "n" : ""},
    };
    st = csn_derive_do(&job, "stat", path, err);
    if (st < 0)
        return st;
    const char *nl = job.text.len > 0 ? memchr(job.text.data, '\n', job.text.len) : NULL;
    if (!nl || !csn_derive_fields(job.text.data, (size_t)(nl - job.text.data), &found))
        return bad_answer("stat", path, err);
    size_t rest = job.text.len - (size_t)(nl + 1 - job.text.data);
    if (rest > 0 && !(target = strndup(nl + 1, rest - 1)))
        return csn_fail(err, CSN_NOMEM, "out of memory");
    *ret = found;
    if (ret_target)
        *ret_target = CSN_STEAL(target);
    return CSN_OK;
}

/* ---- read ------------------------------------------------------------------------------- */

/* $1 path, $2 "n": refuse symlinks, $3 blocks of 64 KiB to skip, $4 first byte after them
 * (one-based, as tail counts; "": skip none), $5 number of bytes ("": all), $6 size from which
 * on only the fields are printed ("": never).
 *
 * The file is opened once, and the fields must be those of the open file: they are read through
 * /proc if it exists, else compared before and after the open. The comparison can miss two
 * changes in between, so the fields are then marked with a ? and do not limit the read. dd
 * skips whole blocks because busybox's tail cannot skip more than 4 GiB. */
static const char read_script[] =
    "[ -z \"$2\" ] || nolinks \"$1\"\n"
    "[ -e \"$1\" ] || gone \"$1\"\n"
    "[ ! -d \"$1\" ] || fail " CSN_SH_ISDIR "\n"
    "[ -f \"$1\" ] || fail " CSN_SH_NOTREG "\n"
    "[ -r \"$1\" ] || fail " CSN_SH_ACCES "\n"
    "old= unsure='?'\n"
    "for n in 1 2 3 4 5 6 7 8; do\n"
    "  exec 3<\"$1\" || fail " CSN_SH_STDERR "\n"
    "  if h=$(fields -L /proc/self/fd/3 2>&1); then case $h in [sl]*/) unsure=; break ;; esac; "
    "fi\n"
    "  h=$(fields -L \"$1\") || gone \"$1\"\n"
    "  [ \"$old\" != \"$h\" ] || break\n"
    "  old=$h\n"
    "done\n"
    "printf '%s%s\\n' \"$unsure\" \"$h\"\n"
    "case $unsure$6 in [0-9]*) case $h in s*)\n"
    "  s=${h#* }; [ \"${s%% *}\" -lt \"$6\" ] || exit 0 ;; esac ;; esac\n"
    "skip() {\n"
    "  if [ \"$3\" != 0 ]; then\n"
    "    if [ -n \"$4\" ]; then dd bs=65536 skip=\"$3\" <&3 | tail -c +\"$4\"\n"
    "    else dd bs=65536 skip=\"$3\" <&3; fi\n"
    "  elif [ -n \"$4\" ]; then tail -c +\"$4\" <&3\n"
    "  elif [ -n \"$5\" ]; then head -c \"$5\" <&3\n"
    "  else cat <&3; fi\n"
    "}\n"
    "if [ \"$5\" = 0 ]; then exit 0\n"
    "elif [ \"$3$4\" = 0 ] || [ -z \"$5\" ]; then skip \"$@\"\n"
    "else skip \"$@\" | head -c \"$5\"; fi || fail " CSN_SH_STDERR "\n"
    "exit 0\n";

#define UNSURE_MORE (1024ull * 1024u * 1024u)

typedef struct reader {
    const csn_sink *sink;
    csn_file_stat st;
    char header[HEADER_MAX];
    size_t header_len;
    bool has_header, bad, full;
    bool may_fetch;
    uint64_t fetch_from; /* files of at least this size are fetched; 0: none */
    bool fetch;          /* this file is fetched */
    uint64_t offset, length;
    uint64_t want, got; /* bytes; want is set when the header is complete */
} reader;

static void header_done(reader *r)
{
    bool unsure = r->header_len > 0 && r->header[0] == '?';

    r->has_header = true;
    r->bad = !csn_derive_fields(r->header + unsure, r->header_len - unsure, &r->st);
    /* Limits the read of a growing file to its size at open, plus UNSURE_MORE if the size may
     * be that of another file. */
    uint64_t size = r->st.file_size > 0 ? r->st.file_size : SIZELESS_MAX;
    if (unsure)
        size += UNSURE_MORE;
    r->fetch = !r->bad && r->header[0] == 's' && r->fetch_from > 0 && size >= r->fetch_from;
    r->want = size > r->offset ? size - r->offset : 0;
    if (r->want > r->length)
        r->want = r->length;
}

/* Parses the header and passes the rest to the sink. */
static int reader_out(void *ctx, const void *data, size_t len)
{
    reader *r = ctx;
    const char *p = data;

    if (!p && len > 0) { /* the backend dropped output */
        r->bad = true;
        return CSN_SINK_STOP;
    }
    while (!r->has_header && len > 0) {
        if (r->header_len == sizeof(r->header)) {
            r->bad = true;
            return CSN_SINK_STOP;
        }
        if (*p == '\n')
            header_done(r);
        else
            r->header[r->header_len++] = *p;
        p++;
        len--;
    }
    if (r->bad)
        return CSN_SINK_STOP;
    if (len > r->want - r->got)
        len = (size_t)(r->want - r->got);
    if (len == 0)
        return r->has_header && r->got == r->want && r->st.file_size > 0 ? CSN_SINK_STOP
                                                                         : CSN_SINK_MORE;
    r->got += len;
    int next = r->sink->write(r->sink->ctx, CSN_STDOUT, p, len);
    r->full = next == CSN_SINK_STOP;
    return next;
}

static int fetched(void *ctx, int stream, const void *data, size_t len)
{
    reader *r = ctx;

    (void)stream;
    return reader_out(r, data, len);
}

/* Runs the script; its output goes to r. */
static csn_status read_by_script(const csn_fs *fs, const char *path, uint32_t flags, reader *r,
                                 char **ret_path, csn_error **err)
{
    uint64_t length = r->offset > INT64_MAX / 2 ? 0 : r->length; /* limit of the tools */
    char blocks[24], bytes[24] = "", count[24] = "", from[24] = "";
    bool dir;

    csn_status st = csn_derive_path("read", path, ret_path, &dir, err);
    if (st < 0)
        return st;
    snprintf(blocks, sizeof(blocks), "%" PRIu64, length == 0 ? 0 : r->offset / 65536);
    if (r->offset % 65536 != 0)
        snprintf(bytes, sizeof(bytes), "%" PRIu64, r->offset % 65536 + 1);
    if (length <= INT64_MAX)
        snprintf(count, sizeof(count), "%" PRIu64, length);
    if (r->may_fetch && length >= FETCH_MIN)
        snprintf(from, sizeof(from), "%" PRIu64, r->fetch_from = r->offset + FETCH_MIN);
    csn_autojob job = {
        .fs = fs,
        .script = read_script,
        .paths = 1,
        .reads = true,
        .args = {csn_derive_slash(*ret_path, dir), flags & CSN_FILE_NOFOLLOW ? "n" : "", blocks,
                 bytes, count, from},
        .out = reader_out,
        .out_ctx = r,
    };
    st = csn_derive_do(&job, "read", path, err);
    return st == CSN_OK && (r->bad || !r->has_header) ? bad_answer("read", path, err) : st;
}

static csn_status read_once(const csn_fs *fs, const char *path, uint32_t flags, reader *r,
                            csn_error **err)
{
    const csn_sink rest = {.write = fetched, .ctx = r};
    csn_autofree char *p = NULL;

    csn_status st = read_by_script(fs, path, flags, r, &p, err);
    if (st < 0 || !r->fetch)
        return st;
    return fs->ops->files->fetch(fs->state, p, r->st.file_size, r->offset, r->want,
                                 fs->cancel_fds, &rest, err);
}

csn_status csn_derive_read(const csn_fs *fs, const char *path, uint32_t flags, uint64_t offset,
                           uint64_t length, const csn_sink *sink, csn_file_stat *ret,
                           csn_error **err)
{
    const reader begin = {.sink = sink, .offset = offset, .length = length};
    reader r = begin;

    /* A fetch resolves the path again, so it cannot be used with NOFOLLOW. */
    r.may_fetch = csn_fs_files(fs)->fetch && !(flags & CSN_FILE_NOFOLLOW);
    csn_status st = read_once(fs, path, flags, &r, err);
    if (st == CSN_UNSUPPORTED && r.fetch && r.got == 0) {
        if (err) {
            csn_error_free(*err);
            *err = NULL;
        }
        r = begin;
        st = read_once(fs, path, flags, &r, err);
    }
    if (st < 0)
        return st;
    /* The whole file was read: report the number of bytes that arrived. */
    if (offset == 0 && length == UINT64_MAX && !r.full)
        r.st.file_size = r.got;
    if (ret)
        *ret = r.st;
    return CSN_OK;
}

/* ---- making and removing ---------------------------------------------------------------- */

/* $1 path, $2 flags: n refuse symlinks, p create parents */
static const char mkdir_script[] =
    "case $2 in *n*) nolinks \"$1\" ;; esac\n"
    "[ -d \"$1\" ] || [ ! -e \"$1\" ] || fail " CSN_SH_NOTDIR "\n"
    "case $2 in *p*)\n"
    "  [ ! -d \"$1\" ] || exit 0\n"
    "  [ ! -L \"$1\" ] || fail " CSN_SH_EXIST "\n"
    "  up \"$1\"; exit 0 ;;\n"
    "esac\n"
    "into \"$1\"\n"
    "if [ -e \"./$b\" ] || [ -L \"./$b\" ]; then fail " CSN_SH_EXIST "; fi\n"
    "mkdir \"./$b\" || fail " CSN_SH_STDERR "\n"
    "exit 0\n";

csn_status csn_derive_mkdir(const csn_fs *fs, const char *path, uint32_t flags, csn_error **err)
{
    csn_autofree char *p = NULL;
    char how[4] = "";
    bool dir;

    csn_status st = csn_derive_path("mkdir", path, &p, &dir, err);
    if (st < 0)
        return st;
    snprintf(how, sizeof(how), "%s%s", flags & CSN_FILE_NOFOLLOW ? "n" : "",
             flags & CSN_FILE_NO_PARENTS ? "" : "p");
    csn_autojob job = {.fs = fs, .script = mkdir_script, .paths = 1, .args = {p, how}};
    return csn_derive_do(&job, "mkdir", path, err);
}

/* $1 path, $2 target. If the path is a directory, ln would create the link inside it. ln -T
 * prevents that; where ln has no -T, the test before it does. */
static const char symlink_script[] =
    "d=${1%/*}; [ -z \"$d\" ] || up \"$d\"\n"
    "into \"$1\"\n"
    "if [ -e \"./$b\" ] || [ -L \"./$b\" ]; then fail " CSN_SH_EXIST "; fi\n"
    "e=$(ln -sT -- \"$2\" \"./$b\" 2>&1) && exit 0\n"
    "if [ -e \"./$b\" ] || [ -L \"./$b\" ]; then fail " CSN_SH_EXIST "; fi\n"
    "ln -s -- \"$2\" \"./$b\" || fail " CSN_SH_STDERR "\n"
    "exit 0\n";

csn_status csn_derive_symlink(const csn_fs *fs, const char *target, const char *path,
                              csn_error **err)
{
    csn_autofree char *p = NULL;
    bool dir;

    csn_status st = csn_derive_path("symlink", path, &p, &dir, err);
    if (st < 0)
        return st;
    if (!target || !target[0] || dir)
        return csn_derive_fail(dir ? ENOTDIR : EINVAL, "symlink", path, err);
    csn_autojob job = {.fs = fs, .script = symlink_script, .paths = 1, .args = {p, target}};
    return csn_derive_do(&job, "symlink", path, err);
}

/* $1 path, $2 flags: n refuse symlinks in the path, r recursive, d only a directory. Removes a
 * symlink itself, never its target. */
static const char remove_script[] =
    "case $2 in *n*) nolinks \"${1%/*}\" ;; esac\n"
    "into \"$1\"\n"
    "[ -e \"./$b\" ] || [ -L \"./$b\" ] || fail " CSN_SH_NOENT "\n"
    "if [ -d \"./$b\" ] && [ ! -L \"./$b\" ]; then\n"
    "  case $2 in\n"
    "  *r*) rm -rf \"./$b\"; [ ! -d \"./$b\" ] || fail " CSN_SH_STDERR " ;;\n"
    "  *) rmdir \"./$b\" && exit 0\n"
    "    e=$(ls -A \"./$b\"); [ -z \"$e\" ] || fail " CSN_SH_NOTEMPTY "\n"
    "    fail " CSN_SH_STDERR " ;;\n"
    "  esac\n"
    "else\n"
    "  case $2 in *d*) fail " CSN_SH_NOTDIR " ;; esac\n"
    "  rm -f \"./$b\" || fail " CSN_SH_STDERR "\n"
    "fi\n"
    "exit 0\n";

/* Is the last component a name? `/`, `.` and `..` cannot be removed or renamed. */
static bool has_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] && strcmp(slash + 1, "..") != 0;
}

/* Does the path end in `.` or `..`, as in `/a/.`? */
static bool ends_in_dots(const char *path)
{
    size_t len = strlen(path);

    while (len > 0 && path[len - 1] == '/')
        len--;
    return len > 0 && path[len - 1] == '.' &&
           (len == 1 || path[len - 2] == '/' ||
            (path[len - 2] == '.' && (len == 2 || path[len - 3] == '/')));
}

csn_status csn_derive_remove(const csn_fs *fs, const char *path, uint32_t flags,
                             csn_error **err)
{
    csn_autofree char *p = NULL;
    char how[4] = "";
    bool dir;

    csn_status st = csn_derive_path("delete", path, &p, &dir, err);
    if (st < 0)
        return st;
    if (!has_name(p) || ends_in_dots(path))
        return csn_derive_fail(EINVAL, "delete", path, err);
    snprintf(how, sizeof(how), "%s%s%s", flags & CSN_FILE_NOFOLLOW ? "n" : "",
             flags & CSN_FILE_RECURSIVE ? "r" : "", dir ? "d" : "");
    csn_autojob job = {.fs = fs, .script = remove_script, .paths = 1, .args = {p, how}};
    return csn_derive_do(&job, "delete", path, err);
}

/* ---- rename ----------------------------------------------------------------------------- */

/* $1 from, $2 to, $3 flags: n refuse symlinks in the paths, p create the parents of `to`, c
 * fail if `to` exists, d `from` must be a directory, e `to` must be one, $4 temporary name for
 * an existing target. mv without -T moves into a directory; busybox's -T refuses a symlink to a
 * directory; GNU's refuses a symlink onto its own target. rename(2) permits all of these, so if
 * mv -T fails, the script moves the target away first. */
static const char rename_script[] =
    "case $3 in *n*) nolinks \"${1%/*}\"; nolinks \"${2%/*}\" ;; esac\n"
    "there() { [ -e \"$1\" ] || [ -L \"$1\" ]; }\n"
    "isdir() { [ -d \"$1\" ] && [ ! -L \"$1\" ]; }\n"
    "place() { a=$(pwd -P && printf .) || fail " CSN_SH_STDERR "; a=${a%??}; "
    "[ \"$a\" != / ] || a=; }\n"
    "into \"$1\"; place; from=$a/$b\n"
    "there \"$from\" || fail " CSN_SH_NOENT "\n"
    "case $3 in *p*) d=${2%/*}; [ -z \"$d\" ] || up \"$d\" ;; esac\n"
    "into \"$2\"; place; to=$a/$b aside=$a/.csn-$4\n"
    "if isdir \"$from\"; then\n"
    "  [ \"$from\" != \"$to\" ] || exit 0\n"
    "  case $to/ in \"$from\"/*) fail " CSN_SH_INVAL " ;; esac\n"
    "  if there \"$to\"; then\n"
    "    case $3 in *c*) fail " CSN_SH_EXIST " ;; esac\n"
    "    isdir \"$to\" || fail " CSN_SH_NOTDIR "\n"
    "    e=$(ls -A \"$to\") || fail " CSN_SH_STDERR "\n"
    "    [ -z \"$e\" ] || fail " CSN_SH_NOTEMPTY "\n"
    "  fi\n"
    "else\n"
    "  case $3 in *[de]*) fail " CSN_SH_NOTDIR " ;; esac\n"
    "  [ \"$from\" != \"$to\" ] || exit 0\n"
    "  if there \"$to\"; then\n"
    "    case $3 in *c*) fail " CSN_SH_EXIST " ;; esac\n"
    "    ! isdir \"$to\" || fail " CSN_SH_ISDIR "\n"
    "    if [ ! -L \"$from\" ] && [ ! -L \"$to\" ] && [ \"$from\" -ef \"$to\" ]; then exit 0; "
    "fi\n"
    "  fi\n"
    "fi\n"
    "e=$(mv -fT \"$from\" \"$to\" 2>&1) && exit 0\n"
    "if there \"$to\"; then\n"
    "  mv -f \"$to\" \"$aside\" || fail " CSN_SH_STDERR "\n"
    "  mv -f \"$from\" \"$to\" || { mv -f \"$aside\" \"$to\"; printf '%s\\n' \"$e\" >&2; "
    "fail " CSN_SH_STDERR "; }\n"
    "  rm -rf \"$aside\"\n"
    "else\n"
    "  mv -f \"$from\" \"$to\" || fail " CSN_SH_STDERR "\n"
    "fi\n"
    "exit 0\n";

csn_status csn_derive_rename(const csn_fs *fs, const char *from, const char *to, uint32_t flags,
                             csn_error **err)
{
    csn_autofree char *p = NULL;
    csn_autofree char *q = NULL;
    bool from_dir, to_dir;
    uint64_t token;
    char how[8], name[24];

    csn_status st = csn_derive_path("rename", from, &p, &from_dir, err);
    if (st == CSN_OK)
        st = csn_derive_path("rename", to, &q, &to_dir, err);
    if (st < 0)
        return st;
    if (!has_name(p) || ends_in_dots(from))
        return csn_derive_fail(EINVAL, "rename", from, err);
    if (!has_name(q) || ends_in_dots(to))
        return csn_derive_fail(EINVAL, "rename", to, err);
    if (getrandom(&token, sizeof(token), 0) != sizeof(token))
        return csn_fail_errno(err, errno, "getrandom");
    snprintf(how, sizeof(how), "%s%s%s%s%s", flags & CSN_FILE_NOFOLLOW ? "n" : "",
             flags & CSN_FILE_NO_PARENTS ? "" : "p", flags & CSN_FILE_CREATE ? "c" : "",
             from_dir ? "d" : "", to_dir ? "e" : "");
    snprintf(name, sizeof(name), "%016" PRIx64, token);
    csn_autojob job = {
        .fs = fs, .script = rename_script, .paths = 2, .args = {p, q, how, name}};
    return csn_derive_do(&job, "rename", from, err);
}

/* ---- cleanup ---------------------------------------------------------------------------- */

/* $1 directory. Refuses the root. */
static const char cleanup_script[] =
    "[ -e \"$1\" ] || gone \"$1\"\n"
    "[ -d \"$1\" ] || fail " CSN_SH_NOTDIR "\n"
    "cd -P \"$1\" || gone \"$1\"\n"
    "[ \"$(pwd -P)\" != / ] || fail " CSN_SH_INVAL "\n"
    "e=$(find . ! -name . -prune -exec rm -rf {} + 2>&1) || :\n"
    /* what is left may be in read-only directories */
    "e=$(find . ! -name . -type d ! -perm -700 -exec chmod u+rwx {} \\; 2>&1) || :\n"
    "for f in ./* ./.[!.]* ./..?*; do\n"
    "  if [ -e \"$f\" ] || [ -L \"$f\" ]; then rm -rf \"$f\" || fail " CSN_SH_STDERR "; fi\n"
    "done\n"
    "exit 0\n";

csn_status csn_derive_cleanup(const csn_fs *fs, const char *workdir, csn_error **err)
{
    csn_autofree char *p = NULL;
    bool dir;

    csn_status st = csn_derive_path("cleanup", workdir, &p, &dir, err);
    if (st < 0)
        return st;
    csn_autojob job = {.fs = fs, .script = cleanup_script, .paths = 1, .args = {p}};
    return csn_derive_do(&job, "cleanup", workdir, err);
}
