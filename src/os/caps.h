/* caps.h: gives up privileges for good. Static programs link this. */
#pragma once

/* Drops every capability of the calling thread and its children, empties the bounding set,
 * locks securebits and sets no_new_privs. Returns 0 or -errno. */
int csn_caps_drop(void);
/* Joins a new, empty session keyring; a kernel without keyrings is success. 0 or -errno. */
int csn_keyring_join_new(void);
