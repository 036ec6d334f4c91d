/* leftover.h: what sandboxes of this program may have left on the host.
 *
 * For programs that adopt orphans (csn_child_adopt), so that nothing they ever caused can hide:
 * a keeper or a sweeper that lives on is a child of theirs. Others use the host at the same
 * time, and they may run sandboxes too; so mounts are told by our directory, control groups by
 * being new and having nobody in them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct leftover_base {
    const char *top;   /* our directory: workspaces below it */
    const char *run;   /* $XDG_RUNTIME_DIR/caisson */
    const char *state; /* $XDG_STATE_HOME/caisson */
    size_t mounts;
    char **groups; /* control groups caisson-* that were there before */
    size_t group_count;
} leftover_base;

/* Makes a private directory with the runtime and state directories of all sandboxes to come
 * ($XDG_RUNTIME_DIR, $XDG_STATE_HOME). Returns it; *ret_run and *ret_state are caisson's own
 * places in there. All malloc'd. */
char *leftover_make_place(char **ret_run, char **ret_state);
/* Notes what there is now. The strings stay the caller's. */
void leftover_note(leftover_base *b, const char *top, const char *run, const char *state);
void leftover_release(leftover_base *b);

/* Reaps; true when this process has no child any more. */
bool leftover_no_children(void);
/* Processes, in whatever namespace, that have `word` as one of their arguments. */
size_t leftover_processes(const char *word);
/* Prints each thing found as a TAP comment, and counts them. */
size_t leftover_mounts(const leftover_base *b);
/* The same for directories, after they had time to go; removes them, so that each is reported
 * once. */
size_t leftover_directories(const leftover_base *b);
/* Directories of detached sandboxes without a process that has their id as an argument: neither
 * keeper nor sweeper, so only the next list removes them. */
size_t leftover_unkept(const leftover_base *b);
/* New groups without a process that stay so. One of somebody else may look like that for a
 * moment, so each is looked at for a while. They are noted, so that each is told once. */
size_t leftover_groups(leftover_base *b);

/* A child of ours that is not `except`, lives, and is not named `not_named`; or 0. It cannot be
 * another process by the time it is used: nobody but us reaps it. */
pid_t leftover_child(pid_t except, const char *not_named);
/* A child of ours with this name that lives, or 0. */
pid_t leftover_child_named(const char *name);
/* How many different namespaces of this kind ("net", "pid") processes are in. */
size_t leftover_namespaces(const char *kind);
