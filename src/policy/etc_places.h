/* etc_places.h: what a jail shows of the host's /etc.
 *
 * Two tables, in etc_places.c: settings that packages install and their programs need, and
 * secrets, which are never shown and for which no option is offered. Paths are below /etc. No
 * state: any thread. */
#pragma once
#include <stdbool.h>

typedef struct csn_etc_place {
    const char *path; /* `*` stands for the rest of a component, or for a whole one */
    bool dir;
    bool open;       /* a directory without secrets */
    const char *why; /* the programs that need it */
} csn_etc_place;

/* Ends with a row whose path is NULL. */
extern const csn_etc_place csn_etc_places[];
/* Is it, or is it below, a place of secrets? `path` is absolute. */
bool csn_etc_is_secret(const char *path);
/* Does the component `name` match the first component of `path`? *ret_rest: the path after it,
 * "" if there is nothing. */
bool csn_etc_component_matches(const char *path, const char *name, const char **ret_rest);
