/* protected_names.h: names in a repository that become code on the host.
 *
 * A sandbox may write the user's repository; these files in it are run, or name what is run, by
 * programs outside (git, shells, editors, agents) without the user asking for that file. The
 * table is in protected_names.c, each row with its reason. What is not in it, and why: files a
 * project is made of (package.json, Makefile, .npmrc, .husky, .pre-commit-config.yaml,
 * .gitmodules, .gitattributes, .venv): editing them is what an agent is for, and running the
 * project's own code on the host is the user's decision; see protected_names.c.
 *
 * Paths are relative to the workspace, resolved by the kernel (no link, no `..`); a `..` is
 * answered with "protected". Letters of either case are one, and so are the other spellings a
 * case-folding file system takes for the same name. Pure and free of state: any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name_rules.h"

typedef enum csn_protected_name_kind {
    CSN_PROTECTED_NAME_ALWAYS,    /* whatever it holds */
    CSN_PROTECTED_NAME_GITFILE,   /* `.git` that is no directory; fine when it points inside */
    CSN_PROTECTED_NAME_GITCONFIG, /* fine while its keys run nothing */
    CSN_PROTECTED_NAME_COMMONDIR, /* fine as `git worktree` writes it */
    CSN_PROTECTED_NAME_GITINDEX,  /* fine unless it holds paths git itself would refuse */
    CSN_PROTECTED_NAME_TODO,      /* fine without `exec` */
} csn_protected_name_kind;

/* May nothing be written, created or removed at this path? ret_rule (may be NULL): name and
 * reason for the denial, static. */
bool csn_protected_name_match(const char *path, const char **ret_rule);
/* The same for what brings or takes a whole tree: the ends of a rename, symlinks, recursive
 * removal. Also true for directories that protected names are in (.claude, .git/modules). */
bool csn_protected_name_match_tree(const char *path, const char **ret_rule);

/* A place to look for in the workspace root at start. */
typedef struct csn_protected_name_place {
    char path[48];    /* below the workspace */
    bool pin;         /* a directory to mount over itself as it is: cannot be renamed then */
    bool file_only;   /* make it read-only only if it is no directory (`.git`) */
    const char *rule; /* when not pin: mount it over itself read-only, because of this */
} csn_protected_name_place;
/* All of them. Parents come before what is in them; where a parent is missing, or is no
 * directory, so is the rest. */
void csn_protected_name_each_place(void (*fn)(void *ctx, const csn_protected_name_place *place),
                                   void *ctx);

/* For csn_changed_scan. A reported entry's `rule` is a number for these two. */
extern const csn_name_rules csn_protected_name_rules;
csn_protected_name_kind csn_protected_name_rule_kind(uint8_t rule);
const char *csn_protected_name_rule_text(uint8_t rule);

/* A changed file, to be judged by its content. */
typedef struct csn_protected_content {
    uint8_t rule;
    const char *path;      /* below the workspace */
    const char *workspace; /* its absolute path as git wrote it; NULL: absolute paths are bad */
    bool link;             /* it is a symlink */
    const void *text;
    size_t len;      /* all of it: what was cut must not be judged */
    size_t hash_len; /* of object names, for an index: 20, or 32 in a SHA-256 repository */
} csn_protected_content;

/* Harmless only if all of it holds; the caller checks the last two. Strings malloc'd. */
typedef struct csn_protected_content_verdict {
    bool harmless;
    char *why; /* not harmless: what was found ("core.hookspath"); NULL: no memory for it */
    char *real_dir; /* below the workspace ("": itself): must be reached without a link, and be
                     * a directory or not there */
    char *also;     /* below the workspace: a git config to be judged too, if it is there,
                     * changed or not */
} csn_protected_content_verdict;
void csn_protected_content_check(const csn_protected_content *doc,
                                 csn_protected_content_verdict *ret);
void csn_protected_content_verdict_release(csn_protected_content_verdict *v);
