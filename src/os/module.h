/* module.h: loads code on first use.
 *
 * A module is searched in the directory of the file that contains this code (os/own_dir.h),
 * then in the installation directory; never in the working directory or the loader's search
 * path. */
#pragma once
#include <stddef.h>

/* Loads `file` (a bare name, or with a slash a path) for good and finds `symbol` in it. Returns
 * 0, or -errno with the path and the loader's message in why. */
int csn_module_load(const char *file, const char *symbol, void **ret, char *why, size_t size);
