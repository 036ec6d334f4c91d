/* shlex.h: the reader below shwords.c: words, quotes, expansions and here-documents of bash.
 *
 * Internal to kit. The two files call each other: a word may hold a command substitution, and
 * commands are made of words. Nothing here decides; it only finds, and gives up
 * (csn_shlex_fail) wherever two shells could read the same bytes in two ways. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define CSN_SH_DEPTH_MAX   96u
#define CSN_SH_HEREDOC_MAX 16u

typedef struct csn_shfind {
    char *word; /* NULL: cannot be known */
    char *text;
    bool function; /* names a function that the line itself defined before */
} csn_shfind;

/* What is shared by all texts of one line: the line, its backquotes, its here-documents. */
typedef struct csn_shscan {
    csn_shfind *finds;
    size_t count, cap;
    char **functions; /* defined so far for certain; strv */
    unsigned depth;
    bool failed;    /* gave up, or out of memory: unwind */
    bool nomem;     /* then this is set too */
    bool unsets;    /* the line may take a function away again */
    bool evaluates; /* something reads a value as arithmetic or as a[index] */
    bool hidden;    /* a quoted $( or ` that such a value could carry */
} csn_shscan;

typedef struct csn_shdoc {
    char *delimiter;
    bool quoted, strip_tabs;
} csn_shdoc;

/* A cursor in one text. */
typedef struct csn_shcur {
    csn_shscan *scan;
    const char *cur;
    bool in_comsub;     /* inside $( ) or <( ) of this text */
    bool outer_heredoc; /* a here-document of a line around waits for its body */
    csn_shdoc heredocs[CSN_SH_HEREDOC_MAX];
    size_t heredoc_count;
} csn_shcur;

/* One word, quotes removed. */
typedef struct csn_shword {
    csn_buf text;
    const char *start; /* where it begins in its text */
    size_t raw;        /* bytes it has there */
    bool quoted;       /* some of it: then it is no reserved word */
    bool expands;      /* the shell makes something else of it */
    bool assign;       /* NAME=..., NAME+=..., NAME[index]=... */
    bool indexed;      /* NAME[ was seen */
} csn_shword;

#define CSN_SHWORD_COMMAND (1u << 0) /* where NAME[index]= is an assignment */
#define CSN_SHWORD_ELEMENT (1u << 1) /* in NAME=( ... ) */

void csn_shword_release(csn_shword *w);
/* Is its text what the shell will see? `[` alone is a name, with anything more a glob. */
bool csn_shword_known(const csn_shword *w);
#define csn_autoshword CSN_CLEANUP(csn_shword_release) csn_shword

/* Gives up: records that what follows cannot be known. Always returns false. */
bool csn_shlex_fail(csn_shcur *s);
bool csn_shlex_nomem(csn_shcur *s);
/* Records a find; word NULL: uncertain. `len` bytes at `text` show where. */
bool csn_shlex_found(csn_shcur *s, const char *word, const char *text, size_t len,
                     bool function);
bool csn_shlex_enter(csn_shcur *s); /* one level deeper, or gives up */
void csn_shlex_leave(csn_shcur *s);

/* The next byte, line continuations skipped. */
char csn_shlex_look(csn_shcur *s);
/* The byte after the next one, likewise. */
char csn_shlex_look2(const csn_shcur *s);
bool csn_shlex_eat(csn_shcur *s, char c);
/* Blanks and a comment. */
void csn_shlex_blanks(csn_shcur *s);
/* A newline at the cursor and the here-documents that wait for it. */
bool csn_shlex_newline(csn_shcur *s);
bool csn_shlex_is_meta(char c); /* ends a word */

/* Reads one word (possibly empty when there is none). All false results have given up. */
bool csn_shlex_word(csn_shcur *s, csn_shword *w, unsigned flags);
/* After `<<` or `<<-`. */
bool csn_shlex_heredoc_begin(csn_shcur *s, bool strip_tabs);
void csn_shlex_heredocs_release(csn_shcur *s);
/* At `((`, with or without the $: consumes it if it is arithmetic and says so in *ret. */
bool csn_shlex_arithmetic(csn_shcur *s, bool *ret);

/* shfollow.c. The arguments of a followed word: NULL where one is not literal. */
typedef struct csn_shargs {
    char **items;
    size_t count, cap;
} csn_shargs;

void csn_shargs_release(csn_shargs *a);
bool csn_shfollow_wants(const char *word); /* do its arguments matter? */
bool csn_shfollow_keep(csn_shcur *s, csn_shargs *a, const csn_shword *w);
/* Records a command word whose text began at `start`; NULL: it cannot be known. */
bool csn_shfollow_report(csn_shcur *s, const char *word, const char *start,
                         bool may_be_function);
/* What the arguments of `word`, from index `from` on, would run. */
bool csn_shfollow_run(csn_shcur *s, const char *word, const csn_shargs *a, size_t from,
                      const char *start);

/* shwords.c: everything up to a closing `)` or the end; and a text of its own. */
bool csn_shwords_commands(csn_shcur *s);
bool csn_shwords_text(csn_shcur *outer, const char *text);
