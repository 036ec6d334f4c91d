/* key_places.h: files and directories of a home that hold keys, tokens or passwords.
 *
 * A sandbox that shares a home, or a directory above or inside it, does not show them unless
 * an option names them. The table in key_places.c has the reason for each row. No state: any
 * thread. */
#pragma once
#include <stdbool.h>

typedef struct csn_key_place {
    const char *path; /* below the home */
    const char *why;  /* what it holds */
} csn_key_place;

/* Ends with a row whose path is NULL. */
extern const csn_key_place csn_key_places[];
/* The number of rows before that one. */
unsigned csn_key_place_count(void);
