/* statedir.h: caisson's directories on this host. Private to the user (0700), never in /tmp.
 *
 *   state    $XDG_STATE_HOME/caisson, else ~/.local/state/caisson      survives reboots
 *            audit/<id>.jsonl  audit/<id>.head  sandboxes/<id>/  names/<name>
 *   runtime  $XDG_RUNTIME_DIR/caisson, else <state>/run                private homes
 *            <id>/home/
 *   config   $XDG_CONFIG_HOME/caisson, else ~/.config/caisson          read only
 *   data     $XDG_DATA_HOME/caisson, else ~/.local/share/caisson       survives reboots
 *            agents/<name>/: homes of agents, which sandboxes write
 *
 * A path that another user or a sandbox could redirect is refused (os/checked_dir.h). Functions
 * return 0 or -errno. */
#pragma once
#include <stddef.h>

#include "base/error.h"

/* In sandboxes/<id>/: configuration and working directory of a detached sandbox. */
#define CSN_STATE_META "meta.json"
/* In the same place: which process keeps it (runtime/keeper_record.h). */
#define CSN_STATE_KEEPER "keeper"
/* In the same place, of sandboxes that an earlier version made: a symlink to their runtime
 * directory. */
#define CSN_STATE_RUN_LINK "run"
/* In the same place: what another process needs to attach to a detached jail. */
#define CSN_STATE_JAIL "jail"
/* In the same place: one line that identifies a remote sandbox. */
#define CSN_STATE_NOTE "remote"

#define CSN_DIR_STATE   0
#define CSN_DIR_RUNTIME 1
#define CSN_DIR_CONFIG  2
#define CSN_DIR_DATA    3

/* Opens the directory `sub` (may have slashes, may be NULL) below one of these; makes it if
 * necessary. Returns a descriptor; *ret_path (may be NULL) is its malloc'd absolute path. */
int csn_statedir_open(int which, const char *sub, char **ret_path);
/* As csn_statedir_open, but makes nothing: -ENOENT. */
int csn_statedir_find(int which, const char *sub, char **ret_path);
/* The error of one of them: names the component that was refused, the reason and the fix. */
csn_status csn_statedir_fail(csn_error **err, int errnum, int which, const char *sub);
/* Returns the path, whether it exists or not: malloc'd, or NULL with errno set. */
char *csn_statedir_path(int which, const char *sub);
/* The paths that callers with another environment use, whether they exist or not: the default
 * below `home`, for the runtime directory also /run/user/UID. Entry `i`: malloc'd, or NULL
 * after the last. */
char *csn_statedir_default(int which, const char *home, unsigned i);
