/* explain_internal.h: shared by the files of explain. A line passes through them in this order:
 * explain.c selects it, explain_advice.c knows the lines of some programs, explain_phrase.c
 * finds the error phrase, explain_extract.c the path, name or host, explain_denial.c verifies
 * it, explain_hint.c chooses the option to offer. */
#pragma once
#include "base/limits.h"
#include "policy/explain.h"

#define CSN_EXPLAIN_LINE 8192u /* longer lines are skipped */

typedef enum {
    CSN_PHRASE_NONE,
    CSN_PHRASE_NO_COMMAND,
    CSN_PHRASE_NO_LIBRARY,
    CSN_PHRASE_NO_INTERPRETER, /* names the script, not its interpreter */
    CSN_PHRASE_NO_TOOLCHAIN,
    CSN_PHRASE_MISSING,
    CSN_PHRASE_READ_ONLY,
    CSN_PHRASE_ACCESS,
    CSN_PHRASE_NOT_PERMITTED,
    CSN_PHRASE_NET,
    CSN_PHRASE_DISK,
    CSN_PHRASE_FILE,
    CSN_PHRASE_MEMORY,
    CSN_PHRASE_PIDS,
} csn_phrase_kind;

/* A line without terminal sequences. Other control bytes stay, so that a candidate with one can
 * be rejected; a NUL becomes 0x01. */
typedef struct csn_line {
    char text[CSN_EXPLAIN_LINE + 1];
    char low[CSN_EXPLAIN_LINE + 1]; /* in ASCII lower case, to find phrases */
    size_t len;
} csn_line;

typedef struct csn_phrase_match {
    csn_phrase_kind what;
    size_t at, end;
    bool host_next; /* a host follows the phrase */
} csn_phrase_match;

/* Bytes of a line that may be a path or a name: clean (csn_span_is_clean), not yet verified. */
typedef struct csn_text_span {
    const char *at;
    size_t len;
} csn_text_span;

#define CSN_SPANS_MAX 8u

bool csn_is_word(char c);                                      /* letter, digit, underscore */
bool csn_line_set(csn_line *l, const char *bytes, size_t len); /* false: too long */
csn_phrase_match csn_line_find_phrase(const csn_line *l);
/* Candidate paths, the likeliest first: after the phrase, then backwards from it. */
size_t csn_line_paths(const csn_line *l, const csn_phrase_match *s,
                      csn_text_span out[CSN_SPANS_MAX]);
/* The program or library that the phrase names; len 0: none. */
csn_text_span csn_line_name(const csn_line *l, const csn_phrase_match *s);
/* Did a program that starts others print it (env, xargs, make)? Then a bare name is a
 * command. */
bool csn_line_is_runner(const csn_line *l);
bool csn_line_is_shell(const csn_line *l); /* did a shell print it? */
bool csn_line_creates(const csn_line *l);  /* about creating or writing something */
/* Did a shell print it, perhaps about the target of a redirection? */
bool csn_line_is_redirect(const csn_line *l);
/* The system call that the line is about, or NULL. */
const char *csn_line_syscall(const csn_line *l);
/* Writes "host" or "host:port" to out. UNFIT: loopback, or not a valid host. */
typedef enum { CSN_HOST_NONE, CSN_HOST_NAMED, CSN_HOST_UNFIT } csn_host;
csn_host csn_line_host(const csn_line *l, const csn_phrase_match *s, char *out, size_t size);
/* Valid UTF-8 shorter than PATH_MAX, without control and direction characters and
 * backslashes. */
bool csn_span_is_clean(csn_text_span s);

typedef struct csn_grant_target {
    const char *asked; /* as the command named it, absolute; may contain `..` */
    const char *path;  /* resolved: no link, no `..` */
    bool dir, socket, tool, write;
    bool unknown; /* `dir` and `socket` are not known */
} csn_grant_target;

/* The directory or file to grant (in the arena), or NULL and the reason in *ret_refusal; both
 * NULL: out of memory. */
const char *csn_explain_grant(csn_arena *a, const csn_explain_in *in, const csn_grant_target *p,
                              const char **ret_refusal);
/* Why this host must not be offered, or NULL. */
const char *csn_explain_host_refusal(const char *host);

typedef struct csn_probed_path {
    const char *path;
    csn_explain_fact fact;
} csn_probed_path;

/* One call of csn_explain. */
typedef struct csn_explain_state {
    const csn_explain_in *in;
    csn_arena *arena;
    csn_denial items[CSN_EXPLAIN_DENIALS_MAX]; /* in reverse order of the output */
    size_t count;
    csn_probed_path probed[CSN_EXPLAIN_PROBES_MAX];
    size_t probe_count;
    csn_line line, before;
    char path[CSN_PATH_MAX]; /* scratch */
    bool nameless_net, out_of_memory;
} csn_explain_state;

/* A copy in the arena; NULL in, NULL out. */
const char *csn_explain_strdup(csn_explain_state *w, const char *s);
const char *csn_explain_span_text(csn_explain_state *w, csn_text_span s);
/* "--read DIR" and the like, as a shell reads it back. */
const char *csn_explain_option(csn_explain_state *w, uint32_t op, const char *path);
/* NULL when the limit of probes is reached or the name cannot be trusted. */
const csn_probed_path *csn_explain_probe(csn_explain_state *w, const char *path);
const csn_probed_path *csn_explain_probe_span(csn_explain_state *w, csn_text_span s);
/* The nearest parent directory that exists, on the host or inside. */
const csn_probed_path *csn_explain_probe_above(csn_explain_state *w, const char *path);
/* Searches the directories of `dirs` (separated by colons); the first that the host has or may
 * have. */
const csn_probed_path *csn_explain_search(csn_explain_state *w, csn_text_span name,
                                          const char *dirs);
void csn_explain_deny(csn_explain_state *w, const csn_denial *d);
/* The line of a well-known program (explain_advice.c); false: another line. */
bool csn_explain_advise(csn_explain_state *w);
/* false: not a denial. `a` may be NULL. */
bool csn_explain_deny_missing(csn_explain_state *w, csn_text_span target,
                              const csn_probed_path *a, bool exec);
/* `where` must be writable: the file itself, or the directory in which it is created. */
void csn_explain_deny_write(csn_explain_state *w, csn_text_span target,
                            const csn_probed_path *where, const char *resolved);
