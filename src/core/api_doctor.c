/* api_doctor.c: csn_doctor: checks which layers of a jail work on this host.
 *
 * The backend checks the host first. Then a script in a real sandbox (the canary) prints what
 * is visible from inside, and its results replace those of the host check. If no sandbox can be
 * opened, the error becomes one of the results, and a jail without namespaces is tried.
 * Invariants: the output of the script is parsed as untrusted text; the sandbox is destroyed
 * before csn_doctor returns. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "core/internal.h"
#include "core/result.h"
#include "os/statedir.h"

#define CHECKS_MAX   32u
#define CANARY_MS    10000u
#define CANARY_BYTES 65536u
#define FALLBACK_DIR "/tmp" /* workspace for a caller in /, which cannot be shared */

/* Starts few programs: each one takes time. */
static const char canary[] =
    "ls -l /proc/self/ns; cat /proc/self/status /proc/net/dev; set -- /proc/[0-9]*; "
    "echo \"processes: $#\"; (: >/usr/.caisson-canary) 2>/dev/null && echo 'wrote: yes'; "
    "[ -e \"$CANARY_HOST\" ] && echo 'host: seen'; echo 'canary: done'";

typedef struct checkup {
    csn_arena *a;
    csn_check *items;
    size_t count;
    bool nomem;
} checkup;

static void add(void *ctx, const csn_check *check)
{
    checkup *c = ctx;

    if (c->count == CHECKS_MAX)
        return;
    csn_check *to = &c->items[c->count++];
    *to =
        (csn_check){csn_arena_strdup(c->a, check->name), csn_arena_strdup(c->a, check->status),
                    csn_arena_strdup(c->a, check->detail), csn_arena_strdup(c->a, check->fix)};
    c->nomem = c->nomem || !to->name || !to->status || (check->detail && !to->detail) ||
               (check->fix && !to->fix);
}

/* Replaces the result of the host check, or adds one. */
static void set_result(checkup *c, const char *name, bool good, const char *detail)
{
    csn_check now = {name, good ? "ok" : "missing", detail, NULL};

    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].name, name) == 0) {
            c->items[i].status = now.status;
            c->items[i].detail = detail;
            c->items[i].fix = good ? NULL : c->items[i].fix;
            return;
        }
    add(c, &now);
}

/* ---- output of the canary ---- */

/* The text after `key` at the start of a line, or "". */
static const char *after(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, key, len) == 0)
            return p + len + strspn(p + len, " \t");
        if (!*p)
            break;
    }
    return "";
}

/* Is the sandbox in another namespace of this kind than this process? */
static bool has_own_namespace(const char *text, const char *kind)
{
    char link[64], path[64], ours[64], line[80];

    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    ssize_t n = readlink(path, ours, sizeof(ours) - 1);
    if (n <= 0)
        return false;
    ours[n] = '\0';
    snprintf(link, sizeof(link), "%s -> %s:[", kind, kind);
    snprintf(line, sizeof(line), "%s -> %s", kind, ours);
    return strstr(text, link) && !strstr(text, line);
}

static bool zero(const char *digits)
{
    size_t n = strspn(digits, "0");

    return n > 0 && (digits[n] == '\n' || digits[n] == '\0');
}

/* Interfaces are the lines with a colon after the two heading lines of /proc/net/dev. */
static bool only_loopback(const char *text)
{
    const char *p = strstr(text, "Inter-|");
    size_t others = 0, lo = 0;

    if (!p || !(p = strchr(p, '\n')))
        return false;
    while ((p = strchr(p + 1, '\n')) != NULL) {
        const char *name = p + 1 + strspn(p + 1, " ");
        size_t len = strcspn(name, ":\n");
        if (name[len] != ':' || strncmp(name, "processes", len) == 0)
            break;
        bool is_lo = len == 2 && strncmp(name, "lo", 2) == 0;
        lo += is_lo;
        others += !is_lo;
    }
    return lo == 1 && others == 0;
}

static void evaluate(checkup *c, const char *text)
{
    char own[32], uid[32];

    snprintf(uid, sizeof(uid), "%s", after(text, "Uid:"));
    snprintf(own, sizeof(own), "0\t");
    set_result(c, "user", has_own_namespace(text, "user") && strncmp(uid, own, 2) != 0,
               "seen from inside: a namespace of its own, and not root in it");
    set_result(
        c, "mount",
        has_own_namespace(text, "mnt") && !*after(text, "wrote:") && !*after(text, "host:"),
        "seen from inside: a root of its own, the system read-only, the caller's files not "
        "there");
    set_result(c, "pid",
               has_own_namespace(text, "pid") &&
                   strtol(after(text, "processes:"), NULL, 10) < 10,
               "seen from inside: only the sandbox's own processes");
    set_result(c, "net", has_own_namespace(text, "net") && only_loopback(text),
               "seen from inside: loopback and no other interface");
    set_result(c, "ipc",
               has_own_namespace(text, "ipc") && has_own_namespace(text, "uts") &&
                   has_own_namespace(text, "cgroup"),
               "seen from inside: ipc, host name and control groups of its own");
    set_result(c, "capabilities",
               zero(after(text, "CapEff:")) && zero(after(text, "CapPrm:")) &&
                   zero(after(text, "CapBnd:")) && *after(text, "NoNewPrivs:") == '1',
               "seen from inside: none, and no_new_privs");
    set_result(c, "seccomp", *after(text, "Seccomp:") == '2', "seen from inside: a filter");
}

/* ---- the sandboxes ---- */

/* "CANARY_HOST=DIR", malloc'd. DIR is a host directory that must be invisible inside; it is
 * empty if the workspace contains that directory. */
static char *host_mark(const char *workspace)
{
    csn_autofree char *state = NULL, *text = NULL;
    char real[PATH_MAX];
    csn_autofd int fd = csn_statedir_find(CSN_DIR_STATE, NULL, &state);

    if (fd < 0 || !realpath(workspace, real))
        return strdup("CANARY_HOST=");
    size_t len = strlen(real);
    bool within = strncmp(state, real, len) == 0 && (state[len] == '/' || state[len] == '\0');
    if (asprintf(&text, "CANARY_HOST=%s", within ? "" : state) < 0)
        return NULL;
    return CSN_STEAL(text);
}

static csn_status run_canary(checkup *c, csn_sandbox *sb, const char *workspace,
                             csn_error **err)
{
    csn_autofree char *mark = host_mark(workspace);
    const char *env[] = {mark, NULL};
    const char *argv[] = {"/bin/sh", "-c", canary, NULL};
    const csn_exec_opts opts = {
        .size = sizeof(opts), .env = env, .timeout_ms = CANARY_MS, .output_max = CANARY_BYTES};
    csn_exec_result *r = NULL;

    csn_status st = csn_exec(sb, argv, &opts, &r, err);
    if (st < 0)
        return st;
    bool done = r->out.data && strstr(r->out.data, "canary: done\n");
    if (done)
        evaluate(c, r->out.data);
    set_result(c, "canary", done,
               done ? "a sandbox was opened, inspected from inside and removed"
                    : "a sandbox was opened, but the script in it did not finish");
    csn_exec_result_free(r);
    return CSN_OK;
}

static csn_status open_jail(const char *workspace, uint32_t flags, csn_sandbox **ret,
                            csn_error **err)
{
    csn_autofree char *text = NULL;

    if (asprintf(&text, "%s:ro", workspace) < 0) {
        text = NULL;
        return csn_fail(err, CSN_NOMEM, "doctor");
    }
    const csn_config config = {
        .size = sizeof(config), .backend = "jail", .workspace = text, .flags = flags};
    return csn_open(&config, ret, err);
}

/* Adds what the layer "rung" of the sandbox says. */
static void add_rung(checkup *c, csn_sandbox *sb)
{
    csn_check check = {"weaker rung", "info", "opens with --allow-weaker", NULL};
    csn_info_result *r = NULL;
    char text[1024];

    if (csn_info(sb, &r, NULL) < 0)
        return add(c, &check);
    for (size_t i = 0; i < r->layer_count; i++)
        if (strcmp(r->layers[i].name, "rung") == 0) {
            snprintf(text, sizeof(text), "opens with --allow-weaker: %s", r->layers[i].detail);
            check.detail = text;
        }
    add(c, &check);
    csn_info_free(r);
}

/* Returns "weaker" if a sandbox with less isolation opens, else "none". */
static const char *try_weaker(checkup *c, const char *workspace)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    csn_status st = open_jail(workspace, CSN_OPEN_ALLOW_WEAKER, &sb, &err);
    if (st == CSN_OK)
        add_rung(c, sb);
    else
        add(c, &(csn_check){"weaker rung", "info", csn_error_message(err), NULL});
    csn_error_free(err);
    csn_close(sb);
    return st == CSN_OK ? "weaker" : "none";
}

static const char *try_jail(checkup *c, const char *workspace)
{
    csn_sandbox *sb = NULL;
    csn_error *err = NULL;

    csn_status st = open_jail(workspace, 0, &sb, &err);
    if (st == CSN_OK)
        st = run_canary(c, sb, workspace, &err);
    csn_close(sb);
    if (st == CSN_OK)
        return "full";
    const char *hint = csn_error_hint(err);
    const char *self = hint ? strstr(hint, "caisson doctor") : NULL; /* that is running now */
    char fix[512];
    size_t len = self ? (size_t)(self - hint) : hint ? strlen(hint) : 0;
    snprintf(fix, sizeof(fix), "%.*s", (int)(self && len > 2 ? len - 2 : len),
             hint ? hint : "");
    add(c, &(csn_check){"canary", "missing", csn_error_message(err), *fix ? fix : NULL});
    csn_error_free(err);
    return try_weaker(c, workspace);
}

static csn_status examine(csn_doctor_result *r, const char *workspace, csn_error **err)
{
    checkup c = {.a = csn_result_arena(r)};
    const csn_backend_ops *ops = NULL;
    void *data = NULL;
    uint64_t start = csn_now_ns();

    c.items = csn_arena_array(c.a, CHECKS_MAX, sizeof(*c.items));
    csn_status st = c.items ? csn_registry_find("jail", &ops, &data, err)
                            : csn_fail(err, CSN_NOMEM, "doctor");
    if (st == CSN_OK)
        st = ops->diagnose(workspace, add, &c, err);
    if (st < 0)
        return st;
    r->rung = try_jail(&c, workspace);
    r->items = c.items;
    r->count = c.count;
    r->ok = 1;
    for (size_t i = 0; i < c.count && !c.nomem; i++)
        r->ok = r->ok && strcmp(c.items[i].status, "missing") != 0;
    r->duration_ms = (csn_now_ns() - start) / 1000000u;
    return c.nomem ? csn_fail(err, CSN_NOMEM, "doctor") : CSN_OK;
}

csn_status csn_doctor(const char *workspace, csn_doctor_result **ret, csn_error **err)
{
    char here[PATH_MAX];

    if (!ret)
        return csn_fail(err, CSN_INVALID, "doctor: no place for the result given");
    if (!workspace)
        workspace = getcwd(here, sizeof(here)) && strcmp(here, "/") != 0 ? here : FALLBACK_DIR;
    csn_doctor_result *r = csn_result_new(sizeof(*r));
    csn_status st = r ? examine(r, workspace, err) : csn_fail(err, CSN_NOMEM, "doctor");
    if (st < 0) {
        csn_result_free(r);
        return csn_error_note(st, err, "doctor", workspace);
    }
    *ret = r;
    return CSN_OK;
}

void csn_doctor_result_free(csn_doctor_result *r)
{
    csn_result_free(r);
}
