/* fixture.c: the checks and helpers every family uses.
 *
 * Called by tests, on the test's own thread: a failed check leaves the test with cmocka's long
 * jump, which other threads must not do (families with threads collect what happened and check
 * it afterwards). A check that fails prints the library's error whole, because the message is
 * part of the interface and because nobody wants to run it twice. */
#include "conformance/conformance.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

__thread csn_error *csn_conf_err;

void csn_conf_reset(void)
{
    csn_error_free(csn_conf_err);
    csn_conf_err = NULL;
}

static const char *or_none(const char *s)
{
    return s ? s : "(none)";
}

static void tell_error(const char *call, csn_status st)
{
    print_message("%s\n  gave %s", call, csn_status_name(st));
    if (csn_conf_err)
        print_message(": %s\n  op %s, path %s, hint %s, errno %d",
                      or_none(csn_error_message(csn_conf_err)),
                      or_none(csn_error_op(csn_conf_err)),
                      or_none(csn_error_path(csn_conf_err)),
                      or_none(csn_error_hint(csn_conf_err)), csn_error_errno(csn_conf_err));
    print_message("\n");
}

void csn_conf_ok(csn_status st, const char *call, const char *file, int line)
{
    if (st == CSN_OK && !csn_conf_err)
        return;
    tell_error(call, st);
    _fail(file, line);
}

void csn_conf_fails(csn_status want, csn_status st, const char *call, const char *file,
                    int line)
{
    /* The error object exists, has the same code and a message. */
    if (st == want && csn_error_code(csn_conf_err) == st && csn_error_message(csn_conf_err) &&
        *csn_error_message(csn_conf_err))
        return;
    tell_error(call, st);
    print_message("  wanted %s\n", csn_status_name(want));
    _fail(file, line);
}

void csn_conf_says(const char *what, const char *have, const char *text, const char *file,
                   int line)
{
    if (have && strstr(have, text))
        return;
    print_message("%s: \"%.600s\"\n  lacks: \"%s\"\n", what, or_none(have), text);
    _fail(file, line);
}

void csn_conf_says_not(const char *have, const char *text, const char *file, int line)
{
    if (!have || !strstr(have, text))
        return;
    print_message("\"%.600s\"\n  must not hold: \"%s\"\n", have, text);
    _fail(file, line);
}

void csn_conf_same(const void *a, size_t alen, const void *b, size_t blen, const char *file,
                   int line)
{
    const unsigned char *x = a, *y = b;
    size_t i = 0;

    while (i < alen && i < blen && x[i] == y[i])
        i++;
    if (alen == blen && i == alen)
        return;
    print_message("bytes differ at %zu: %zu bytes \"%.200s\"\n  wanted %zu bytes \"%.200s\"\n",
                  i, alen, alen ? (const char *)a : "", blen, blen ? (const char *)b : "");
    _fail(file, line);
}

void csn_conf_skip(const char *why)
{
    print_message("SKIP %s\n", why);
    fflush(NULL);
    _exit(CONF_EXIT_SKIP); /* the process is this test's own */
}

/* ---- sandboxes ---- */

char *csn_fx_keep(csn_fx *f, char *s)
{
    assert_non_null(s);
    assert_true(f->kept_count < sizeof(f->kept) / sizeof(f->kept[0]));
    f->kept[f->kept_count++] = s;
    return s;
}

char *csn_fx_host(csn_fx *f, const char *rel)
{
    return csn_fx_keep(f, csn_test_join(f->ws, rel));
}

csn_status csn_fx_try_open(csn_fx *f, csn_config cfg, csn_sandbox **ret, csn_error **err)
{
    if (!cfg.size)
        cfg.size = sizeof(cfg);
    if (!cfg.backend)
        cfg.backend = f->be->name;
    if (!cfg.workspace && (f->be->traits & CONF_HOSTDIR))
        cfg.workspace = f->ws;
    return csn_open(&cfg, ret, err);
}

void csn_fx_open(csn_fx *f, csn_config cfg)
{
    csn_fx_close(f);
    ok(csn_fx_try_open(f, cfg, &f->sb, E));
    assert_non_null(f->sb);
}

void csn_fx_close(csn_fx *f)
{
    csn_close(f->sb);
    f->sb = NULL;
}

bool csn_fx_can(csn_sandbox *sb, const char *capability)
{
    AUTO(csn_info_result, info);

    ok(csn_info(sb, &info, E));
    for (size_t i = 0; info->capabilities && info->capabilities[i]; i++) {
        if (strcmp(info->capabilities[i], capability) == 0)
            return true;
    }
    return false;
}

/* ---- commands ---- */

char *csn_fx_out(csn_fx *f, const char *command)
{
    AUTO(csn_exec_result, r);

    ok(csn_sh(f->sb, command, NULL, &r, E));
    if (r->exit_code != 0)
        print_message("%s\n  exit %d, stderr: %s\n", command, r->exit_code, r->err.data);
    assert_int_equal(r->exit_code, 0);
    return csn_fx_keep(f, strndup(r->out.data, r->out.len));
}

void csn_fx_run(csn_fx *f, const char *command)
{
    (void)csn_fx_out(f, command);
}

/* ---- files ---- */

void csn_fx_putn(csn_fx *f, const char *path, const void *data, size_t len)
{
    AUTO(csn_write_result, w);

    ok(csn_write(f->sb, path, data, len, NULL, &w, E));
}

void csn_fx_put(csn_fx *f, const char *path, const char *text)
{
    csn_fx_putn(f, path, text, strlen(text));
}

typedef struct gather {
    char *data;
    size_t len;
} gather;

static int gather_write(void *ctx, const void *data, size_t len)
{
    gather *g = ctx;
    char *more = realloc(g->data, g->len + len + 1);

    if (!more)
        return 1;
    g->data = more;
    memcpy(g->data + g->len, data, len);
    g->len += len;
    g->data[g->len] = '\0';
    return 0;
}

char *csn_fx_get(csn_fx *f, const char *path, size_t *ret_len)
{
    gather g = {0};

    ok(csn_read_bytes(f->sb, path, NULL, gather_write, &g, E));
    if (ret_len)
        *ret_len = g.len;
    return csn_fx_keep(f, g.data ? g.data : strdup(""));
}

void csn_fx_holds(csn_fx *f, const char *path, const char *text)
{
    size_t len = 0;
    char *have = csn_fx_get(f, path, &len);

    same_bytes(have, len, text, strlen(text));
}

bool csn_fx_exists(csn_fx *f, const char *path)
{
    AUTO(csn_file_list, st);

    csn_conf_reset();
    csn_status s = csn_stat(f->sb, path, CSN_FILE_NOFOLLOW, &st, E);
    if (s != CSN_OK)
        csn_conf_fails(CSN_NOT_FOUND, s, "csn_stat", __FILE__, __LINE__);
    return s == CSN_OK;
}

/* What a command has written so far; NULL: nothing. Where commands are steps the sandbox does
 * not tell before the end, but the host's directory, in which the double runs them, does. */
static char *so_far(csn_fx *f, const char *path)
{
    gather g = {0};

    csn_conf_reset();
    if (!csn_fx_can(f->sb, CAP_LIVE))
        return csn_test_exists(csn_fx_host(f, path)) ? csn_test_get(csn_fx_host(f, path), NULL)
                                                     : NULL;
    (void)csn_read_bytes(f->sb, path, NULL, gather_write, &g, E);
    return g.data;
}

csn_exec_result *csn_fx_timed_out(csn_fx *f, const char *command, const char *session,
                                  uint64_t timeout_ms)
{
    for (;; timeout_ms *= 2) {
        csn_exec_result *r = NULL;
        ok(csn_sh(f->sb, command, EXEC(.session = session, .timeout_ms = timeout_ms), &r, E));
        assert_int_equal(r->timed_out, 1);
        if (r->out.len > 0 || timeout_ms > 30000)
            return r;
        csn_exec_result_free(r);
    }
}

pid_t csn_fx_pid(csn_fx *f, const char *path)
{
    for (int waited = 0; waited < 60000; waited += 20) {
        char *text = so_far(f, path);
        long pid = text && strchr(text, '\n') ? strtol(text, NULL, 10) : 0;
        free(text);
        /* one that has ended already is nobody: -1, which is not alive */
        if (pid > 0)
            return f->be->traits & CONF_PIDNS ? csn_test_pid_of((pid_t)pid, f->ws) : (pid_t)pid;
        csn_test_nap(20);
    }
    print_message("no process wrote its id to %s\n", path);
    fail();
    return 0;
}

char *csn_fx_fill(csn_fx *f, size_t len)
{
    char *s = malloc(len + 1);

    assert_non_null(s);
    for (size_t i = 0; i < len; i++)
        s[i] = (char)('a' + (i * 7 + i / 251) % 26);
    s[len] = '\0';
    return csn_fx_keep(f, s);
}

char *csn_fx_home(csn_fx *f)
{
    AUTO(csn_info_result, info);

    ok(csn_info(f->sb, &info, E));
    assert_non_null(info->home);
    return csn_fx_keep(f, strdup(info->home));
}

void csn_fx_canary(csn_fx *f)
{
    char *path = csn_test_join(f->outside, "canary");
    char *text = csn_test_get(path, NULL);

    assert_non_null(text);
    assert_string_equal(text, "outside\n");
    assert_int_equal(csn_test_mode(path) & 07777, 0640);
    free(text);
    free(path);
    assert_int_equal(csn_fx_strays(f, f->outside), 1);
}

size_t csn_fx_strays(csn_fx *f, const char *dir)
{
    DIR *d = opendir(dir ? dir : f->ws);
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            n++;
    }
    closedir(d);
    return n;
}
