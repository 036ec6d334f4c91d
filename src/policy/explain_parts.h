/* explain_parts.h: what the files of explain share; nobody else includes it. In the order a
 * line takes: explain.c (which lines), explain_text.c (what one says), explain_cut.c (about
 * which path), explain_deny.c (is it so), explain_hint.c (what may be offered). */
#pragma once
#include "base/limits.h"
#include "policy/explain.h"

#define CSN_EXPLAIN_LINE 8192u /* a longer line is no message of a program */

typedef enum {
    CSN_SAYS_NOTHING,
    CSN_SAYS_NO_COMMAND,
    CSN_SAYS_NO_LIBRARY,
    CSN_SAYS_NO_INTERPRETER, /* the script is named, what it needs is not */
    CSN_SAYS_NO_TOOLCHAIN,
    CSN_SAYS_MISSING,
    CSN_SAYS_READ_ONLY,
    CSN_SAYS_ACCESS,
    CSN_SAYS_NOT_PERMITTED,
    CSN_SAYS_NET,
    CSN_SAYS_DISK,
    CSN_SAYS_FILE,
    CSN_SAYS_MEMORY,
    CSN_SAYS_PIDS,
} csn_says;

/* A line without terminal sequences. Other control bytes are still there, so that a candidate
 * with one can be dropped; a NUL has become 0x01. */
typedef struct csn_line {
    char text[CSN_EXPLAIN_LINE + 1];
    char low[CSN_EXPLAIN_LINE + 1]; /* the same, ASCII lower case: phrases are found here */
    size_t len;
} csn_line;

/* The phrase that was found: which, and where. */
typedef struct csn_said {
    csn_says what;
    size_t at, end;
    bool host_next; /* a host follows the phrase */
} csn_said;

/* Bytes of a line that may be a path or a name; clean (csn_scrap_clean), but not yet verified.
 */
typedef struct csn_scrap {
    const char *at;
    size_t len;
} csn_scrap;

#define CSN_SCRAPS 8u

bool csn_is_word(char c);                                       /* letter, digit, underscore */
bool csn_line_take(csn_line *l, const char *bytes, size_t len); /* false: too long */
csn_said csn_line_says(const csn_line *l);
/* Paths, the likeliest first: behind the phrase, then backwards from it. */
size_t csn_line_paths(const csn_line *l, const csn_said *s, csn_scrap out[CSN_SCRAPS]);
/* The program or library the phrase is about; len 0: none. */
csn_scrap csn_line_name(const csn_line *l, const csn_said *s);
/* Did a program that starts others print it (env, xargs, make)? Then a bare name is one. */
bool csn_line_is_runner(const csn_line *l);
bool csn_line_is_shell(const csn_line *l); /* did a shell print it? */
bool csn_line_creates(const csn_line *l);  /* something was to be made or written */
/* Did a shell print it, of a file that it may have been told to write? */
bool csn_line_is_redirect(const csn_line *l);
/* A system call that the line is about; NULL: none we know. */
const char *csn_line_syscall(const csn_line *l);
/* "host" or "host:port" into out. UNFIT: the loopback, or nothing that could be a host. */
typedef enum { CSN_HOST_NONE, CSN_HOST_NAMED, CSN_HOST_UNFIT } csn_host;
csn_host csn_line_host(const csn_line *l, const csn_said *s, char *out, size_t size);
/* Valid UTF-8, no control or direction character, no backslash, of the length of a path. */
bool csn_scrap_clean(csn_scrap s);

/* What a hint would be about. */
typedef struct csn_place {
    const char *asked; /* as the command named it, absolute; may have `..` */
    const char *path;  /* the real one: no link, no `..` */
    bool dir, socket, tool, write;
} csn_place;

/* The directory or file to grant (in the arena), or NULL with *ret_refusal saying why none is
 * offered; both NULL: out of memory. */
const char *csn_explain_grant(csn_arena *a, const csn_explain_in *in, const csn_place *p,
                              const char **ret_refusal);
/* Why this host must not be offered; NULL: it may be. */
const char *csn_explain_host_refusal(const char *host);

/* One path that was asked about. */
typedef struct csn_asked {
    const char *path;
    csn_explain_fact fact;
} csn_asked;

/* One call of csn_explain. */
typedef struct csn_explaining {
    const csn_explain_in *in;
    csn_arena *arena;
    csn_denial items[CSN_EXPLAIN_DENIALS]; /* the last printed first */
    size_t count;
    csn_asked asked[CSN_EXPLAIN_ASKS];
    size_t asks;
    csn_line line, before;
    char path[CSN_PATH_MAX]; /* scratch: only what is new is kept */
    bool nameless_net, out_of_memory;
} csn_explaining;

/* A copy in the arena; NULL in, NULL out. */
const char *csn_explain_keep(csn_explaining *w, const char *s);
const char *csn_explain_scrap_text(csn_explaining *w, csn_scrap s);
/* "--read DIR" and the like, as a shell reads it back. */
const char *csn_explain_option(csn_explaining *w, uint32_t op, const char *path);
/* NULL when the questions are used up, or the name cannot be believed. */
const csn_asked *csn_explain_ask(csn_explaining *w, const char *path);
const csn_asked *csn_explain_ask_scrap(csn_explaining *w, csn_scrap s);
const csn_asked *csn_explain_ask_parent(csn_explaining *w, const char *path);
/* The nearest directory above that there is, on the host or inside. */
const csn_asked *csn_explain_ask_above(csn_explaining *w, const char *path);
/* The name in each directory of a search path (with colons), the first that the host has. */
const csn_asked *csn_explain_search(csn_explaining *w, csn_scrap name, const char *dirs);
void csn_explain_deny(csn_explaining *w, const csn_denial *d);
/* false: it is no denial. `a` may be NULL. */
bool csn_explain_deny_missing(csn_explaining *w, csn_scrap target, const csn_asked *a,
                              bool exec);
/* `where` is what would have to be writable: the thing itself, or the directory it was to be
 * made in. */
void csn_explain_deny_write(csn_explaining *w, csn_scrap target, const csn_asked *where,
                            const char *resolved);
