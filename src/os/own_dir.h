/* own_dir.h: where this copy of caisson lies. */
#pragma once

/* The directory of the file that contains this code: the library, a module, or a program that
 * links it statically; symbolic links are resolved. Found once. NULL if it is unknown. */
const char *csn_own_dir(void);
