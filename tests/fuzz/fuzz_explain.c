/* fuzz_explain.c: the input is what a failed command printed.
 *
 * First byte: how it ended and what the file systems say to every path (by its letters, so that
 * the same path has the same facts); the rest is the text, with a seam in it at times. Nothing
 * a command prints may crash the host, ask without end, or put into a denial what is not in the
 * text: a target stands there byte by byte, and a hint is an option or a refusal. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "policy/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct world {
    unsigned seed, asked;
} world;

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void look(void *ctx, const char *path, csn_explain_fact *ret)
{
    world *w = ctx;
    unsigned h = w->seed * 2654435761u;

    must(path[0] == '/' && !strstr(path, "//"));
    must(++w->asked <= CSN_EXPLAIN_PROBES_MAX);
    for (const char *p = path; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    h >>= 8;
    *ret = (csn_explain_fact){.inside = h & 1,
                              .inside_readable = h & 2,
                              .inside_writable = h & 4,
                              .hidden = !(h & 1) && (h & 0x10000),
                              .host = h & 8,
                              .host_readable = h & 16,
                              .host_writable = h & 32,
                              .dir = h & 64,
                              .socket = (h & 0x780) == 0,
                              .link = h & 0x800,
                              .resolved = (h & 0x3000) == 0 ? "/home/me/real/file" : NULL,
                              .needs = (h & 0xc000) == 0 ? "/opt/tool/bin/run" : NULL,
                              .source = h & 1 ? "config.read[0]" : NULL};
}

static bool refuses(void *ctx, const char *syscall)
{
    return ((world *)ctx)->seed % 2 == 0 && syscall[0] != '\0';
}

static void check_text(const char *s)
{
    if (!s)
        return;
    must(csn_utf8_valid(s, strlen(s)));
    for (; *s; s++)
        must((unsigned char)*s >= ' ' && *s != 0x7f);
}

/* Whole components: a file may be called "docker.sock. Is". */
static bool names(const char *hint, const char *part)
{
    size_t n = strlen(part);

    for (const char *at = strstr(hint, part); at; at = strstr(at + 1, part))
        if (!at[n] || at[n] == '/')
            return true;
    return false;
}

static void check_grant(const char *hint)
{
    must(!names(hint, "/.ssh") && !names(hint, "/docker.sock") && !names(hint, "/.netrc"));
    must(strcmp(hint, "--read /") != 0 && strcmp(hint, "--write /") != 0);
    must(strcmp(hint, "--read /home/me") != 0 && strcmp(hint, "--write /home/me") != 0);
}

static void check(const csn_denial *d)
{
    static const char refusal[] = "no grant is offered: ";

    must(d->op && d->rule);
    check_text(d->op);
    check_text(d->target);
    check_text(d->resolved);
    check_text(d->rule);
    check_text(d->source);
    check_text(d->hint);
    if (d->hint)
        must(strncmp(d->hint, "--", 2) == 0 ||
             strncmp(d->hint, refusal, sizeof(refusal) - 1) == 0);
    if (d->hint && d->hint[0] == '-')
        check_grant(d->hint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world w = {.seed = size > 0 ? data[0] : 0};
    csn_explain_out out = {0};
    csn_error *err = NULL;

    if (size < 2)
        return 0;
    csn_explain_in in = {
        .err = {.data = (const char *)data + 1,
                .len = size - 1,
                .cut = w.seed % 5 == 0,
                .head = size / 2},
        .exit_code = w.seed % 3 == 0 ? 127 : 1,
        .signal = w.seed % 7 == 0 ? SIGSYS : 0,
        .argv0 = "tool",
        .cwd = "/work",
        .home = "/home/me",
        .host_home = "/home/me",
        .host_path = "/home/me/.local/bin:/opt/tool/bin:/usr/bin",
        .path = "/home/me/.local/bin:/usr/bin",
        .libs = "/home/me/lib",
        .probe = look,
        .refuses = refuses,
        .ctx = &w,
        .net_rule = w.seed % 4 == 0 ? NULL : "network none",
        .disk_max = 1000,
        .memory_max = UINT64_MAX,
        .pids_max = 64,
    };
    must(csn_explain(&in, &out, &err) == CSN_OK && !err);
    must(out.count <= CSN_EXPLAIN_DENIALS_MAX);
    for (size_t i = 0; i < out.count; i++)
        check(&out.items[i]);
    csn_explain_release(&out);
    return 0;
}
