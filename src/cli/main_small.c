/* main_small.c: main() of the small program, installed as `caisson`.
 *
 * It is linked statically against musl and runs the two commands that are called most, on
 * backends of this machine. It passes every other command line to caisson-full with execv.
 * caisson-full needs glibc for its modules (remote backends, archives, HTTP) and PCRE2, and a
 * glibc program spends a tenth of the run time of `bwrap` just to reach main().
 *
 * Invariant: the decision is made here, from the command line and the environment, before
 * anything is opened, read or printed. A command line means the same in both programs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/project.h"

#define FULL "caisson-full"

static const csn_command *const commands[] = {&csn_cmd_run, &csn_cmd_exec};
static const char *const backends[] = {"jail", "local", NULL};
/* These options can select a backend that only caisson-full has, or wait for a person. */
static const char *const full_options[] = {"--backend", "--policy", "--ask"};

static bool has_full_option(char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        for (size_t i = 0; i < sizeof(full_options) / sizeof(full_options[0]); i++)
            if (csn_str_starts(*argv, full_options[i]))
                return true;
    return false;
}

/* True if the environment selects a backend of this machine. Without HOME the home directory
 * comes from the name service (NSS), which needs glibc. */
static bool environment_is_local(void)
{
    const char *home = getenv("HOME"), *backend = getenv("CAISSON_BACKEND");
    const char *vercel = getenv("VERCEL");

    if (!home || home[0] != '/' || (vercel && strcmp(vercel, "1") == 0))
        return false;
    return !backend || !backend[0] || csn_strv_has(backends, backend);
}

/* True if a project's caisson.json applies, which can select a backend. The file of the first
 * --workspace counts; without one, that of the current directory. */
static bool has_project(char **argv)
{
    static const char option[] = "--workspace";
    const size_t len = sizeof(option) - 1;
    const char *workspace = NULL;

    for (; *argv && strcmp(*argv, "--") != 0; argv++) {
        if (strcmp(*argv, "--no-project") == 0)
            return false;
        if (!workspace && csn_str_starts(*argv, option))
            workspace = (*argv)[len] == '=' ? *argv + len + 1 : argv[1];
    }
    csn_autofree char *host = workspace ? csn_workspace_host(workspace) : NULL;
    return csn_project_exists(host ? host : ".");
}

/* An id begins with its backend. Any other word may be a sandbox name, which caisson-full
 * resolves. */
static bool is_local_id(const char *id)
{
    const char *dash = id ? strchr(id, '-') : NULL;
    csn_autofree char *backend = dash ? strndup(id, (size_t)(dash - id)) : NULL;

    return backend && csn_strv_has(backends, backend);
}

/* Returns the command to run in this process, or NULL to run caisson-full. */
static const csn_command *find_command(char **argv)
{
    const csn_command *cmd = NULL;

    if (!argv[0] || !argv[1])
        return NULL;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && !cmd; i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            cmd = commands[i];
    if (!cmd || has_full_option(argv + 2) || !environment_is_local())
        return NULL;
    bool local = cmd->flags & CSN_CMD_SANDBOX
                     ? is_local_id(argv[2])
                     : !csn_config_file_exists() && !has_project(argv + 2);
    return local ? cmd : NULL;
}

/* Executes caisson-full from the directory of this program (a build directory, an unpacked
 * archive), else from the libexec directory. No environment variable changes that. Returns only
 * on failure, with errno set and the hint for the user. */
static const char *exec_full(char **argv)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(FULL));
    char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;

    if (slash) {
        memcpy(slash + 1, FULL, sizeof(FULL));
        execv(path, argv);
        if (errno != ENOENT)
            return NULL;
        if (access(path, F_OK) == 0) {
            errno = ENOENT;
            return "it needs the GNU C library, which this system does not have; run and exec "
                   "in a jail do not need it";
        }
    }
    execv(CSN_LIBEXEC_DIR "/" FULL, argv);
    return "caisson needs its other files in its own directory or in " CSN_LIBEXEC_DIR
           "; link to it instead of copying it";
}

int main(int argc, char **argv)
{
    const csn_command *cmd = find_command(argv);
    char message[256];

    if (cmd)
        return csn_cli_dispatch(cmd, argc - 2, argv + 2);
    const char *hint = exec_full(argv);
    snprintf(message, sizeof(message), "cannot run " FULL ": %s", csn_errno_text(errno));
    csn_cli_message(NULL, message, hint);
    return CSN_EXIT_FAILED;
}
