/* shell_line.h: the simple commands of a shell line, for the command allow-list.
 *
 * Accepted: commands joined by ; & && || | |& and newlines, made of assignments, redirections,
 * quotes and plain variables ($x, ${x}). Everything else (substitutions, arithmetic, compound
 * commands, functions, here-documents) ends the reading, because the programs that such a line
 * runs are known only when it runs. Text that bash and a POSIX sh read differently ends it
 * too. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct csn_shell_word {
    const char *text; /* quotes removed; a variable adds nothing, $? and $# add a 0 */
    size_t known;     /* bytes of text before the first variable or pattern */
    bool literal;     /* the program gets exactly `text` */
    bool splits;      /* an unquoted expansion: may become several words */
    bool assigns;     /* NAME=... */
} csn_shell_word;

/* Words without the redirections. The first `assignments` words precede the command word, which
 * may be absent. */
typedef struct csn_shell_command {
    const csn_shell_word *words;
    size_t count, assignments;
} csn_shell_command;

/* Why and where reading stopped. */
typedef struct csn_shell_stop {
    const char *construct; /* a constant text: "$(...) is a command substitution" */
    const char *at;        /* in the line */
} csn_shell_stop;

#define CSN_SHELL_NOMEM   (-1)
#define CSN_SHELL_STOPPED (-2)

/* Called for each command from left to right; a positive value ends the reading. */
typedef int (*csn_shell_command_fn)(void *ctx, const csn_shell_command *c);
/* 0, the callback's value, or a CSN_SHELL_* code; *stop is set with CSN_SHELL_STOPPED. */
int csn_shell_line(const char *line, csn_shell_command_fn fn, void *ctx, csn_shell_stop *stop);

/* The bytes of the variable name at the start of `s`; 0: none. */
size_t csn_shell_name_length(const char *s);

/* shell_builtin.c */
typedef enum csn_shell_kind {
    CSN_SHELL_PROGRAM,  /* not a builtin, or a builtin that is treated like a program */
    CSN_SHELL_HARMLESS, /* a builtin that, with these arguments, runs and changes no command */
    CSN_SHELL_OPEN,     /* a builtin that can run or redefine anything */
    CSN_SHELL_REFUSED,  /* a harmless builtin that these arguments make unsafe */
} csn_shell_kind;

/* `words[0]` is the command word. *ret_why is set for the last two. */
csn_shell_kind csn_shell_builtin(const csn_shell_word *words, size_t count,
                                 const char **ret_why);
/* Does a value of this variable change which file a command name means, or run code by itself?
 * `name` ends at the first byte that no variable name has. */
bool csn_shell_variable_protected(const char *name);
/* Does `command` set such a variable from this argument: export PATH=., env PATH=. ls? */
bool csn_shell_sets_protected(const char *command, const char *argument);
