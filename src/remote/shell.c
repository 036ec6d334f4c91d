/* shell.c: builds the shell wrapper around every command in a remote sandbox.
 *
 * Providers differ in what they support: working directory, environment, stdin, bytes that are
 * not UTF-8. A POSIX sh supports all of it, so each command is `/bin/sh -c WRAPPER sh ARGS...`,
 * and the wrapper ends with exec of the command.
 *
 * Invariant: the shell never parses the caller's text, which is passed as arguments. If an
 * argument is not valid UTF-8, which JSON cannot carry, all arguments are passed as octal
 * escapes for printf. Embedded stdin is always escaped. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "remote/base64_stream.h"
#include "remote/internal.h"

#define PROGRAM_MAX (1024u * 1024u)

static bool is_utf8(const char *s)
{
    return csn_utf8_valid(s, strlen(s));
}

static bool all_utf8(const char *const *v)
{
    for (size_t i = 0; v && v[i]; i++)
        if (!is_utf8(v[i]))
            return false;
    return true;
}

/* Escapes for printf %b: every byte except common ASCII becomes \0ooo. */
static int escape_octal(csn_buf *b, const void *data, size_t len)
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

/* Decodes every argument with %b. LC_ALL=C: bytes, not characters. The dot preserves trailing
 * newlines, which $() removes. */
static const char decode_args[] = "csn_l=${LC_ALL-}; csn_s=${LC_ALL+s}; LC_ALL=C; csn_n=$#\n"
                                  "while [ \"$csn_n\" -gt 0 ]; do\n"
                                  "  csn_v=$(printf '%b.' \"$1\"); shift\n"
                                  "  set -- \"$@\" \"${csn_v%.}\"; csn_n=$((csn_n - 1))\n"
                                  "done\n"
                                  "LC_ALL=$csn_l; [ -n \"$csn_s\" ] || unset LC_ALL\n";
static const char enter_cwd[] = "cd \"$1\" || exit 125\nshift; unset OLDPWD\n";

/* Opens the input file as stdin and unlinks it; small input is written to it first. */
static int add_input(csn_remote_wrapper *w, const csn_buf *small)
{
    int e = 0;

    if (small) {
        e = csn_buf_printf(&w->program, "csn_u=$(umask); umask 077\nprintf '%%b' '");
        e = e ? e : escape_octal(&w->program, small->data, small->len);
        e = e ? e
              : csn_buf_printf(&w->program, "' >%s || exit 125\numask \"$csn_u\"\n", w->input);
    }
    return e ? e
             : csn_buf_printf(&w->program, "exec <%s || exit 125\nrm -f %s\n", w->input,
                              w->input);
}

static int add_program(csn_remote_wrapper *w, const csn_exec_req *req, bool octal,
                       const csn_buf *small)
{
    /* The base64 script has this text in its environment. csn_remote_kill searches environments
     * for the id, so the text contains a variable instead of the id. */
    int e = csn_buf_printf(&w->program, CSN_REMOTE_ID_VAR "=%s; export " CSN_REMOTE_ID_VAR "\n",
                           w->base64 ? "$csn_m" : w->exec_id);

    if (e == 0 && octal)
        e = csn_buf_puts(&w->program, decode_args);
    if (e == 0 && req->cwd)
        e = csn_buf_puts(&w->program, enter_cwd);
    if (e == 0 && w->input[0])
        e = add_input(w, small);
    if (e == 0 && (req->flags & CSN_EXEC_MERGE))
        e = csn_buf_puts(&w->program, "exec 2>&1\n");
    return e ? e : csn_buf_puts(&w->program, "exec \"$@\"\n");
}

static int push_arg(csn_remote_wrapper *w, const char *arg, bool octal)
{
    csn_autobuf b;

    csn_buf_init(&b, 8 * (size_t)CSN_ARGV_BYTES_MAX);
    if (!octal)
        return csn_strv_push(&w->argv, arg);
    int e = escape_octal(&b, arg, strlen(arg));
    return e ? e : csn_strv_push(&w->argv, b.data ? b.data : "");
}

/* Sets only variables that are valid UTF-8, as JSON requires; set_argv passes the others to
 * env(1). */
static int set_env(csn_remote_wrapper *w, const csn_exec_req *req)
{
    size_t n = 0;

    w->env = calloc(csn_strv_len(req->env) + 1, sizeof(*w->env));
    if (!w->env)
        return ENOMEM;
    for (size_t i = 0; req->env && req->env[i]; i++)
        if (is_utf8(req->env[i]))
            w->env[n++] = req->env[i];
    return 0;
}

static int set_argv(csn_remote_wrapper *w, const csn_exec_req *req, bool octal)
{
    int e = csn_strv_push(&w->argv, "/bin/sh");
    bool use_env1 = !all_utf8(req->env);

    e = e ? e : csn_strv_push(&w->argv, "-c");
    e = e ? e : csn_strv_push(&w->argv, w->base64 ? csn_base64_stream_script : w->program.data);
    e = e ? e : csn_strv_push(&w->argv, "sh");
    if (e == 0 && w->base64) {
        e = csn_strv_push(&w->argv, w->exec_id);
        e = e ? e : csn_strv_push(&w->argv, w->program.data);
    }
    if (e == 0 && req->cwd)
        e = push_arg(w, req->cwd, octal);
    if (e == 0 && use_env1)
        e = push_arg(w, "env", octal);
    for (size_t i = 0; use_env1 && req->env[i] && e == 0; i++)
        if (!is_utf8(req->env[i]))
            e = push_arg(w, req->env[i], octal);
    for (size_t i = 0; req->argv[i] && e == 0; i++)
        e = push_arg(w, req->argv[i], octal);
    return e;
}

csn_status csn_remote_wrapper_build(csn_remote_wrapper *w, const csn_exec_req *req,
                                    const csn_buf *small_input, csn_error **err)
{
    bool octal =
        !all_utf8(req->argv) || !all_utf8(req->env) || (req->cwd && !is_utf8(req->cwd));

    csn_buf_init(&w->program, PROGRAM_MAX);
    int e = w->exec_id[0] ? 0 : csn_remote_random_id(w->exec_id);
    if (e == 0 && small_input)
        snprintf(w->input, sizeof(w->input), "/tmp/.caisson-%s", w->exec_id);
    e = e ? e : add_program(w, req, octal, small_input);
    e = e ? e : set_env(w, req);
    e = e ? e : set_argv(w, req, octal);
    return e == 0 ? CSN_OK : csn_fail_errno(err, e, "prepare the command");
}

void csn_remote_wrapper_release(csn_remote_wrapper *w)
{
    csn_buf_release(&w->program);
    csn_strv_free(w->argv);
    free(w->env);
}
