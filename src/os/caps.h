/* caps.h: giving up privileges, for good. Raw system calls: static programs link it. */
#pragma once

/* The calling thread, and all it starts, has no capability and can get none: every set is
 * empty, the bounding set too, securebits are locked and no_new_privs is set. 0 or -errno. */
int csn_caps_drop(void);
/* A session keyring of its own: nothing in it, no way to the old one. 0 or -errno. */
int csn_keyring_leave(void);
