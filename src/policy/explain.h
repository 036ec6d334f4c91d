/* explain.h: find out from its output why a command failed, and which option would have helped.
 *
 * Runs once after a command that failed; the command is neither traced nor slowed. The output
 * only yields candidates. A candidate becomes a denial if the sandbox withholds the path from
 * the command: it is in a part of the host that the sandbox does not show, or the command sees
 * it and may not use it. A file that is missing in a directory that the command sees is no
 * denial.
 *
 * The command controls its output, may name paths to learn whether they exist, and may see the
 * result. So nothing here depends on what the host has where the command cannot look, and at
 * most CSN_EXPLAIN_PROBES_MAX paths are probed. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/caisson.h"

/* The result of probing one absolute path. The strings belong to the callback and are valid
 * until its next call. */
typedef struct csn_explain_fact {
    bool inside;          /* the command sees something there (links followed) */
    bool inside_readable; /* and its grant lets it be read */
    bool inside_writable; /* and written; of a directory: names made in it */
    bool hidden;          /* the sandbox does not show it; whether the host has it is unknown */
    bool host;            /* the host has something there (links followed) */
    bool host_readable;   /* this user may read it there, or enter it */
    bool host_writable;
    bool dir, socket; /* what is there */
    bool link;        /* the last component itself is a symbolic link on the host */
    /* The path with every link and `..` resolved; NULL: the path itself. Hints name this one,
     * so that a link made by the command is never granted. */
    const char *resolved;
    const char *needs;  /* the interpreter in the first line of a script, or NULL */
    const char *source; /* the grant it lies in: "config.read[0]"; may be NULL */
    /* The option that forbids it ("deny /x", "read /x" if it is also in `write`), or NULL. No
     * grant overrides it, so the hint is to leave the option out; `source` is where it comes
     * from. */
    const char *rule;
} csn_explain_fact;

/* One stream as it was kept (see csn_capture_copy). */
typedef struct csn_explain_text {
    const char *data;
    size_t len;
    bool cut; /* bytes are missing after the first `head`; no line is read across the gap */
    size_t head;
} csn_explain_text;

typedef struct csn_explain_in {
    csn_explain_text err, out; /* out only where it is merged, or err is empty */
    int exit_code, signal;     /* both 0: the command did not fail; the result is empty */
    const char *argv0;         /* may be NULL, as every string here but cwd */
    const char *cwd;           /* absolute, as seen by the command */
    const char *home;          /* HOME of the command */
    const char *host_home;     /* of the user, resolved; never offered as a whole */
    const char *host_path;     /* PATH on the host; never in a text */
    const char *path;          /* PATH of the command */
    const char *libs;          /* library directories of the command, separated by colons */
    /* Fills *ret, which is zeroed. `path` is absolute and may contain `..`. */
    void (*probe)(void *ctx, const char *path, csn_explain_fact *ret);
    /* Does the sandbox refuse this system call, and would the host permit it to this user?
     * "set-id bits" is chmod with them. NULL: no denials of system calls. */
    bool (*refuses)(void *ctx, const char *syscall);
    void *ctx;
    const char *net_rule; /* the rule that limits the network ("network none"), or NULL */
    uint64_t disk_max, file_max, memory_max, pids_max; /* 0: no limit */
} csn_explain_in;

/* The rule of a denial whose path may or may not exist on the host. */
#define CSN_EXPLAIN_OUTSIDE "outside the sandbox"

#define CSN_EXPLAIN_DENIALS_MAX 8u
#define CSN_EXPLAIN_PROBES_MAX  64u

/* Denials in the order of the output. op is read, write, exec or net, or `syscall` (target: its
 * name, or the program if a signal ended it) or `limit` (target: disk, file, memory or pids).
 * Texts are valid UTF-8 without control characters. hint is a command-line option, or the
 * reason why none is offered. */
typedef struct csn_explain_out {
    csn_denial items[CSN_EXPLAIN_DENIALS_MAX];
    size_t count;
    csn_arena *arena; /* owns all texts */
} csn_explain_out;

csn_status csn_explain(const csn_explain_in *in, csn_explain_out *ret, csn_error **err);
void csn_explain_release(csn_explain_out *out); /* also for a zeroed one */
