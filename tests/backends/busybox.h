/* busybox.h: a backend of nothing but exec, in a root that holds a static busybox and no more.
 */
#pragma once
#include "caisson/backend.h"

/* Makes root_dir (an existing, empty directory; copied) a root with bin/, tmp/ and work/ and
 * registers backend "busybox" in it: commands are chrooted there, by root directly, by a user
 * in a user namespace, and start in /room. 0, or -1 with a reason from csn_test_backend_why()
 * in bash.h (no static busybox, neither chroot nor user namespaces). Once in a process. */
int csn_test_register_busybox(const char *root_dir);
/* The same without registering it: the table and a state to free, or NULL. The files stay. */
const csn_backend_ops *csn_test_busybox_ops(const char *root_dir, void **ret_state);
void csn_test_busybox_free(void *state);
