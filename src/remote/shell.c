/* shell.c: the wrapper around every command that runs in a remote sandbox.
 *
 * Providers differ in what they can say: a working directory, an environment, stdin, bytes that
 * are not UTF-8. A POSIX sh says it all, so each command is `/bin/sh -c WRAPPER sh ARGS...`,
 * and the wrapper's last act is to become the command. Nothing of the caller's is part of the
 * program text: it travels as arguments, as it is or, where it is not valid UTF-8 (JSON could
 * not carry it), with its bytes spelled in octal.
 *
 * The mark in the environment is how the whole tree is found again when it must end, whatever
 * process groups its members went to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "remote/remote.h"

#define PROGRAM_MAX (1024u * 1024u)

int csn_remote_mark(char mark[32])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    unsigned char raw[20];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return errno;
    for (size_t i = 0; i < sizeof(raw); i++)
        mark[i] = digits[raw[i] % 36];
    mark[sizeof(raw)] = '\0';
    return 0;
}

static bool plain(const char *s)
{
    return csn_utf8_valid(s, strlen(s));
}

static bool all_plain(const char *const *v)
{
    for (size_t i = 0; v && v[i]; i++)
        if (!plain(v[i]))
            return false;
    return true;
}

/* As printf's %b reads it: what is not a plain ASCII letter or digit becomes \0ooo. */
static int spell(csn_buf *b, const void *data, size_t len)
{
    const unsigned char *p = data;
    int e = 0;

    for (size_t i = 0; i < len && e == 0; i++) {
        bool literal = (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= 'A' && p[i] <= 'Z') ||
                       (p[i] >= '0' && p[i] <= '9') || strchr(" ./_-=:,", p[i] ? p[i] : '\\');
        e = literal ? csn_buf_putc(b, (char)p[i]) : csn_buf_printf(b, "\\0%03o", p[i]);
    }
    return e;
}

/* Sets every argument to what %b makes of it. Bytes, not characters, whatever the locale is;
 * the dot keeps newlines at the end. */
static const char decode[] = "csn_l=${LC_ALL-}; csn_s=${LC_ALL+s}; LC_ALL=C; csn_n=$#\n"
                             "while [ \"$csn_n\" -gt 0 ]; do\n"
                             "  csn_v=$(printf '%b.' \"$1\"); shift\n"
                             "  set -- \"$@\" \"${csn_v%.}\"; csn_n=$((csn_n - 1))\n"
                             "done\n"
                             "LC_ALL=$csn_l; [ -n \"$csn_s\" ] || unset LC_ALL\n";
/* $1 is the directory. */
static const char enter[] = "cd \"$1\" || exit 125\nshift; unset OLDPWD\n";

/* Takes the file as stdin and removes its name. */
static int put_input(csn_remote_shell *s, const csn_buf *small)
{
    int e = 0;

    if (small) {
        e = csn_buf_printf(&s->program, "csn_u=$(umask); umask 077\nprintf '%%b' '");
        e = e ? e : spell(&s->program, small->data, small->len);
        e = e ? e
              : csn_buf_printf(&s->program, "' >%s || exit 125\numask \"$csn_u\"\n", s->input);
    }
    return e ? e
             : csn_buf_printf(&s->program, "exec <%s || exit 125\nrm -f %s\n", s->input,
                              s->input);
}

static int put_program(csn_remote_shell *s, const csn_exec_req *req, bool spelled,
                       const csn_buf *small)
{
    /* The coder has this text in its environment, where the mark must not be found. */
    int e = csn_buf_printf(&s->program, CSN_REMOTE_MARK "=%s; export " CSN_REMOTE_MARK "\n",
                           s->coded ? "$csn_m" : s->mark);

    if (e == 0 && spelled)
        e = csn_buf_puts(&s->program, decode);
    if (e == 0 && req->cwd)
        e = csn_buf_puts(&s->program, enter);
    if (e == 0 && s->input[0])
        e = put_input(s, small);
    if (e == 0 && (req->flags & CSN_EXEC_MERGE))
        e = csn_buf_puts(&s->program, "exec 2>&1\n");
    return e ? e : csn_buf_puts(&s->program, "exec \"$@\"\n");
}

static int push_arg(csn_remote_shell *s, const char *arg, bool spelled)
{
    csn_autobuf b;

    csn_buf_init(&b, 8 * (size_t)CSN_ARGV_BYTES_MAX);
    if (!spelled)
        return csn_strv_push(&s->argv, arg);
    int e = spell(&b, arg, strlen(arg));
    return e ? e : csn_strv_push(&s->argv, b.data ? b.data : "");
}

/* Variables whose value JSON cannot carry go through env(1), spelled like the arguments. */
static int put_env(csn_remote_shell *s, const csn_exec_req *req)
{
    size_t n = 0;

    s->env = calloc(csn_strv_len(req->env) + 1, sizeof(*s->env));
    if (!s->env)
        return ENOMEM;
    for (size_t i = 0; req->env && req->env[i]; i++)
        if (plain(req->env[i]))
            s->env[n++] = req->env[i];
    return 0;
}

static int put_args(csn_remote_shell *s, const csn_exec_req *req, bool spelled)
{
    int e = csn_strv_push(&s->argv, "/bin/sh");
    bool by_env = !all_plain(req->env);

    e = e ? e : csn_strv_push(&s->argv, "-c");
    e = e ? e : csn_strv_push(&s->argv, s->coded ? csn_remote_coder : s->program.data);
    e = e ? e : csn_strv_push(&s->argv, "sh");
    if (e == 0 && s->coded) {
        e = csn_strv_push(&s->argv, s->mark);
        e = e ? e : csn_strv_push(&s->argv, s->program.data);
    }
    if (e == 0 && req->cwd)
        e = push_arg(s, req->cwd, spelled);
    if (e == 0 && by_env)
        e = push_arg(s, "env", spelled);
    for (size_t i = 0; by_env && req->env[i] && e == 0; i++)
        if (!plain(req->env[i]))
            e = push_arg(s, req->env[i], spelled);
    for (size_t i = 0; req->argv[i] && e == 0; i++)
        e = push_arg(s, req->argv[i], spelled);
    return e;
}

csn_status csn_remote_wrap(csn_remote_shell *s, const csn_exec_req *req,
                           const csn_buf *small_input, csn_error **err)
{
    bool spelled =
        !all_plain(req->argv) || !all_plain(req->env) || (req->cwd && !plain(req->cwd));

    csn_buf_init(&s->program, PROGRAM_MAX);
    int e = s->mark[0] ? 0 : csn_remote_mark(s->mark);
    if (e == 0 && small_input)
        snprintf(s->input, sizeof(s->input), "/tmp/.caisson-%s", s->mark);
    e = e ? e : put_program(s, req, spelled, small_input);
    e = e ? e : put_env(s, req);
    e = e ? e : put_args(s, req, spelled);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "prepare the command");
}

void csn_remote_shell_release(csn_remote_shell *s)
{
    csn_buf_release(&s->program);
    csn_strv_free(s->argv);
    free(s->env);
}

void csn_remote_put_env(csn_json *j, const char *const *env)
{
    csn_json_object(j);
    for (size_t i = 0; env && env[i]; i++) {
        size_t name = strcspn(env[i], "=");
        csn_autofree char *key = strndup(env[i], name);
        bool again = false;
        for (size_t k = i + 1; env[k] && !again; k++)
            again = strncmp(env[k], env[i], name + 1) == 0;
        if (key && !again)
            csn_json_kstr(j, key, env[i] + name + 1);
        j->err = key ? j->err : ENOMEM;
    }
    csn_json_object_end(j);
}
