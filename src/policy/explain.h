/* explain.h: why did this command fail? What it printed, read for the marks of a missing grant.
 *
 * Asked once after a command that failed; the command itself is neither traced nor slowed. The
 * printed text only gives candidates. Whether one is a denial is decided by what the file
 * systems of host and sandbox really hold: something is a denial only if it is on the host,
 * this user could use it there, and the sandbox keeps it from the command. An ordinary missing
 * file gives none.
 *
 * The text is the command's: it may name paths only to learn whether they exist. So what comes
 * out of here is for whoever owns the sandbox; at most CSN_EXPLAIN_ASKS paths are looked at. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "caisson/caisson.h"

/* What one absolute path is. The strings are the callback's, and need to live only until it is
 * called again. */
typedef struct csn_explain_fact {
    bool inside;          /* the command sees something there (links followed) */
    bool inside_readable; /* and its grant lets it be read */
    bool inside_writable; /* and written; of a directory: names made in it */
    bool host;            /* the host has something there (links followed) */
    bool host_readable;   /* this user may read it there, or enter it */
    bool host_writable;
    bool dir, socket; /* what the host has */
    bool link;        /* the last component itself is a symbolic link on the host */
    /* Where the path leads on the host, through every link and `..`. NULL: it is that itself.
     * Hints are made of this: a link of the command's own making is never what gets granted. */
    const char *resolved;
    const char *needs;  /* of a script: the interpreter its first line names; may be NULL */
    const char *source; /* the grant it lies in: "config.read[0]"; may be NULL */
    /* Refuses it by name ("deny /x"), so that no grant would help; source then says where that
     * rule is from, and it is not readable inside. May be NULL. */
    const char *rule;
} csn_explain_fact;

/* One stream as it was kept (see csn_capture_copy). */
typedef struct csn_explain_text {
    const char *data;
    size_t len;
    bool cut;    /* something is missing, */
    size_t head; /* behind so many bytes: no line is read across that seam */
} csn_explain_text;

typedef struct csn_explain_in {
    csn_explain_text err, out; /* out only where it is merged, or err is empty */
    int exit_code, signal;     /* both 0: it did not fail, and there is nothing to say */
    const char *argv0;         /* may be NULL, as every string here but cwd */
    const char *cwd;           /* absolute, as the command saw it */
    const char *home;          /* what `~` was to the command */
    const char *host_home;     /* the user's own, resolved: never offered as a whole */
    const char *host_path;     /* PATH on the host: where would the tool be? */
    const char *host_libs;     /* directories of libraries likewise, with colons */
    /* Fills *ret, which is all zero. Never called with a relative path; `..` may be in it. */
    void (*look)(void *ctx, const char *path, csn_explain_fact *ret);
    /* Does the sandbox refuse this system call, and would the host let this user do it? NULL:
     * no denial of a system call is made from text. */
    bool (*refuses)(void *ctx, const char *syscall);
    void *ctx;
    const char *net_rule; /* what holds the network back ("network none"); NULL: nothing does */
    uint64_t disk_max, file_max, memory_max, pids_max; /* 0: no such limit, so no such denial */
} csn_explain_in;

#define CSN_EXPLAIN_DENIALS 8u
#define CSN_EXPLAIN_ASKS    64u

/* In the order of printing. op is read, write, exec or net, and beyond those of the policy:
 * `syscall` (target: its name, or the program when a signal ended it) and `limit` (target:
 * disk, file, memory or pids). Texts are valid UTF-8 without controls. hint is an option of the
 * command line, or says that no grant is offered, and why. */
typedef struct csn_explain_out {
    csn_denial items[CSN_EXPLAIN_DENIALS];
    size_t count;
    csn_arena *arena; /* owns all texts */
} csn_explain_out;

csn_status csn_explain(const csn_explain_in *in, csn_explain_out *ret, csn_error **err);
void csn_explain_release(csn_explain_out *out); /* fine on a zeroed one */
