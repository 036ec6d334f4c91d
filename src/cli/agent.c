/* agent.c: tells a user who starts an agent for the first time where its login belongs.
 *
 * The login of the caller's home is not shared (base/agent_presets.c), so the first start
 * inside asks for one. That is surprising without a word. The home's content is written by the
 * agent; only whether one file exists is looked at, by a file call of the sandbox. */
#include "cli/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/agent_presets.h"
#include "base/limits.h"

static bool exists(const csn_cli *c, const char *file)
{
    char path[CSN_PATH_MAX];
    csn_file_list *r = NULL;

    snprintf(path, sizeof(path), "~/%s", file);
    if (csn_stat(c->sb, path, 0, &r, NULL) < 0)
        return false;
    csn_file_list_free(r);
    return true;
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), n = strlen(end);

    return len > n && strcmp(s + len - n, end) == 0;
}

static bool is_key(const csn_agent_row *r)
{
    return strcmp(r->option, "env") == 0 &&
           (ends_with(r->value, "_KEY") || ends_with(r->value, "_TOKEN"));
}

void csn_cli_agent_note(const csn_cli *c, const csn_config *config, const char *home)
{
    const char *login = NULL, *key = NULL;

    for (const csn_agent_row *r = csn_agent_rows; config->agent && r->agent; r++) {
        if (strcmp(r->agent, config->agent) != 0)
            continue;
        const char *value = is_key(r) ? getenv(r->value) : NULL;
        if (value && value[0])
            return;
        key = !key && is_key(r) ? r->value : key;
        login = strcmp(r->option, CSN_AGENT_LOGIN) == 0 ? r->value : login;
    }
    if (login && !exists(c, login))
        csn_cli_note(c,
                     "%s has no login in its own home, %s; log in once inside, or set %s. Your "
                     "own home is not shared",
                     config->agent, home ? home : "~", key);
}
