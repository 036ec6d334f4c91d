/* protected_names.h: names in a repository that become code on the host.
 *
 * A sandbox may write the user's repository; programs outside (git, shells, editors, agents)
 * run these files, or programs named in them, without a request of the user. The table in
 * protected_names.c has the reason for each row, and names what is not protected and why.
 *
 * Paths are relative to the workspace and resolved by the kernel; a path with `..` counts as
 * protected. Case is ignored, and so are the other spellings that a case-folding file system
 * takes for the same name. No state: any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name_rules.h"

typedef enum csn_protected_name_kind {
    CSN_PROTECTED_NAME_ALWAYS,  /* with any content */
    CSN_PROTECTED_NAME_FILE,    /* with any content, unless it is a directory */
    CSN_PROTECTED_NAME_GITFILE, /* `.git` that is not a directory; harmless if it points inside
                                 */
    CSN_PROTECTED_NAME_GITCONFIG, /* harmless while its keys run nothing */
    CSN_PROTECTED_NAME_COMMONDIR, /* harmless as `git worktree` writes it */
    CSN_PROTECTED_NAME_GITINDEX,  /* harmless unless it contains paths that git would refuse */
    CSN_PROTECTED_NAME_TODO,      /* harmless without `exec` */
} csn_protected_name_kind;

/* Is writing, creating and removing refused at this path? ret_rule (may be NULL): name and
 * reason, static. */
bool csn_protected_name_match(const char *path, const char **ret_rule);
/* The same for operations on whole trees: rename, symlinks, recursive removal. Also true for
 * directories that contain protected names (.claude, .git/modules). */
bool csn_protected_name_match_tree(const char *path, const char **ret_rule);

/* The number of the rule that matches, for csn_protected_name_rule_kind; -1: none. */
int csn_protected_name_rule(const char *path, bool tree);

/* A path to cover in the workspace root when the sandbox starts. */
typedef struct csn_protected_name_place {
    char path[48];    /* below the workspace */
    bool pin;         /* bind the directory onto itself, so that it cannot be renamed */
    bool file_only;   /* read-only only if it is not a directory (`.git`) */
    const char *rule; /* if not pin: the reason for a read-only bind */
} csn_protected_name_place;
/* Calls fn for all of them, parents first. If a parent is missing or not a directory, skip the
 * rest. */
void csn_protected_name_each_place(void (*fn)(void *ctx, const csn_protected_name_place *place),
                                   void *ctx);

/* For csn_changed_scan; `rule` of a reported entry is the number for these two. */
extern const csn_name_rules csn_protected_name_rules;
/* Differs between versions with other names: what a scan has stored is of use with the same
 * names only. */
uint64_t csn_protected_name_version(void);
csn_protected_name_kind csn_protected_name_rule_kind(uint8_t rule);
const char *csn_protected_name_rule_text(uint8_t rule);

/* For tests: the name of row i, with `*` for any beginning; NULL: there are no more. */
const char *csn_protected_name_row(size_t i);

/* A changed file. */
typedef struct csn_protected_content {
    uint8_t rule;
    const char *path; /* below the workspace */
    /* The absolute path of the workspace as git sees it; NULL: absolute paths are refused. */
    const char *workspace;
    bool link; /* it is a symlink */
    const void *text;
    size_t len;      /* of the complete file */
    size_t hash_len; /* of object names, for an index: 20, or 32 in a SHA-256 repository */
} csn_protected_content;

/* Harmless only if the caller also verifies real_dir and `also`. Strings are malloc'd. */
typedef struct csn_protected_content_verdict {
    bool harmless;
    char *why; /* if not harmless: what was found ("core.hookspath"); NULL: out of memory */
    /* A path below the workspace ("": itself) that must lead through no link, to a directory or
     * to nothing. */
    char *real_dir;
    /* A git config below the workspace that must be checked too if it exists, even
     * unchanged. */
    char *also;
} csn_protected_content_verdict;
void csn_protected_content_check(const csn_protected_content *doc,
                                 csn_protected_content_verdict *ret);
void csn_protected_content_verdict_release(csn_protected_content_verdict *v);
