/* conformance.h: one set of tests for every backend.
 *
 * A test is a function of a fixture: a fresh scratch directory on the host, a workspace in it
 * and a sandbox open on that workspace. Each runs in a process of its own (main.c). Tests speak
 * the public API only and never ask which backend they run on: a test names the capability it
 * needs, and on a backend that does not report that word (csn_info) the suite checks instead
 * that the call is refused with CSN_UNSUPPORTED. A new backend is one line in backends.c. */
#pragma once
/* cmocka wants these before it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "caisson/caisson.h"
#include "support/support.h"

/* ---- backends ---- */

#define CONF_BENEATH (1u << 0) /* `/` is the workspace and what leaves it is CSN_OUTSIDE */
#define CONF_TREE    (1u << 1) /* processes that left their session die with the command too */
#define CONF_HOSTDIR (1u << 2) /* config.workspace is honoured: the sandbox works in place */
#define CONF_LAYERS  (1u << 3) /* says in layers what it enforces */
#define CONF_PIDNS   (1u << 5) /* processes inside have numbers of their own */
#define CONF_OWNED   (1u << 6) /* it ends with a killed owner (info: ends_with_owner) */
#define CONF_HERE    (1u << 7) /* commands are processes of this host, with the caller's umask */
#define CONF_LIVES   (1u << 4) /* background children of a command live on until destroy */

typedef struct csn_conf_backend {
    const char *name;
    const char *isolation;
    uint32_t traits;
    int (*setup)(const char *root); /* registers it; -1 and why() when it cannot work here */
    const char *(*why)(void);
    const char *workspace; /* below root: where the agent's files are on the host */
} csn_conf_backend;

extern const csn_conf_backend csn_conf_backends[]; /* ends with a NULL name */

/* Words of csn_info_result.capabilities that tests ask for. */
#define CAP_DETACH  "detach"
#define CAP_PROCESS "background"
#define CAP_SESSION "session"
#define CAP_WATCH   "watch"
#define CAP_EXTEND  "extend"
#define CAP_SHORTEN "shorten"
#define CAP_PORT    "wait_port"
#define CAP_POLICY  "path_rules" /* read, write, deny, rules, nofollow, home */
#define CAP_JUDGE   "would_allow"
#define CAP_TERM    "terminal"
#define CAP_USAGE   "usage"
#define CAP_SIGNALS "signals"
#define CAP_LIMITS  "limits"
#define CAP_LIVE    "live"
#define CAP_SNAP    "snapshot"
#define CAP_BACK    "rollback"
#define CAP_FORK    "fork"
#define CAP_PAUSE   "pause"

/* ---- tests ---- */

typedef struct csn_fx {
    const csn_conf_backend *be;
    char *dir;     /* host scratch directory of this test */
    char *root;    /* dir/root: what the backend was set up with */
    char *ws;      /* host directory of the workspace */
    char *outside; /* a host directory the sandbox has no right to; holds `canary` */
    csn_sandbox *sb;
    char *kept[512]; /* strings to free at the end */
    size_t kept_count;
} csn_fx;

#define CONF_CLOSED (1u << 0) /* the test opens its sandboxes itself */

typedef struct csn_conf_test {
    const char *name;
    void (*fn)(csn_fx *f);
    const char *need; /* capability word; NULL: every backend */
    uint32_t traits;  /* needed traits; lacking ones are a skip that says so */
    uint32_t flags;
} csn_conf_test;

#define T(fn)                                                                                  \
    {                                                                                          \
#fn, fn, NULL, 0, 0                                                                    \
    }
#define T_NEED(fn, need)                                                                       \
    {                                                                                          \
#fn, fn, need, 0, 0                                                                    \
    }
#define T_TRAIT(fn, trait)                                                                     \
    {                                                                                          \
#fn, fn, NULL, trait, 0                                                                \
    }
#define T_CLOSED(fn)                                                                           \
    {                                                                                          \
#fn, fn, NULL, 0, CONF_CLOSED                                                          \
    }
#define T_FULL(fn, need, trait, flags)                                                         \
    {                                                                                          \
#fn, fn, need, trait, flags                                                            \
    }
#define T_END                                                                                  \
    {                                                                                          \
        NULL, NULL, NULL, 0, 0                                                                 \
    }

/* One family, one file. */
#define CSN_CONF_FAMILIES(X)                                                                   \
    X(open_ids)                                                                                \
    X(lifecycle)                                                                               \
    X(exec_basic)                                                                              \
    X(exec_output)                                                                             \
    X(exec_time)                                                                               \
    X(exec_env_stdin)                                                                          \
    X(process)                                                                                 \
    X(session)                                                                                 \
    X(read)                                                                                    \
    X(write)                                                                                   \
    X(edit)                                                                                    \
    X(files)                                                                                   \
    X(glob)                                                                                    \
    X(grep)                                                                                    \
    X(watch)                                                                                   \
    X(transfer)                                                                                \
    X(policy)                                                                                  \
    X(audit)                                                                                   \
    X(errors)                                                                                  \
    X(paths)                                                                                   \
    X(threads)                                                                                 \
    X(snapshot)

#define CONF_X(family) extern const csn_conf_test csn_conf_##family[];
CSN_CONF_FAMILIES(CONF_X)
#undef CONF_X

/* ---- checks ---- */

/* The error of the last ok() or fails(), one per thread. */
extern __thread csn_error *csn_conf_err;
#define E (&csn_conf_err)

/* The call must succeed; a failure prints the error. */
#define ok(...) csn_conf_ok((csn_conf_reset(), (__VA_ARGS__)), #__VA_ARGS__, __FILE__, __LINE__)
/* The call must fail with this status; the error stays for says() and csn_error_*. */
#define fails(code, ...)                                                                       \
    csn_conf_fails(code, (csn_conf_reset(), (__VA_ARGS__)), #__VA_ARGS__, __FILE__, __LINE__)
/* The call must fail with one of two statuses (where the interface leaves it open). */
/* The last error's message holds this text; its hint holds this text. */
#define says(text)                                                                             \
    csn_conf_says("message", csn_error_message(csn_conf_err), text, __FILE__, __LINE__)
#define hints(text)                                                                            \
    csn_conf_says("hint", csn_error_hint(csn_conf_err), text, __FILE__, __LINE__)
#define has(haystack, text)          csn_conf_says("text", haystack, text, __FILE__, __LINE__)
#define hasnt(haystack, text)        csn_conf_says_not(haystack, text, __FILE__, __LINE__)
#define same_bytes(a, alen, b, blen) csn_conf_same(a, alen, b, blen, __FILE__, __LINE__)
/* Not run, and why: a failure with CSN_MUST_WORK=1. */
#define not_here(why) csn_conf_skip(why)

void csn_conf_reset(void);
void csn_conf_ok(csn_status st, const char *call, const char *file, int line);
void csn_conf_fails(csn_status want, csn_status st, const char *call, const char *file,
                    int line);
void csn_conf_says(const char *what, const char *have, const char *text, const char *file,
                   int line);
void csn_conf_says_not(const char *have, const char *text, const char *file, int line);
void csn_conf_same(const void *a, size_t alen, const void *b, size_t blen, const char *file,
                   int line);
void csn_conf_skip(const char *why) __attribute__((noreturn));
#define CONF_EXIT_SKIP 77

/* ---- ownership ---- */

CSN_DEFINE_CLEANUP(csn_exec_result, csn_exec_result_free)
CSN_DEFINE_CLEANUP(csn_read_result, csn_read_result_free)
CSN_DEFINE_CLEANUP(csn_write_result, csn_write_result_free)
CSN_DEFINE_CLEANUP(csn_edit_result, csn_edit_result_free)
CSN_DEFINE_CLEANUP(csn_file_list, csn_file_list_free)
CSN_DEFINE_CLEANUP(csn_grep_result, csn_grep_result_free)
CSN_DEFINE_CLEANUP(csn_process_list, csn_process_list_free)
CSN_DEFINE_CLEANUP(csn_process, csn_process_free)
CSN_DEFINE_CLEANUP(csn_log_chunk, csn_log_chunk_free)
CSN_DEFINE_CLEANUP(csn_watch, csn_watch_free)
CSN_DEFINE_CLEANUP(csn_snapshot_result, csn_snapshot_result_free)
CSN_DEFINE_CLEANUP(csn_verdict, csn_verdict_free)
CSN_DEFINE_CLEANUP(csn_cancel, csn_cancel_free)
CSN_DEFINE_CLEANUP(csn_config, csn_config_free)
CSN_DEFINE_CLEANUP(csn_audit_report, csn_audit_report_free)
CSN_DEFINE_CLEANUP(csn_sandbox_list, csn_sandbox_list_free)
CSN_DEFINE_CLEANUP(csn_info_result, csn_info_free)
#define csn_info_result_freep csn_info_freep
static inline void csn_sandbox_freep(csn_sandbox **sb)
{
    csn_close(*sb);
}
/* AUTO(csn_exec_result, r); : NULL now, freed at the end of its scope. */
#define AUTO(type, name) CSN_CLEANUP(type##_freep) type *name = NULL

/* ---- the fixture's helpers; all of them fail the test when they cannot do their work ---- */

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define CFG(...)  ((csn_config){.size = sizeof(csn_config), __VA_ARGS__})
#define EXEC(...) CSN_OPTS(csn_exec_opts, __VA_ARGS__)

char *csn_fx_keep(csn_fx *f, char *s);         /* freed with the fixture */
char *csn_fx_host(csn_fx *f, const char *rel); /* host path of a file of the workspace */
/* Fills in backend and workspace where cfg has none. */
csn_status csn_fx_try_open(csn_fx *f, csn_config cfg, csn_sandbox **ret, csn_error **err);
void csn_fx_open(csn_fx *f, csn_config cfg); /* f->sb */
void csn_fx_close(csn_fx *f);
bool csn_fx_can(csn_sandbox *sb, const char *capability);

void csn_fx_run(csn_fx *f, const char *command);  /* must exit 0 */
char *csn_fx_out(csn_fx *f, const char *command); /* its stdout; kept */
void csn_fx_put(csn_fx *f, const char *path, const char *text);
void csn_fx_putn(csn_fx *f, const char *path, const void *data, size_t len);
char *csn_fx_get(csn_fx *f, const char *path, size_t *ret_len); /* all bytes; kept */
void csn_fx_holds(csn_fx *f, const char *path, const char *text);
bool csn_fx_exists(csn_fx *f, const char *path);
/* A process id that a command wrote to a file; waits for it. */
/* A command that is ended by its timeout after it has printed something: the shortest of ever
 * longer ones that lets it get so far. session: or NULL. */
csn_exec_result *csn_fx_timed_out(csn_fx *f, const char *command, const char *session,
                                  uint64_t timeout_ms);
pid_t csn_fx_pid(csn_fx *f, const char *path);
char *csn_fx_fill(csn_fx *f, size_t len); /* bytes with a pattern, NUL-terminated; kept */
char *csn_fx_home(csn_fx *f);             /* info.home; kept */
void csn_fx_canary(csn_fx *f);            /* what is outside is untouched */
/* How many entries the workspace has whose name is not the agent's: temporary files. */
size_t csn_fx_strays(csn_fx *f, const char *dir);

/* refuse.c: the calls of a capability are refused with CSN_UNSUPPORTED. */
void csn_conf_refuse(csn_fx *f, const char *capability);
