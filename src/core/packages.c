/* packages.c: expands the names of package managers to network rules.
 *
 * The rules are the domains of the public service and the hosts that the caller's tools are
 * configured for. Files read here widen the network, so a file that the sandbox can write is
 * never read: not the project's own configuration (.npmrc, .cargo/config.toml, pom.xml), and
 * not a file of the user that lies below the workspace or another writable share. The path of
 * the open descriptor is checked. A missing or malformed file is not an error.
 *
 * A host that this configuration names is the index that the user selected, so its name may
 * resolve to a private address (/private, policy/netrules.h), and a port of localhost is lent.
 * The hosts of the public services get neither, even if the configuration repeats them: their
 * DNS servers have no reason to name an address of the local network. */
#include "core/packages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/strv.h"
#include "policy/netrules.h"
#include "policy/package_config.h"

#define RULES_MAX     1024u /* from all files and variables together */
#define DIR_FILES_MAX 256u  /* of one sources.list.d */

/* A file: `file` below $var or, if $var is not set, below `dir`, which is absolute or relative
 * to the home directory. "*.x" means every file with that suffix. */
typedef struct file_source {
    const char *preset;
    csn_registry_format format;
    const char *var, *dir, *file;
} file_source;

#define XDG "XDG_CONFIG_HOME", ".config"
static const file_source files[] = {
    {"npm", CSN_REGISTRY_NPMRC, "npm_config_userconfig", ".npmrc", ""},
    {"npm", CSN_REGISTRY_NPMRC, "npm_config_globalconfig", "/etc/npmrc", ""},
    {"npm", CSN_REGISTRY_NPMRC, NULL, "/usr/etc/npmrc", ""},
    {"npm", CSN_REGISTRY_NPMRC, NULL, "/usr/local/etc/npmrc", ""},
    {"npm", CSN_REGISTRY_YARNRC, NULL, ".yarnrc", ""},
    {"npm", CSN_REGISTRY_YARNRC, NULL, ".yarnrc.yml", ""},
    {"pnpm", CSN_REGISTRY_NPMRC, XDG, "pnpm/rc"},
    {"bun", CSN_REGISTRY_NPMRC, XDG, ".bunfig.toml"}, /* registry = "..." */
    {"bun", CSN_REGISTRY_NPMRC, NULL, ".bunfig.toml", ""},
    {"pip", CSN_REGISTRY_PIP, "PIP_CONFIG_FILE", NULL, ""},
    {"pip", CSN_REGISTRY_PIP, XDG, "pip/pip.conf"},
    {"pip", CSN_REGISTRY_PIP, NULL, ".pip/pip.conf", ""},
    {"pip", CSN_REGISTRY_PIP, NULL, "/etc/pip.conf", ""},
    {"pip", CSN_REGISTRY_PIP, NULL, "/etc/xdg/pip/pip.conf", ""},
    {"uv", CSN_REGISTRY_UV, "UV_CONFIG_FILE", NULL, ""},
    {"uv", CSN_REGISTRY_UV, XDG, "uv/uv.toml"},
    {"uv", CSN_REGISTRY_UV, NULL, "/etc/uv/uv.toml", ""},
    {"uv", CSN_REGISTRY_UV, NULL, "/etc/xdg/uv/uv.toml", ""},
    {"cargo", CSN_REGISTRY_CARGO, "CARGO_HOME", ".cargo", "config.toml"},
    {"cargo", CSN_REGISTRY_CARGO, "CARGO_HOME", ".cargo", "config"},
    {"go", CSN_REGISTRY_GOENV, "GOENV", ".config/go/env", ""},
    {"maven", CSN_REGISTRY_MAVEN, NULL, ".m2", "settings.xml"},
    {"maven", CSN_REGISTRY_MAVEN, "MAVEN_HOME", NULL, "conf/settings.xml"},
    {"maven", CSN_REGISTRY_MAVEN, NULL, "/etc/maven/settings.xml", ""},
    {"apt", CSN_REGISTRY_APT, NULL, "/etc/apt/sources.list", ""},
    {"apt", CSN_REGISTRY_APT, NULL, "/etc/apt/sources.list.d", "*.list"},
    {"apt", CSN_REGISTRY_DEB822, NULL, "/etc/apt/sources.list.d", "*.sources"},
    {"gem", CSN_REGISTRY_GEM, "GEMRC", NULL, ""},
    {"gem", CSN_REGISTRY_GEM, NULL, ".gemrc", ""},
    {"gem", CSN_REGISTRY_GEM, XDG, "gem/gemrc"},
    {"gem", CSN_REGISTRY_GEM, NULL, "/etc/gemrc", ""},
    {"gem", CSN_REGISTRY_BUNDLE, "BUNDLE_USER_CONFIG", ".bundle/config", ""},
};

/* Variables whose values contain addresses; a name that ends in * is a prefix. */
static const struct {
    const char *preset, *name;
} variables[] = {
    {"npm", "npm_config_registry"},
    {"npm", "npm_config_@*"},
    {"npm", "YARN_REGISTRY"},
    {"npm", "YARN_NPM_REGISTRY_SERVER"},
    {"bun", "BUN_CONFIG_REGISTRY"},
    {"pip", "PIP_INDEX_URL"},
    {"pip", "PIP_EXTRA_INDEX_URL"},
    {"pip", "PIP_FIND_LINKS"},
    {"uv", "UV_INDEX_URL"},
    {"uv", "UV_EXTRA_INDEX_URL"},
    {"uv", "UV_DEFAULT_INDEX"},
    {"uv", "UV_INDEX"},
    {"uv", "UV_FIND_LINKS"},
    {"uv", "UV_PYTHON_INSTALL_MIRROR"},
    {"cargo", "CARGO_REGISTRIES_*"},
    {"cargo", "CARGO_REGISTRY_INDEX"},
    {"go", "GOPROXY"},
    {"go", "GOSUMDB"},
    {"gem", "BUNDLE_MIRROR__*"},
};

/* Managers that also read the configuration of another. */
static const struct {
    const char *preset, *other;
} readers[] = {{"yarn", "npm"}, {"pnpm", "npm"}, {"bun", "npm"}};

typedef struct expansion {
    char ***rules;
    char ***env; /* not NULL: collect variables instead of rules */
    const csn_config *config;
    csn_netrules *service; /* those of the preset's public service */
    char **writable;       /* real paths of directories that the sandbox may write */
    size_t count;
    bool nomem;
} expansion;

extern char **environ;

static void add_rule(void *ctx, const char *rule)
{
    expansion *g = ctx;

    if (g->nomem || g->count >= RULES_MAX || csn_strv_has((const char *const *)*g->rules, rule))
        return;
    g->nomem = csn_strv_push(g->rules, rule) != 0;
    g->count++;
}

/* A rule that the configuration adds to those of the public service. */
static void add_configured(void *ctx, const char *text)
{
    expansion *g = ctx;
    const char *const one[] = {text, NULL};
    char own[CSN_NETRULE_TEXT + sizeof("/private")];
    csn_netrule rule;

    if (csn_netrules_subset(g->service, "packages", one, NULL) == CSN_OK ||
        !csn_netrule_parse(text, &rule, NULL))
        return;
    bool named = rule.kind == CSN_NETRULE_NAME && !csn_netrule_is_loopback(&rule);
    (void)snprintf(own, sizeof(own), "%s%s", text, named ? "/private" : "");
    add_rule(g, own);
}

/* ---- variables -------------------------------------------------------------------------- */

static bool names_variable(const char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, n) == 0 && (env[i][n] == '\0' || env[i][n] == '='))
            return true;
    return false;
}

/* A variable would take precedence over the project's own .npmrc. */
static bool project_decides(const expansion *g, const char *name)
{
    csn_autofree char *path = NULL;

    if (strcmp(name, "npm_config_registry") != 0)
        return false;
    if (asprintf(&path, "%s/.npmrc", g->config->workspace ? g->config->workspace : ".") < 0) {
        path = NULL;
        return true;
    }
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The first source wins, as in the tools: a variable, then the user's file, then the system's.
 */
static void add_setting(void *ctx, const char *name, const char *value)
{
    expansion *g = ctx;
    csn_autofree char *pair = NULL;

    if (g->nomem || names_variable(g->config->env, name) || project_decides(g, name) ||
        names_variable((const char *const *)*g->env, name))
        return;
    if (asprintf(&pair, "%s=%s", name, value) < 0)
        pair = NULL;
    g->nomem = !pair || csn_strv_push(g->env, pair) != 0;
}

/* Not those whose name is a prefix: CARGO_REGISTRIES_* has tokens as well. A value without an
 * address is a directory, except for go (GOPROXY=off). */
static void pass_variable(expansion *g, const char *name, const char *value, bool go)
{
    char clean[CSN_REGISTRY_VALUE_MAX];

    if (!strchr(name, '*') && (go || strstr(value, "://")) &&
        csn_registry_clean(value, strlen(value), clean, sizeof(clean)))
        add_setting(g, name, clean);
}

/* ---- directories that the sandbox may write --------------------------------------------- */

/* Directories that do not exist are skipped: they contain no files. */
static void add_writable(expansion *g, const char *path, size_t len)
{
    const char *home = getenv("HOME");
    csn_autofree char *whole = NULL, *real = NULL;
    size_t tilde = len > 0 && path[0] == '~' && (len == 1 || path[1] == '/');

    if (asprintf(&whole, "%s%.*s", tilde && home ? home : "", (int)(len - tilde),
                 path + tilde) < 0) {
        whole = NULL;
        g->nomem = true;
        return;
    }
    real = realpath(whole, NULL);
    if (real && csn_strv_push(&g->writable, real) != 0)
        g->nomem = true;
}

static void find_writable(expansion *g, const csn_config *c)
{
    const char *base = c->workspace ? c->workspace : ".";

    add_writable(g, base, strlen(base));
    if (c->home)
        add_writable(g, c->home, strlen(c->home));
    for (size_t i = 0; c->write && c->write[i]; i++)
        add_writable(g, c->write[i], strlen(c->write[i]));
    for (size_t i = 0; c->workspaces && c->workspaces[i]; i++)
        add_writable(g, c->workspaces[i], strcspn(c->workspaces[i], ":"));
    for (size_t i = 0; i < c->rule_count; i++) {
        const char *path = c->rules[i].path;
        size_t n = strcspn(path, "*?[{\\");
        if (!c->rules[i].allow || !(c->rules[i].ops & CSN_OP_WRITE))
            continue;
        while (path[n] != '\0' && n > 1 && path[n - 1] != '/')
            n--;
        add_writable(g, path, n);
    }
}

/* On errors the file counts as writable. */
static bool may_be_written(const expansion *g, int fd)
{
    char link[64], path[PATH_MAX];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || (size_t)n >= sizeof(path) - 1)
        return true;
    path[n] = '\0';
    for (size_t i = 0; g->writable && g->writable[i]; i++)
        if (csn_path_below(path, g->writable[i]))
            return true;
    return false;
}

/* ---- reading ------------------------------------------------------------------------------
 */

static size_t read_some(int fd, char *buf, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t n = read(fd, buf + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return have;
}

static void read_file(expansion *g, int dir, const char *path, csn_registry_format format)
{
    csn_autofd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || may_be_written(g, fd))
        return;
    size_t size =
        st.st_size < (off_t)CSN_REGISTRY_TEXT_MAX ? (size_t)st.st_size : CSN_REGISTRY_TEXT_MAX;
    csn_autofree char *text = malloc(size ? size : 1);
    if (!text)
        g->nomem = true;
    else if (g->env)
        csn_registry_settings(format, text, read_some(fd, text, size), add_setting, g);
    else
        csn_registry_hosts(format, text, read_some(fd, text, size), add_configured, g);
}

static void read_dir(expansion *g, const char *path, const char *ending,
                     csn_registry_format format)
{
    DIR *dir = opendir(path);
    struct dirent *e;

    for (size_t i = 0; dir && i < DIR_FILES_MAX && (e = readdir(dir)); i++) {
        size_t n = strlen(e->d_name), end = strlen(ending);
        if (n > end && strcmp(e->d_name + n - end, ending) == 0)
            read_file(g, dirfd(dir), e->d_name, format);
    }
    if (dir)
        closedir(dir);
}

/* npm reads its variables in either case. */
static bool is_variable(const char *entry, const char *name)
{
    size_t n = strcspn(name, "*");
    bool caseless = strncmp(name, "npm_", 4) == 0;

    if ((caseless ? strncasecmp(entry, name, n) : strncmp(entry, name, n)) != 0)
        return false;
    return name[n] == '*' || entry[n] == '=';
}

static const char *variable(const char *name)
{
    for (char **e = environ; e && *e; e++)
        if (is_variable(*e, name) && (*e)[strlen(name) + 1])
            return *e + strlen(name) + 1;
    return NULL;
}

/* Relative paths are skipped: the caller's directory is usually the workspace. */
static void read_source(expansion *g, const file_source *s)
{
    const char *home = getenv("HOME"), *given = s->var ? variable(s->var) : NULL;
    csn_autofree char *base = NULL, *path = NULL;
    int rc = 0;

    if (!given && !s->dir)
        return;
    if (given || s->dir[0] == '/')
        base = strdup(given ? given : s->dir);
    else if (home)
        rc = asprintf(&base, "%s/%s", home, s->dir);
    if (rc < 0)
        base = NULL;
    if (!base || base[0] != '/')
        return;
    if (s->file[0] == '*') {
        read_dir(g, base, s->file + 1, s->format);
    } else if (asprintf(&path, "%s%s%s", base, s->file[0] ? "/" : "", s->file) < 0) {
        path = NULL;
        g->nomem = true;
    } else {
        read_file(g, AT_FDCWD, path, s->format);
    }
}

static void read_variables(expansion *g, const char *preset)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (strcmp(variables[i].preset, preset) != 0)
            continue;
        for (char **e = environ; e && *e; e++) {
            const char *value = strchr(*e, '=');
            if (!value || !is_variable(*e, variables[i].name))
                continue;
            bool go = strcmp(preset, "go") == 0; /* parsed like its file of NAME=value */
            const char *text = go ? *e : value + 1;
            if (g->env) {
                pass_variable(g, variables[i].name, value + 1, go);
                continue;
            }
            csn_registry_hosts(go ? CSN_REGISTRY_GOENV : CSN_REGISTRY_URLS, text, strlen(text),
                               add_configured, g);
        }
    }
}

csn_status csn_packages_check(const char *const *names, const char *what, csn_error **err)
{
    for (size_t i = 0; names && names[i]; i++) {
        if (csn_preset_known(names[i]))
            continue;
        csn_autofree char *shown = csn_path_printable(names[i]);
        csn_status st = csn_fail(err, CSN_INVALID, "%s[%zu]: %s is not a known package manager",
                                 what, i, shown ? shown : "it");
        char near[CSN_NEAREST_MAX];
        if (csn_nearest_in(names[i], csn_preset_names(), near))
            return csn_error_advise(st, err, "did you mean %s? known package managers: %s",
                                    near, csn_preset_names());
        return csn_error_advise(st, err, "known package managers: %s", csn_preset_names());
    }
    return CSN_OK;
}

static void read_configuration(expansion *g, const char *preset)
{
    read_variables(g, preset);
    for (size_t k = 0; k < sizeof(files) / sizeof(files[0]) && !g->nomem; k++)
        if (strcmp(files[k].preset, preset) == 0)
            read_source(g, &files[k]);
}

static void read_all(expansion *g, const char *preset)
{
    read_configuration(g, preset);
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
        if (strcmp(readers[i].preset, preset) == 0)
            read_configuration(g, readers[i].other);
}

static void expand(expansion *g, const char *preset)
{
    char **service = NULL;
    expansion own = {.rules = &service};

    csn_preset_rules(preset, add_rule, &own);
    g->nomem =
        g->nomem || own.nomem ||
        csn_netrules_new(NULL, (const char *const *)service, NULL, &g->service, NULL) < 0;
    for (size_t i = 0; !g->nomem && service && service[i]; i++)
        add_rule(g, service[i]);
    csn_strv_free(service);
    if (g->nomem)
        return;
    read_all(g, preset);
    csn_netrules_free(g->service);
    g->service = NULL;
}

csn_status csn_packages_rules(const csn_config *config, const char *const *names, char ***rules,
                              csn_error **err)
{
    expansion g = {.rules = rules, .config = config};
    csn_status st = csn_packages_check(names, "packages", err);

    if (st < 0 || !names || !names[0])
        return st;
    find_writable(&g, config);
    for (size_t i = 0; names[i] && !g.nomem; i++)
        expand(&g, names[i]);
    csn_strv_free(g.writable);
    return g.nomem ? csn_fail(err, CSN_NOMEM, "packages") : CSN_OK;
}

csn_status csn_packages_env(const csn_config *config, const char *const *names, char ***env,
                            csn_error **err)
{
    expansion g = {.env = env, .config = config};

    find_writable(&g, config);
    for (size_t i = 0; names && names[i] && !g.nomem; i++)
        read_all(&g, names[i]);
    csn_strv_free(g.writable);
    return g.nomem ? csn_fail(err, CSN_NOMEM, "packages") : CSN_OK;
}
