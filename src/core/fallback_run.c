/* fallback_run.c: runs the script of a derived operation in the sandbox.
 *
 * A job becomes argv {"sh", "-c", prelude + script, "sh", arguments...}: the program contains
 * no text of the caller, so no byte in a path is read as shell syntax. The tools are those of
 * the guest and untrusted: their output is parsed only as names and numbers, every buffer has a
 * maximum, and invalid output is CSN_IO. Scripts need neither /dev/null nor /proc: a root with
 * only busybox is enough. Scripts find out existence and type with test(1). Error messages, in
 * the C locale, are parsed only for conditions that no test shows (a full or read-only
 * disk). */
#include "core/fallback_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/path.h"

#define TEXT_MAX      (1024u * 1024u) /* maximum stdout of a script without `out` */
#define COMPONENT_MAX 255u

/* Functions for all scripts. A script records what it creates in t (a file) and in made and top
 * (directories); `fail` removes it. */
static const char prelude[] =
    "LC_ALL=C; export LC_ALL\n"
    "QUOTING_STYLE=literal; export QUOTING_STYLE\n" /* GNU stat %N: no quoting */
    "t= made=0 top=\n"
    "fail() {\n"
    "  trap '' HUP INT TERM\n"
    "  [ -z \"$t\" ] || rm -f \"$t\"\n"
    "  while [ \"$made\" -gt 0 ] && e=$(rmdir \"$top\" 2>&1); do\n"
    "    top=${top%/*}; made=$((made - 1))\n"
    "  done\n"
    "  exit \"$1\"\n"
    "}\n"
    /* gone PATH: exit with the reason why PATH cannot be reached */
    "gone() {\n"
    "  q=$1\n"
    "  until [ -e \"$q\" ] || [ -L \"$q\" ]; do\n"
    "    case $q in */*) q=${q%/*} ;; *) break ;; esac\n"
    "    [ -n \"$q\" ] || q=/\n"
    "    [ \"$q\" != / ] || break\n"
    "  done\n"
    "  if [ ! -e \"$q\" ]; then ls -dL \"$q\" >&2; fail " CSN_SH_STDERR "; fi\n"
    "  [ -d \"$q\" ] || fail " CSN_SH_NOTDIR "\n"
    "  [ -x \"$q\" ] || fail " CSN_SH_ACCES "\n"
    "  fail " CSN_SH_NOENT "\n"
    "}\n"
    /* nolinks PATH: fail if a component of PATH is a symlink */
    "nolinks() {\n"
    "  q= r=${1#/}\n"
    "  while [ -n \"$r\" ]; do\n"
    "    q=$q/${r%%/*}\n"
    "    [ ! -L \"$q\" ] || fail " CSN_SH_LINK "\n"
    "    case $r in */*) r=${r#*/} ;; *) r= ;; esac\n"
    "  done\n"
    "}\n"
    /* into PATH: cd to the parent of PATH and set b to the last component; for a PATH that ends
     * in / . or .. cd to PATH itself and set b to `.` */
    "into() {\n"
    "  d=${1%/*} b=${1##*/}\n"
    "  case $b in ''|.|..) d=$1 b=. ;; esac\n"
    "  [ -n \"$d\" ] || d=/\n"
    "  cd -P \"$d\" || gone \"$d\"\n"
    "}\n"
    /* where LINK: set r to the target of LINK, including trailing newlines */
    "where() {\n"
    "  if r=$(readlink -n \"$1\" 2>&1 && printf .); then r=${r%.}\n"
    "  else r=$(ls -ld \"$1\" && printf .) || fail " CSN_SH_STDERR "\n"
    "    r=${r%??}; r=${r#*\" $1 -> \"}\n"
    "  fi\n"
    "}\n"
    /* land: follow ./$b while it is a symlink (cd to the parent of its target and set b) */
    "land() {\n"
    "  n=0 must=\n"
    "  while [ -L \"./$b\" ]; do\n"
    "    n=$((n + 1)); [ \"$n\" -le 40 ] || fail " CSN_SH_LOOP "\n"
    "    where \"./$b\"\n"
    "    case $r in /*) ;; *) r=./$r ;; esac\n"
    "    while :; do case $r in ?*/) r=${r%/} must=1 ;; *) break ;; esac; done\n"
    "    into \"$r\"\n"
    "  done\n"
    "  [ -z \"$must\" ] || [ -d \"./$b\" ] || gone \"./$b/\"\n"
    "}\n"
    /* up DIR: create DIR and its missing parents */
    "up() {\n"
    "  [ ! -d \"$1\" ] || return 0\n"
    "  if [ -e \"$1\" ]; then fail " CSN_SH_NOTDIR
    "; elif [ -L \"$1\" ]; then gone \"$1\"; fi\n"
    "  case $1 in /*/*) up \"${1%/*}\" ;; esac\n"
    "  [ ! -d \"$1\" ] || return 0\n"
    "  mkdir \"$1\" || { [ -d \"$1\" ] || fail " CSN_SH_STDERR "; return 0; }\n"
    "  made=$((made + 1)) top=$1\n"
    "}\n"
    /* fields [-L] FILE: print the attributes of FILE in one line */
    "fields() {\n"
    "  e=$(stat -c 's%f %s %Y %h %d %i %y/' \"$@\" 2>&1) && printf '%s\\n' \"$e\" && return\n"
    "  case $1 in -L) e=$(ls -ldnL \"$2\") ;; *) e=$(ls -ldn \"$1\") ;; esac || return\n"
    "  set -f; set -- $e; set +f\n"
    "  printf 'l%s %s %s/\\n' \"$1\" \"$2\" \"$5\"\n"
    "}\n";

/* Makes relative paths absolute, from the directory in which the backend starts commands:
 * scripts change directory, and a path that starts with a slash is never read as an option. */
static const char one_path[] = "abs() {\n"
                               "  case $1 in /*) r=$1; return ;; esac\n"
                               "  r=$(pwd -P && printf .) || fail " CSN_SH_STDERR "\n"
                               "  r=${r%??}; [ \"$r\" != / ] || r=; r=$r/${1#./}\n"
                               "}\n"
                               "abs \"$1\"; shift; set -- \"$r\" \"$@\"\n";
static const char second_path[] = "a=$1; abs \"$2\"; shift 2; set -- \"$a\" \"$r\" \"$@\"\n";

/* ---- running ---------------------------------------------------------------------------- */

/* Keeps the end of stderr: the last line names the failure that ended the script. */
static void keep_stderr(csn_derive_job *j, const char *data, size_t len)
{
    size_t max = sizeof(j->stderr_tail) - 1;

    if (len > max) {
        data += len - max;
        len = max;
    }
    if (j->stderr_len + len > max) {
        size_t drop = j->stderr_len + len - max;
        memmove(j->stderr_tail, j->stderr_tail + drop, j->stderr_len - drop);
        j->stderr_len -= drop;
    }
    memcpy(j->stderr_tail + j->stderr_len, data, len);
    j->stderr_len += len;
    j->stderr_tail[j->stderr_len] = '\0';
}

static int job_write(void *ctx, int stream, const void *data, size_t len)
{
    csn_derive_job *j = ctx;
    int next = CSN_SINK_MORE;

    if (stream != CSN_STDOUT) {
        if (data)
            keep_stderr(j, data, len);
        return CSN_SINK_MORE;
    }
    if (j->stopped)
        return CSN_SINK_STOP;
    if (j->out)
        next = j->out(j->out_ctx, data, len);
    else if (!data || csn_buf_append(&j->text, data, len) != 0)
        next = CSN_SINK_STOP;
    j->stopped = next == CSN_SINK_STOP;
    return next;
}

/* The error for a script that did not exit. */
static csn_status ended(const csn_exec_end *end, csn_error **err)
{
    switch (end->how) {
    case CSN_END_EXITED:
        return csn_fail(err, CSN_IO, "sh was ended by signal %d", (int)end->signal);
    case CSN_END_TIMEOUT:
        return csn_fail(err, CSN_TIMEOUT, "deadline passed");
    case CSN_END_CANCEL:
        return csn_fail(err, CSN_CANCELLED, "cancelled");
    case CSN_END_SPAWN:
        return csn_fail(err, CSN_IO, "cannot run sh: %.255s", end->message);
    case CSN_END_LOST:
        return csn_fail(err, CSN_UNAVAILABLE, "the connection to the sandbox broke");
    case CSN_END_DISK:
        return csn_fail_errno(err, ENOSPC, "sh");
    case CSN_END_POLICY:
        return csn_fail(err, CSN_DENIED, "the sandbox's policy ended sh");
    default:
        return csn_fail(err, CSN_IO, "a limit of the sandbox ended sh");
    }
}

csn_status csn_derive_run(csn_derive_job *j, csn_error **err)
{
    const char *argv[4 + CSN_DERIVE_ARGS + 1] = {"sh", "-c", NULL, "sh"};
    static const char *const env[] = {"LC_ALL=C", NULL};
    const csn_sink sink = {.write = job_write, .ctx = j};
    csn_exec_end end = {.size = sizeof(end), .exit_code = -1};
    csn_autofree char *program = NULL;
    bool relative = false;

    for (unsigned i = 0; i < j->paths; i++)
        relative |= j->args[i][0] != '/';
    if (asprintf(&program, "%s%s%s%s", prelude, relative ? one_path : "",
                 relative && j->paths > 1 ? second_path : "", j->script) < 0)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    argv[2] = program;
    for (size_t i = 0; i < CSN_DERIVE_ARGS && j->args[i]; i++)
        argv[4 + i] = j->args[i];
    csn_exec_req req = {
        .size = sizeof(req),
        .flags = j->reads && (j->fs->ops->caps & CSN_CAP_STEPS) ? CSN_EXEC_READS : 0,
        .argv = argv,
        .env = env,
        .cwd = relative ? NULL : "/", /* NULL: the backend's own start directory */
        .input = j->input,
        .input_fd = -1,
        .cancel_fds = {-1, -1},
    };
    if (j->fs->cancel_fds)
        memcpy(req.cancel_fds, j->fs->cancel_fds, sizeof(req.cancel_fds));
    csn_buf_release(&j->text);
    csn_buf_init(&j->text, TEXT_MAX);
    j->stderr_len = 0;
    j->stderr_tail[0] = '\0';
    csn_status st = j->fs->ops->exec(j->fs->state, &req, &sink, &end, err);
    if (st < 0)
        return st;
    if (j->stopped && !j->out)
        return csn_fail(err, CSN_IO, "sh answered with more than %u bytes", TEXT_MAX);
    if (!j->stopped && (end.how != CSN_END_EXITED || end.exit_code < 0))
        return ended(&end, err);
    j->exit_code = j->stopped ? 0 : end.exit_code;
    return CSN_OK;
}

/* ---- errors ----------------------------------------------------------------------------- */

static const struct {
    const char *code;
    int errnum;
} codes[] = {
    {CSN_SH_NOENT, ENOENT},       {CSN_SH_EXIST, EEXIST},   {CSN_SH_NOTDIR, ENOTDIR},
    {CSN_SH_ISDIR, EISDIR},       {CSN_SH_ACCES, EACCES},   {CSN_SH_NOTREG, EMEDIUMTYPE},
    {CSN_SH_NOTEMPTY, ENOTEMPTY}, {CSN_SH_LOOP, ELOOP},     {CSN_SH_INVAL, EINVAL},
    {CSN_SH_UNSUP, EOPNOTSUPP},   {CSN_SH_INTR, ECANCELED},
};

/* Endings of error messages in the C locale, from glibc, musl, dash and busybox. */
static const struct {
    const char *text;
    int errnum;
} endings[] = {
    {"no such file or directory", ENOENT},
    {"no such file", ENOENT},
    {"file exists", EEXIST},
    {"cannot overwrite existing file", EEXIST},
    {"not a directory", ENOTDIR},
    {"is a directory", EISDIR},
    {"directory not empty", ENOTEMPTY},
    {"permission denied", EACCES},
    {"operation not permitted", EPERM},
    {"read-only file system", EROFS},
    {"no space left on device", ENOSPC},
    {"quota exceeded", EDQUOT},
    {"file too large", EFBIG},
    {"too many levels of symbolic links", ELOOP},
    {"symbolic link loop", ELOOP},
    {"file name too long", ENAMETOOLONG},
    {"filename too long", ENAMETOOLONG},
    {"device or resource busy", EBUSY},
    {"resource busy", EBUSY},
    {"text file busy", ETXTBSY},
    {"invalid argument", EINVAL},
};

/* The errno for the last line with a known ending; 0: none. */
static int errno_of_message(const char *message, size_t len)
{
    while (len > 0) {
        const char *nl = memrchr(message, '\n', len);
        const char *line = nl ? nl + 1 : message;
        size_t n = len - (size_t)(line - message);
        for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
            size_t m = strlen(endings[i].text);
            if (n >= m && strncasecmp(line + n - m, endings[i].text, m) == 0)
                return endings[i].errnum;
        }
        len = nl ? (size_t)(nl - message) : 0;
    }
    return 0;
}

csn_status csn_derive_fail(int errnum, const char *verb, const char *path, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);
    const char *name = shown ? shown : "''";

    switch (errnum) {
    case ENOENT:
        return csn_fail(err, CSN_NOT_FOUND, "File %s not found", name);
    case EISDIR:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is a directory", name);
    case ENOTDIR:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a directory", name);
    case EMEDIUMTYPE:
        return csn_fail(err, CSN_WRONG_TYPE, "%s is not a regular file", name);
    case EBUSY:
        return csn_fail(err, CSN_CONFLICT, "%s is being changed by another process", name);
    case EEXIST:
        if (strcmp(verb, "write") == 0)
            return csn_fail(err, CSN_EXISTS, "Cannot write to %.*s because it already exists.",
                            (int)strlen(name) - 2, name + 1);
        break;
    default:
        break;
    }
    return csn_fail_errno(err, errnum, "%s %s", verb, name);
}

/* CSN_FILE_NOFOLLOW met a symlink: the error contains a denial. */
static csn_status fail_link(const char *verb, const char *path, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(path);
    csn_denial d = {.op = "read",
                    .target = path,
                    .rule = "nofollow",
                    .source = "flags",
                    .hint = "leave out nofollow"};

    if (strcmp(verb, "write") == 0 || strcmp(verb, "mkdir") == 0)
        d.op = "write";
    else if (strcmp(verb, "delete") == 0 || strcmp(verb, "rename") == 0)
        d.op = "delete";
    csn_status st =
        csn_fail(err, CSN_DENIED, "%s: symbolic links are not followed", shown ? shown : "''");
    return csn_error_deny(st, err, &d);
}

csn_status csn_derive_verdict(const csn_derive_job *j, const char *verb, const char *path,
                              csn_error **err)
{
    char code[16];
    int errnum = 0;

    if (j->exit_code == 0)
        return CSN_OK;
    snprintf(code, sizeof(code), "%d", j->exit_code);
    if (strcmp(code, CSN_SH_LINK) == 0)
        return fail_link(verb, path, err);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]) && errnum == 0; i++)
        if (strcmp(codes[i].code, code) == 0)
            errnum = codes[i].errnum;
    if (errnum == 0)
        errnum = errno_of_message(j->stderr_tail, j->stderr_len);
    if (errnum != 0)
        return csn_derive_fail(errnum, verb, path, err);

    csn_autofree char *shown = csn_path_printable(path);
    csn_autofree char *message = csn_path_printable(j->stderr_tail);
    if (strcmp(code, CSN_SH_SHORT) == 0)
        return csn_fail(err, CSN_IO, "%s %s: the content did not arrive whole", verb,
                        shown ? shown : "");
    return csn_fail(err, CSN_IO, "%s %s: sh ended with %s: %s", verb, shown ? shown : "", code,
                    message ? message : "");
}

csn_status csn_derive_do(csn_derive_job *j, const char *verb, const char *path, csn_error **err)
{
    csn_status st = csn_derive_run(j, err);

    if (st < 0) {
        csn_autofree char *shown = csn_path_printable(path);
        return csn_wrap(st, err, "%s %s", verb, shown ? shown : "");
    }
    return csn_derive_verdict(j, verb, path, err);
}

/* ---- paths ------------------------------------------------------------------------------ */

csn_status csn_derive_path(const char *verb, const char *path, char **ret, bool *ret_dir,
                           csn_error **err)
{
    if (!path || !path[0])
        return csn_fail(err, CSN_INVALID, "%s: the path is empty", verb);
    if (strlen(path) >= CSN_PATH_MAX)
        return csn_derive_fail(ENAMETOOLONG, verb, path, err);
    csn_autofree char *out = malloc(strlen(path) + 3);
    if (!out)
        return csn_fail(err, CSN_NOMEM, "out of memory");

    size_t len = 0;
    bool dir = true; /* until the last component is a name */
    if (path[0] != '/')
        out[len++] = '.';
    for (const char *p = path + strspn(path, "/"); *p;) {
        size_t n = strcspn(p, "/");
        if (n > COMPONENT_MAX)
            return csn_derive_fail(ENAMETOOLONG, verb, path, err);
        dir = p[n] == '/' || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.');
        if (n != 1 || p[0] != '.') {
            out[len++] = '/';
            memcpy(out + len, p, n);
            len += n;
        }
        p += n;
        p += strspn(p, "/");
    }
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    *ret = CSN_STEAL(out);
    *ret_dir = dir;
    return CSN_OK;
}

char *csn_derive_slash(char *path, bool dir)
{
    size_t len = strlen(path);

    if (dir && path[len - 1] != '/') {
        path[len] = '/'; /* csn_derive_path leaves room for it */
        path[len + 1] = '\0';
    }
    return path;
}
