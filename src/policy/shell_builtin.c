/* shell_builtin.c: decide which shell builtins can run a command or change its meaning.
 *
 * A builtin runs without a program file, so the command allow-list does not apply to it. Three
 * groups: harmless with any arguments; harmless with arguments that are checked here; and open,
 * which can run anything. The checks cover names that bash evaluates when they are arguments:
 * `test -v 'a[$(rm x)]'`, `printf -v`, `wait -p` and `RANDOM='a[$(rm x)]'` all run rm. */
#include <string.h>

#include "base/path.h"
#include "base/strv.h"
#include "policy/shell_line.h"

typedef const char *(*argument_check)(const csn_shell_word *args, size_t count);

static const char *check_test(const csn_shell_word *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!args[i].literal || strcmp(args[i].text, "-v") == 0 ||
            strcmp(args[i].text, "-R") == 0)
            return "test with -v, -R, a variable or a pattern can run code";
    return NULL;
}

static const char *check_printf(const csn_shell_word *args, size_t count)
{
    if (count == 0 || (args[0].literal && strcmp(args[0].text, "--") == 0))
        return NULL;
    if (args[0].text[0] == '-' || (args[0].known == 0 && !args[0].literal))
        return "printf can set a variable; begin with a literal format or --";
    return NULL;
}

/* export NAME, export NAME=value; an unquoted value may be split into further assignments. */
static const char *check_export(const csn_shell_word *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (args[i].splits || (!args[i].literal && !memchr(args[i].text, '=', args[i].known)))
            return "export with an unquoted variable can set any variable; quote it";
    return NULL;
}

/* The options that careful scripts set; others enable history or -k. */
static const char *check_set(const csn_shell_word *args, size_t count)
{
    static const char *const names[] = {"errexit", "nounset", "pipefail", "xtrace",
                                        "noglob",  "verbose", NULL};

    for (size_t i = 0; i < count; i++) {
        const char *s = args[i].text;
        bool flags = (*s == '-' || *s == '+') && s[1] && s[1 + strspn(s + 1, "efuvxo")] == '\0';
        if (!args[i].literal || (!flags && !csn_strv_has(names, s)))
            return "set with options other than e f u v x and their names";
    }
    return NULL;
}

static const char *check_wait(const csn_shell_word *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!args[i].literal || args[i].text[0] == '-')
            return "wait with an option or a variable can set a variable";
    return NULL;
}

static const struct {
    const char *name;
    argument_check check;
} checked[] = {{"[", check_test},        {"test", check_test}, {"printf", check_printf},
               {"export", check_export}, {"set", check_set},   {"wait", check_wait}};

static const char *const harmless[] = {
    ":",   "break",  "cd",    "continue", "dirs", "echo", "exit",   "false", "popd", "pushd",
    "pwd", "return", "shift", "times",    "true", "type", "ulimit", "umask", NULL};

static const char *const open_ended[] = {
    ".",       "alias",  "bind",  "builtin", "command", "compgen",   "complete",
    "declare", "enable", "eval",  "exec",    "fc",      "getopts",   "hash",
    "jobs",    "let",    "local", "mapfile", "read",    "readarray", "readonly",
    "shopt",   "source", "trap",  "typeset", "unalias", "unset",     NULL};

csn_shell_kind csn_shell_builtin(const csn_shell_word *words, size_t count,
                                 const char **ret_why)
{
    const char *name = words[0].text;

    for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++) {
        if (strcmp(checked[i].name, name) != 0)
            continue;
        *ret_why = checked[i].check(words + 1, count - 1);
        return *ret_why ? CSN_SHELL_REFUSED : CSN_SHELL_HARMLESS;
    }
    *ret_why = "this builtin can run or redefine any command";
    return csn_strv_has(harmless, name)     ? CSN_SHELL_HARMLESS
           : csn_strv_has(open_ended, name) ? CSN_SHELL_OPEN
                                            : CSN_SHELL_PROGRAM;
}

/* A name that ends in * is a prefix. LD_PRELOAD puts other code into a program that is on the
 * list; bash reads BASH_ENV and BASH_FUNC_ls%% at its start, SHELLOPTS sets any option, PS4 is
 * expanded, and the last four are evaluated as arithmetic when they are assigned. */
static const char *const variables[] = {"PATH",   "LD_*",      "BASH*",   "ENV",
                                        "PS4",    "SHELLOPTS", "HISTCMD", "OPTIND",
                                        "RANDOM", "SRANDOM",   NULL};

bool csn_shell_variable_protected(const char *name)
{
    size_t len = csn_shell_name_length(name);

    for (size_t i = 0; variables[i]; i++) {
        size_t n = strcspn(variables[i], "*");
        bool fits = variables[i][n] == '*' ? len >= n : len == n;
        if (fits && strncmp(name, variables[i], n) == 0)
            return true;
    }
    return false;
}

bool csn_shell_sets_protected(const char *command, const char *argument)
{
    const char *base = csn_path_base(command);

    return (strcmp(base, "env") == 0 || strcmp(base, "export") == 0) && strchr(argument, '=') &&
           csn_shell_variable_protected(argument);
}
