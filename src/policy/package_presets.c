/* package_presets.c: package managers and the domains of their public services.
 *
 * `bare` means that the service also answers at the domain itself. Only the ports for fetching
 * packages are opened. A row without "*." names one host. */
#include <stdio.h>
#include <string.h>

#include "policy/netrules.h"
#include "policy/package_config.h"

typedef struct preset_row {
    const char *preset;
    const char *below; /* "*.domain", or a host */
    bool bare;
    const char *ports;
} preset_row;

/* The first preset that covers a host is the one that a hint offers. */
static const preset_row rows[] = {
    {"apt", "*.debian.org", false, "80,443"},
    {"apt", "*.ubuntu.com", false, "80,443"},
    {"cargo", "*.crates.io", true, "443"},
    {"gem", "*.rubygems.org", true, "443"},
    {"github", "*.github.com", true, "22,443"},
    {"github", "*.githubusercontent.com", false, "443"},
    {"go", "*.golang.org", true, "443"},
    {"maven", "*.maven.org", false, "443"},
    {"maven", "*.maven.apache.org", false, "443"},
    {"npm", "*.npmjs.org", false, "443"},
    {"npm", "*.npmjs.com", false, "443"},
    {"npm", "*.yarnpkg.com", false, "443"},
    {"pip", "*.pypi.org", true, "443"},
    {"pip", "*.pythonhosted.org", false, "443"},
    {"uv", "*.pypi.org", true, "443"},
    {"uv", "*.pythonhosted.org", false, "443"},
    {"uv", "*.astral.sh", true, "443"},
    /* those that share a service with one above */
    {"bun", "*.npmjs.org", false, "443"},
    /* packagist has the metadata; it refers to archives of the code host */
    {"composer", "*.packagist.org", true, "443"},
    {"composer", "api.github.com", false, "443"},
    {"composer", "codeload.github.com", false, "443"},
    {"gradle", "*.gradle.org", false, "443"},
    {"gradle", "*.maven.org", false, "443"},
    {"gradle", "*.maven.apache.org", false, "443"},
    {"pnpm", "*.npmjs.org", false, "443"},
    {"poetry", "*.pypi.org", true, "443"},
    {"poetry", "*.pythonhosted.org", false, "443"},
    {"yarn", "*.npmjs.org", false, "443"},
    {"yarn", "*.yarnpkg.com", false, "443"},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

const char *csn_preset_names(void)
{
    return "apt, bun, cargo, composer, gem, github, go, gradle, maven, npm, pip, pnpm, poetry, "
           "uv, yarn";
}

bool csn_preset_known(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].preset, name) == 0)
            return true;
    return false;
}

static bool covers(const preset_row *r, const char *host)
{
    const char *dot = r->below + 1; /* ".domain" */
    size_t len = strlen(host), tail = strlen(dot);

    if (r->below[0] != '*')
        return strcmp(host, r->below) == 0;
    if (r->bare && strcmp(host, dot + 1) == 0)
        return true;
    return len > tail && strcmp(host + len - tail, dot) == 0;
}

const char *csn_preset_of_host(const char *host, const char *program)
{
    const char *first = NULL;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!covers(&rows[i], host))
            continue;
        if (program && strcmp(rows[i].preset, program) == 0)
            return rows[i].preset;
        first = first ? first : rows[i].preset;
    }
    return first;
}

void csn_preset_rules(const char *name, csn_registry_fn fn, void *ctx)
{
    char rule[CSN_NETRULE_TEXT];

    for (size_t i = 0; i < ROW_COUNT; i++) {
        const preset_row *r = &rows[i];
        if (strcmp(r->preset, name) != 0)
            continue;
        (void)snprintf(rule, sizeof(rule), "%s:%s", r->below, r->ports);
        fn(ctx, rule);
        if (!r->bare)
            continue;
        (void)snprintf(rule, sizeof(rule), "%s:%s", r->below + strlen("*."), r->ports);
        fn(ctx, rule);
    }
}
