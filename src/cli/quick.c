/* quick.c: which command lines the quick program runs itself, and how it becomes the full one.
 *
 * A libc that must look at the processor first and a loader that must relocate everything cost
 * more than a third of what a jail costs. So `caisson` is linked twice from the same sources:
 * against musl and static, with the rows below, and as caisson-full, with all of them and with
 * modules. This file stands in for commands.c and remote/load.c in the first.
 *
 * What must hold: a command line means the same in both. Whatever is not for us (another
 * subcommand, a backend in a module, a user who has to be looked up) is handed on by an exec,
 * with every argument as it came, before anything was touched, read or printed. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/commands.h"
#include "remote/load.h"

#define FULL "caisson-full"

/* Such as open or connect at most one sandbox, and that first, so that its backend is known
 * before anything is done. grep, import and export need libraries that musl has not. */
static const csn_command *const rows[] = {
    &csn_cmd_run,   &csn_cmd_exec,    &csn_cmd_create, &csn_cmd_list, &csn_cmd_info,
    &csn_cmd_read,  &csn_cmd_cat,     &csn_cmd_write,  &csn_cmd_edit, &csn_cmd_rm,
    &csn_cmd_mkdir, &csn_cmd_mv,      &csn_cmd_stat,   &csn_cmd_ls,   &csn_cmd_glob,
    &csn_cmd_watch, &csn_cmd_ps,      &csn_cmd_logs,   &csn_cmd_kill, &csn_cmd_shell,
    &csn_cmd_wait,  &csn_cmd_cleanup, &csn_cmd_extend, &csn_cmd_cd,   &csn_cmd_net,
    &csn_cmd_why,
};
/* Options that are not for us: rules may come from standard input, and who has read them cannot
 * hand them on; archives need a module. */
static const char *const full_options[] = {"--policy", "--tar"};

static char **own_argv;

/* Beside us (a build directory), else where it is installed; no variable changes it. Returns
 * only when that failed, with errno. */
static void become_full(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(FULL));
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;

    if (slash) {
        memcpy(slash + 1, FULL, sizeof(FULL));
        execv(path, own_argv);
        if (errno != ENOENT)
            return;
    }
    execv(CSN_LIBEXEC_DIR "/" FULL, own_argv);
}

static bool has_full_option(char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        for (size_t i = 0; i < sizeof(full_options) / sizeof(full_options[0]); i++)
            if (strncmp(*argv, full_options[i], strlen(full_options[i])) == 0)
                return true;
    return false;
}

static const csn_command *ours(char **argv)
{
    const char *home = getenv("HOME");

    if (!argv[0] || !argv[1] || has_full_option(argv + 1))
        return NULL;
    if (!home || home[0] != '/') /* users may be listed where only the other libc looks */
        return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i]->name, argv[1]) == 0)
            return rows[i];
    return NULL;
}

const csn_command *csn_cli_command(int argc, char **argv, int *ret_status)
{
    (void)argc;
    own_argv = argv;
    const csn_command *cmd = ours(argv);
    if (cmd)
        return cmd;
    become_full();
    fprintf(stderr, "caisson: cannot run " FULL ": %s\n", strerrordesc_np(errno));
    *ret_status = CSN_EXIT_FAILED;
    return NULL;
}

/* ---- in place of remote/load.c ------------------------------------------------------------
 */

/* Asked when the backend of a sandbox becomes known, which is before the first step of opening
 * or connecting it. */
csn_status csn_remote_find(const char *name, const csn_backend_ops **ret, csn_error **err)
{
    (void)ret;
    become_full();
    return csn_fail(err, CSN_UNSUPPORTED, "backend '%s' needs " FULL ": %s", name,
                    strerrordesc_np(errno));
}
