/* module.h: code that is loaded when it is first needed.
 *
 * A module is looked for beside the object that this code is part of (the library, or a program
 * that links it statically) and then in the directory it is installed to; never in the working
 * directory and never by a name that the loader would search for. */
#pragma once
#include <stddef.h>

/* Loads `file` (a bare name; or, with a slash, that very path) for good and finds `symbol` in
 * it. 0, or -errno with the path and the loader's words in why. */
int csn_module_load(const char *file, const char *symbol, void **ret, char *why, size_t size);
