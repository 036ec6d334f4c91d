/* agent_presets.c: the table of agent presets.
 *
 * A row is here if the agent does not work without it, and its reason says what for. Left out
 * on purpose:
 *  - files of the caller's home. Hooks, MCP servers and key helpers in an agent's settings are
 *    commands: an agent in a sandbox that could rewrite the real settings would run them on the
 *    host. A login that is shared would let it replace the account that the host uses, and a
 *    refresh token that two copies use is revoked;
 *  - hosts of telemetry, error reports and updates;
 *  - hosts on which anyone can store data (github.com, www.googleapis.com, buckets). --allow
 * and
 *    --packages add what a project needs.
 *
 * Sources of the hosts: vendors' pages where they name them, else descriptions by others and
 * the sources of codex and gemini-cli. None was tried with a real login. If an agent needs
 * another host, its denial names the option. */
#include "base/agent_presets.h"

#include <stddef.h>
#include <string.h>

#define HOME    "settings, history and login of its own; yours are not shared"
#define MODEL   "requests to the model"
#define KEY     "an API key, if it is set"
#define NPM     "plugins, and MCP servers that npx starts"
#define SIGN_IN "login and its renewal"

const csn_agent_row csn_agent_rows[] = {
    {"claude", "home", "agents/claude", HOME},
    {"claude", CSN_AGENT_LOGIN, ".claude/.credentials.json", "made by /login"},
    {"claude", "network.allow", "api.anthropic.com:443", MODEL},
    {"claude", "network.allow", "claude.ai:443", "login with a claude.ai account"},
    {"claude", "network.allow", "platform.claude.com:443", SIGN_IN},
    {"claude", "network.packages", "npm", NPM},
    {"claude", "env", "ANTHROPIC_API_KEY", KEY},
    {"claude", "env", "ANTHROPIC_AUTH_TOKEN", KEY},
    {"claude", "env", "CLAUDE_CODE_OAUTH_TOKEN",
     "a token of `claude setup-token`, if it is set"},
    {"claude", "env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
     "no telemetry, error reports and updates, whose hosts are refused"},

    {"codex", "home", "agents/codex", HOME},
    {"codex", CSN_AGENT_LOGIN, ".codex/auth.json", "made by codex login --device-auth"},
    {"codex", "network.allow", "api.openai.com:443", "requests to the model with an API key"},
    {"codex", "network.allow", "chatgpt.com:443",
     "requests to the model with a ChatGPT account"},
    {"codex", "network.allow", "auth.openai.com:443", SIGN_IN},
    {"codex", "network.packages", "npm", NPM},
    {"codex", "env", "OPENAI_API_KEY", KEY},
    {"codex", "env", "CODEX_API_KEY", KEY},

    {"gemini", "home", "agents/gemini", HOME},
    {"gemini", CSN_AGENT_LOGIN, ".gemini/oauth_creds.json", "made by \"Login with Google\""},
    {"gemini", "network.allow", "generativelanguage.googleapis.com:443",
     "requests to the model with an API key"},
    {"gemini", "network.allow", "cloudcode-pa.googleapis.com:443",
     "requests to the model with a Google account"},
    {"gemini", "network.allow", "oauth2.googleapis.com:443", SIGN_IN},
    {"gemini", "network.packages", "npm", NPM},
    {"gemini", "env", "GEMINI_API_KEY", KEY},
    {"gemini", "env", "GOOGLE_API_KEY", KEY},
    {"gemini", "env", "GOOGLE_CLOUD_PROJECT", "the project of a Google account, if it is set"},
    {"gemini", "env", "NO_BROWSER=true", "login with a code: there is no browser inside"},
    {NULL, NULL, NULL, NULL},
};

bool csn_agent_known(const char *name)
{
    for (const csn_agent_row *r = csn_agent_rows; r->agent; r++)
        if (strcmp(r->agent, name) == 0)
            return true;
    return false;
}
