/* completion_reply.h: the words that may follow on a command line. */
#pragma once
#include "cli/cli.h"

/* Prints what may stand for the last of `words` (those after the program's name), one word and
 * its description a line, separated by a tab. Nothing: a file, or not known. */
void csn_completion_reply(const char *const *words, size_t count);
