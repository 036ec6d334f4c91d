/* config_file.c: finds, reads and merges the policy and configuration files of the user.
 *
 * The library parses them. Merging never loses a denial, because lists only grow. A default
 * file that exists but cannot be read or parsed is an error: a sandbox must not run with fewer
 * rules than the user wrote. The files belong to the user and are trusted. */
#include "cli/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/path.h"
#include "base/strv.h"
#include "cli/cli.h"

CSN_DEFINE_CLEANUP(csn_config, csn_config_free)

/* Appends copies of `more`. An empty list differs from NULL: an empty list of commands allows
 * no command. Returns false if out of memory. */
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

static bool overlay_option(csn_arena *a, const csn_option *o, csn_config *base,
                           const csn_config *over)
{
    switch (o->type) {
    case CSN_TYPE_STRING:
        return (*csn_option_string(o, base) =
                    csn_arena_strdup(a, *csn_option_string(o, over))) != NULL;
    case CSN_TYPE_LIST:
    case CSN_TYPE_ENV:
        return append_list(a, csn_option_list(o, base), *csn_option_list(o, over));
    case CSN_TYPE_RULES:
        return append_rules(a, base, over);
    case CSN_TYPE_FLAG:
        base->flags |= o->open_flag;
        return true;
    case CSN_TYPE_SIZE:
    case CSN_TYPE_COUNT:
    case CSN_TYPE_CPUS:
    case CSN_TYPE_DURATION:
        *csn_option_number(o, base) = *csn_option_number(o, over);
        return true;
    }
    return false;
}

csn_status csn_config_overlay(csn_arena *a, csn_config *base, const csn_config *over,
                              csn_error **err)
{
    for (const csn_option *o = csn_options; o->name; o++)
        if (csn_option_is_set(o, over) && !overlay_option(a, o, base, over))
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

/* Parses the profile; *ret stays NULL if the document, which is valid, has none of this name.
 */
static csn_status parse_profile(const char *text, size_t len, const char *source,
                                const char *name, csn_config **ret, csn_error **err)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *root = NULL;

    csn_status st = csn_json_parse(text, len, source, &root, err);
    const csn_jval *all = st == CSN_OK ? csn_jval_get(root, "profiles") : NULL;
    const csn_jval *one = all ? csn_jval_get(all, name) : NULL;
    if (!one)
        return st;
    csn_autofree char *json = csn_jval_dump(one);
    if (!json)
        return csn_fail(err, CSN_NOMEM, "%s", source);
    return csn_config_parse(json, strlen(json), source, ret, err);
}

csn_status csn_config_text_overlay(csn_arena *a, csn_config *base, const char *text, size_t len,
                                   const char *source, csn_profile *profile, csn_error **err)
{
    CSN_CLEANUP(csn_config_freep) csn_config *c = NULL, *special = NULL;

    csn_status st = csn_config_parse(text, len, source, &c, err);
    if (st == CSN_OK)
        st = csn_config_overlay(a, base, c, err);
    if (st < 0 || !profile || !profile->name)
        return st;
    st = parse_profile(text, len, source, profile->name, &special, err);
    if (st < 0 || !special)
        return st;
    profile->found = true;
    return csn_config_overlay(a, base, special, err);
}

csn_status csn_config_file_overlay(csn_arena *a, csn_config *base, const char *path,
                                   csn_profile *profile, csn_error **err)
{
    csn_autofree char *text = NULL;
    size_t len = 0;

    csn_status st = csn_cli_slurp(path, CSN_CONFIG_FILE_MAX, &text, &len, err);
    return st < 0 ? st : csn_config_text_overlay(a, base, text, len, path, profile, err);
}

/* Longer than any path the kernel accepts: an overlong path fails with ENAMETOOLONG instead of
 * being truncated to the path of another file. */
#define DEFAULT_PATH_MAX (CSN_PATH_MAX + 64u)

/* The user's configuration file; "" without a home directory. */
static void default_path(char ret[DEFAULT_PATH_MAX])
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    ret[0] = '\0';
    if (xdg && xdg[0] == '/')
        snprintf(ret, DEFAULT_PATH_MAX, "%s/caisson/config.json", xdg);
    else if (home && home[0] == '/')
        snprintf(ret, DEFAULT_PATH_MAX, "%s/.config/caisson/config.json", home);
}

/* True for a symlink that leads nowhere, and for a file in place of the directory. */
static bool dir_is_broken(const char *path)
{
    csn_autofree char *dir = csn_path_dir(path);
    struct stat st;

    return !dir || (lstat(dir, &st) == 0 && (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)));
}

/* Without the file a sandbox has fewer rules, so only a file that was never made counts as
 * missing. */
bool csn_config_file_exists(void)
{
    char path[DEFAULT_PATH_MAX];
    struct stat st;

    default_path(path);
    if (!path[0])
        return false;
    if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return true;
    return dir_is_broken(path);
}

/* The file decides what sandboxes may do, so it must be ours: sudo -E keeps the HOME of another
 * user. */
static csn_status check_owner(const char *path, csn_error **err)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        int e = errno;
        csn_status bad = csn_fail_errno(err, e, "cannot open '%s'", path);
        if (e == ENOENT || e == ENOTDIR)
            csn_error_advise(bad, err,
                             "a symlink in this path leads nowhere, or its "
                             "directory is a file: correct or remove that");
        return bad;
    }
    if (st.st_uid != 0 && st.st_uid != geteuid()) {
        csn_status bad =
            csn_fail(err, CSN_DENIED, "'%s' belongs to user %u, and we are user %u", path,
                     (unsigned)st.st_uid, (unsigned)geteuid());
        return csn_error_advise(bad, err, "%sset HOME or XDG_CONFIG_HOME to your own",
                                geteuid() == 0 ? "use sudo without -E, or " : "");
    }
    if (st.st_mode & S_IWOTH) {
        csn_status bad = csn_fail(err, CSN_DENIED, "other users can write to '%s'", path);
        return csn_error_advise(bad, err, "chmod o-w %s", path);
    }
    return CSN_OK;
}

csn_status csn_config_file_defaults(csn_arena *a, csn_config *base, csn_profile *profile,
                                    csn_error **err)
{
    char path[DEFAULT_PATH_MAX];

    default_path(path);
    if (!csn_config_file_exists())
        return CSN_OK;
    csn_status st = check_owner(path, err);
    return st < 0 ? st : csn_config_file_overlay(a, base, path, profile, err);
}
