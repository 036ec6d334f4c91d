/* shwords.h: the command words of a shell line, for the command allow-list.
 *
 * A guard rail, not isolation: it finds the first word of every simple command (after ; & && ||
 * | newlines, in subshells, groups, substitutions $( ) ` ` <( ), after then/do/else/! and so
 * on, after assignments and redirections, in function bodies, case branches and here-documents
 * whose text is expanded). What it cannot be sure of (a word with an expansion or glob in it,
 * unbalanced quotes) is reported as uncertain, and the caller refuses it.
 *
 * The grammar is bash's. Where a plain sh reads the same bytes otherwise (&>, $'\''), both
 * readings count; only for [[ ]], (( )), time, coproc, select and function it is bash's alone.
 * Also followed: the arguments of exec, command, builtin, eval and trap. Not reported: reserved
 * words, and calls of a function that the line itself has surely defined before. Order is that
 * of reading, so an inner substitution comes before the command it is an argument of. */
#pragma once
#include "caisson/caisson.h"

/* word NULL: a command word that cannot be known before run time; `text` shows where. Non-zero
 * stops and is returned. */
typedef int (*csn_shword_fn)(void *ctx, const char *word, const char *text);
/* 0, the callback's value, or -1 when out of memory. */
int csn_shwords(const char *command, csn_shword_fn fn, void *ctx);
