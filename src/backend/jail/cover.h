/* cover.h: what a policy denies (`deny`, `deny_missing_ok`, and `rules` that deny), enforced
 * for commands by mounts; and the keys of the user's home, which are denied by default.
 *
 *   cover.c         reads the denials of the config, and makes the rules of file calls
 *   cover_plan.c    plans the mounts of paths that exist
 *   cover_aliases.c finds other paths (bind mounts) of what is denied
 *   cover_links.c   finds other names (hard links) of what is denied
 *   cover_find.c    finds what matches a pattern
 *   cover_keys.c    plans the mounts over keys of the user's home
 *   cover_later.c   covers what appeared after the sandbox was opened
 *
 * A denial of reading is a mask (the path can be neither read, written nor moved), one of
 * writing a read-only mount, one of deletion alone a mount of a file over itself. A mount point
 * can be neither removed, renamed nor replaced, and has no hard links to other mounts. A denial
 * that cannot be enforced this way is refused when the sandbox is opened, by name. */
#pragma once
#include "backend/jail/jail.h"
#include "base/glob.h"
#include "os/mount_table.h"
#include "search/find_names.h"

/* One denial of the config. A pattern that holds in several shares has one for each. */
typedef struct csn_cover {
    const char *label; /* for messages: "deny .env", "rules[0]: deny write /x" */
    const char *word;  /* "deny", "deny write" */
    const char *list;  /* "config.deny" */
    long index;
    uint32_t ops; /* CSN_OP_*: what is denied */
    bool missing_ok;
    bool anywhere;      /* a pattern that holds wherever a file is moved to in its share */
    const char *path;   /* inside, absolute; or a pattern; NULL: of keys */
    const char *key;    /* a row of policy/key_places.h: its path; else NULL */
    csn_glob_set *glob; /* of a pattern: matches the path without its first slash; else NULL */
} csn_cover;

/* A path inside with a mount that enforces a denial. */
typedef struct csn_cover_name {
    const char *path;
    uint32_t cover; /* index */
} csn_cover_name;

#define CSN_COVER_NAMES_MAX 4096u

/* A name of a denied file with several hard links; later all its names together. */
typedef struct csn_cover_link {
    uint64_t dev, ino;
    uint64_t nlink, seen; /* seen: names that are denied themselves */
    uint32_t cover;
} csn_cover_link;

/* What the last search found in a share. */
typedef struct csn_cover_cache {
    csn_find_cache c;
    bool loaded, changed;
} csn_cover_cache;

typedef struct csn_covers {
    csn_cover *v; /* those of the config, then either none or all rows of key_places.h */
    size_t count;
    uint32_t first_key;    /* index of the first row */
    bool keys;             /* the rows are there */
    csn_cover_name *names; /* malloc'd */
    size_t name_count;
    csn_cover_link *links; /* malloc'd, while planning */
    size_t link_count;
    csn_mount_table mounts;  /* of the host, while planning */
    csn_cover_cache *caches; /* of the shares; NULL before the first search */
    pthread_mutex_t lock;    /* held by csn_cover_renew */
} csn_covers;

/* cover.c. Reads the denials; needs base and shares. */
csn_status csn_cover_read(csn_runtime *rt, csn_error **err);
/* The rules of file calls, from shares and covers. */
csn_status csn_cover_make_rules(csn_runtime *rt, csn_error **err);
/* The rules of the config that are not among the covers, with absolute paths; `ret` has room
 * for all. Returns their number. */
size_t csn_cover_other_rules(const csn_runtime *rt, csn_rule *ret);
/* A path of the config inside: absolute, without `.`; NULL with `..` or without memory. */
const char *csn_cover_path(const csn_runtime *rt, const char *text);
void csn_covers_release(const csn_jail *j);

/* cover_plan.c. Adds the mounts and makes the rules of file calls; call it after all other
 * mounts. */
csn_status csn_cover_plan(csn_runtime *rt, csn_error **err);
/* The kind and flags of the mount that denies these operations. */
uint32_t csn_cover_kind(uint32_t ops, uint32_t *ret_flags);
/* Refuses a cover of the path `to` if the sandbox needs something in it, or a rule allows it.
 */
csn_status csn_cover_check(const csn_runtime *rt, const csn_cover *c, const char *to,
                           csn_error **err);
/* Plans the cover of a path inside. */
csn_status csn_cover_at(csn_runtime *rt, uint32_t cover, const char *to, csn_error **err);
/* Plans the cover of what `real` (on the host, resolved) is in every share, and makes the
 * directories above it immovable, unless `loose`. *ret_where: CSN_COVER_OWN if some share has
 * it. Call csn_cover_real. */
#define CSN_COVER_OWN   1u
#define CSN_COVER_ALIAS 2u
csn_status csn_cover_in_shares(csn_runtime *rt, uint32_t cover, const char *real, bool loose,
                               unsigned *ret_where, csn_error **err);
/* cover_aliases.c. The same, also where a mount of the host shows it again (CSN_COVER_ALIAS).
 */
csn_status csn_cover_real(csn_runtime *rt, uint32_t cover, const char *real, bool loose,
                          unsigned *ret_where, csn_error **err);
/* Remembers a path inside that is covered. */
csn_status csn_cover_add_name(csn_runtime *rt, uint32_t cover, const char *path,
                              csn_error **err);

/* cover_links.c. Notes the files with several links that `real` is or contains; then covers
 * their other names in all shares. shared: commands could reach it, so that the search must be
 * complete. */
csn_status csn_cover_links_collect(csn_runtime *rt, uint32_t cover, const char *real,
                                   bool shared, csn_error **err);
csn_status csn_cover_links_find(csn_runtime *rt, csn_error **err);

/* cover_keys.c. Plans the covers of keys in the homes that a share contains. */
csn_status csn_cover_keys_plan(csn_runtime *rt, csn_error **err);
/* True if a share contains a home or a place of keys; where nothing can be mounted, they are
 * visible. */
bool csn_cover_keys_shared(csn_runtime *rt);
/* Adds a cover for each row of the table, once. */
csn_status csn_cover_keys_read(csn_runtime *rt, csn_error **err);
/* Describes the keys that are covered, for `info`. Call it when all names are known. */
csn_status csn_cover_keys_describe(csn_runtime *rt, csn_error **err);

/* cover_find.c. Plans the covers of what matches patterns now; needs the rules. */
csn_status csn_cover_find(csn_runtime *rt, csn_error **err);
/* A path in a share that matches the pattern of a denial; a failure stops the search. */
typedef csn_status (*csn_cover_fn)(void *ctx, uint32_t cover, size_t share, const char *path,
                                   const char *inside, csn_error **err);
/* Searches all shares, on the host or (inside_root) below the root of the jail. */
csn_status csn_cover_search(csn_runtime *rt, int inside_root, csn_cover_fn fn, void *ctx,
                            csn_error **err);
/* True for a directory that commands can neither read nor make readable. */
bool csn_cover_is_closed(const csn_jail *j, int root, const char *path);
/* Stores the caches for the next sandbox. */
void csn_cover_caches_save(const csn_runtime *rt);

/* cover_later.c. Call it before each command: covers what has appeared since, and what the host
 * has replaced. Fails if something cannot be covered. */
csn_status csn_cover_renew(csn_runtime *rt, csn_error **err);
/* Call it after each command: reports files that match a pattern and were created meanwhile.
 * The next csn_cover_renew covers them. */
void csn_cover_report(csn_runtime *rt, const csn_deny_sink *denials);
