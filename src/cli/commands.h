/* commands.h: declares the csn_command of every subcommand, each defined in a cmd_*.c. */
#pragma once
#include "cli/cli.h"

/* sandboxes */
extern const csn_command csn_cmd_run, csn_cmd_create, csn_cmd_exec, csn_cmd_list, csn_cmd_info,
    csn_cmd_destroy, csn_cmd_cleanup, csn_cmd_extend, csn_cmd_cd, csn_cmd_net, csn_cmd_snapshot,
    csn_cmd_snapshots, csn_cmd_rollback, csn_cmd_undo, csn_cmd_discard, csn_cmd_fork,
    csn_cmd_race, csn_cmd_diff, csn_cmd_commit, csn_cmd_pause, csn_cmd_resume;
/* files */
extern const csn_command csn_cmd_read, csn_cmd_cat, csn_cmd_write, csn_cmd_edit, csn_cmd_rm,
    csn_cmd_mkdir, csn_cmd_mv, csn_cmd_stat, csn_cmd_ls, csn_cmd_glob, csn_cmd_grep,
    csn_cmd_import, csn_cmd_export, csn_cmd_watch;
/* processes */
extern const csn_command csn_cmd_ps, csn_cmd_logs, csn_cmd_kill, csn_cmd_shell, csn_cmd_wait;
/* a project's own configuration */
extern const csn_command csn_cmd_init, csn_cmd_trust, csn_cmd_untrust;
/* policy, audit, the program itself */
extern const csn_command csn_cmd_why, csn_cmd_log, csn_cmd_aside, csn_cmd_policy,
    csn_cmd_doctor, csn_cmd_version, csn_cmd_help, csn_cmd_completion, csn_cmd_mcp;
