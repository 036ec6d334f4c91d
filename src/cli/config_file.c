/* config_file.c: policy and configuration files of the user.
 *
 * sandbox_opts.c lays them under the options, `policy check` explains one. The library parses
 * (unknown keys are refused there); here files are found, read with a ceiling, and merged.
 *
 * What must hold: merging never loses a denial (lists only grow), and a default file that is
 * there but unreadable or wrong is an error: running with fewer rules than the user wrote would
 * be the worst answer. The files are the user's own and trusted. */
#include "cli/config_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"
#include "cli/cli.h"

CSN_DEFINE_CLEANUP(csn_config, csn_config_free)

#define AT(field) offsetof(csn_config, field)

static const size_t texts[] = {AT(backend), AT(name),    AT(workspace), AT(workdir),
                               AT(home),    AT(network), AT(image),     AT(audit)};
static const size_t numbers[] = {AT(timeout_ms), AT(output_max), AT(lifetime_ms),
                                 AT(memory_max), AT(pids_max),   AT(cpu_milli),
                                 AT(disk_max),   AT(file_max)};
static const size_t lists[] = {AT(read),    AT(write),      AT(deny),      AT(commands),
                               AT(env),     AT(net_allow),  AT(net_deny),  AT(packages),
                               AT(publish), AT(host_ports), AT(workspaces)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Two lists as one in the arena. An empty list is not the same as none: of commands it means
 * that nothing may be run. false: out of memory. */
static bool append_list(csn_arena *a, const char *const **into, const char *const *more)
{
    size_t had = csn_strv_len(*into), n = csn_strv_len(more);

    if (!more || (n == 0 && *into))
        return true;
    const char **all = csn_arena_array(a, had + n + 1, sizeof(*all));
    if (!all)
        return false;
    for (size_t i = 0; *into && i < had; i++)
        all[i] = (*into)[i];
    for (size_t i = 0; i < n; i++) {
        all[had + i] = csn_arena_strdup(a, more[i]);
        if (!all[had + i])
            return false;
    }
    *into = all;
    return true;
}

static bool append_rules(csn_arena *a, csn_config *base, const csn_config *over)
{
    if (over->rule_count == 0)
        return true;
    size_t n = base->rule_count + over->rule_count;
    csn_rule *all = csn_arena_array(a, n, sizeof(*all));
    if (!all)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool old = i < base->rule_count;
        all[i] = old ? base->rules[i] : over->rules[i - base->rule_count];
        if (!old && !(all[i].path = csn_arena_strdup(a, all[i].path)))
            return false;
    }
    base->rules = all;
    base->rule_count = n;
    return true;
}

static bool overlay(csn_arena *a, csn_config *base, const csn_config *over)
{
    char *to = (char *)base;
    const char *from = (const char *)over;

    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *text = *(const char *const *)(from + texts[i]);
        char *copy = csn_arena_strdup(a, text);
        if (text && !copy)
            return false;
        if (text)
            *(const char **)(void *)(to + texts[i]) = copy;
    }
    for (size_t i = 0; i < COUNT(numbers); i++) {
        uint64_t n = *(const uint64_t *)(const void *)(from + numbers[i]);
        if (n != 0)
            *(uint64_t *)(void *)(to + numbers[i]) = n;
    }
    for (size_t i = 0; i < COUNT(lists); i++)
        if (!append_list(a, (const char *const **)(void *)(to + lists[i]),
                         *(const char *const *const *)(const void *)(from + lists[i])))
            return false;
    base->flags |= over->flags;
    return append_rules(a, base, over);
}

csn_status csn_config_overlay(csn_arena *a, csn_config *base, const csn_config *over,
                              csn_error **err)
{
    if (!overlay(a, base, over))
        return csn_fail(err, CSN_NOMEM, "configuration");
    return CSN_OK;
}

csn_status csn_config_file_read(const char *path, csn_config **ret, csn_error **err)
{
    csn_autofree char *text = NULL;
    size_t len = 0;

    csn_status st = csn_cli_slurp(path, CSN_CONFIG_FILE_MAX, &text, &len, err);
    if (st < 0)
        return st;
    return csn_config_parse(text, len, path, ret, err);
}

csn_status csn_config_file_overlay(csn_arena *a, csn_config *base, const char *path,
                                   csn_error **err)
{
    CSN_CLEANUP(csn_config_freep) csn_config *c = NULL;

    csn_status st = csn_config_file_read(path, &c, err);
    if (st < 0)
        return st;
    return csn_config_overlay(a, base, c, err);
}

csn_status csn_config_file_defaults(csn_arena *a, csn_config *base, csn_error **err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    char *path;

    if (xdg && xdg[0] == '/')
        path = csn_arena_printf(a, "%s/caisson/config.json", xdg);
    else if (home && home[0] == '/')
        path = csn_arena_printf(a, "%s/.config/caisson/config.json", home);
    else
        return CSN_OK;
    if (!path)
        return csn_fail(err, CSN_NOMEM, "configuration");
    if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return CSN_OK;
    return csn_config_file_overlay(a, base, path, err);
}
