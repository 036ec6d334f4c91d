/* flag_names.c: names options in messages of the library as the user typed them.
 *
 * The library names a value by its field in C or JSON (allowed_domains[0]). The user typed an
 * option and a value (--allowed-domain foo:bar), so a message begins with the option, and shows
 * the value if its own text does not. Only the start of a message is compared, and only options
 * that were typed are named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "cli/cli.h"

/* Where the start of a message comes from. Options of a new sandbox are named by
 * csn_sandbox_opts_fail, which knows the items that come from files. */
static const struct {
    const char *start, *flag;
    bool connected; /* only for commands on a sandbox that exists */
    bool shown;     /* only if the message shows the typed value */
} names[] = {
    {"allowed_domains", "allowed-domain", false, false},
    {"package_managers", "package-manager", false, false},
    {"cwd", "cwd", false, false},
    {"working directory", "cwd", false, true},
    {"working directory", "workdir", false, true},
    {"env", "env", true, false},
    {"the name of a session", "session", true, false},
    {"glob pattern", "glob", true, false},
    {"if_hash", "if-hash", true, false},
    {"name", "name", true, false},
    {"network.allow", "allow", true, false},
    {"network.deny", "deny", true, false},
    {"network.packages", "packages", true, false},
};

void csn_cli_name_flag(const csn_cli *c, csn_error *err, size_t len, const char *flag,
                       size_t nth)
{
    const char *value = c->args ? csn_args_typed(c->args, flag, nth) : NULL;
    const char *rest = csn_error_message(err) + len;
    csn_autofree char *text = NULL;
    char quoted[128] = "";

    if (value)
        csn_args_quote(value, quoted, sizeof(quoted));
    bool show = value && csn_error_code(err) == CSN_INVALID && !strstr(rest, value) &&
                !strstr(rest, quoted);
    if (asprintf(&text, "--%s%s%s%s", flag, show ? " '" : "", show ? quoted : "",
                 show ? "'" : "") < 0)
        text = NULL;
    if (text)
        csn_error_replace_start(err, len, text);
}

bool csn_cli_name_flags(const csn_cli *c, csn_error *err)
{
    const char *message = csn_error_message(err);
    bool connected = (c->cmd->flags & CSN_CMD_SANDBOX) != 0;

    for (size_t i = 0; c->args && message && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i].start), nth = 0;
        if (strncmp(message, names[i].start, len) != 0 || !message[len] ||
            !strchr("[: ", message[len]) || (names[i].connected && !connected))
            continue;
        if (message[len] == '[') {
            char *end = NULL;
            nth = strtoul(message + len + 1, &end, 10);
            len = *end == ']' ? (size_t)(end + 1 - message) : len;
        }
        const char *value = csn_args_typed(c->args, names[i].flag, nth);
        if (!value || (names[i].shown && !strstr(message, value)))
            continue;
        csn_cli_name_flag(c, err, len, names[i].flag, nth);
        return true;
    }
    return false;
}
