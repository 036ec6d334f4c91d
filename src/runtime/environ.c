/* environ.c: builds the environment of commands.
 *
 * Commands get an allow-list of the caller's variables (language, time zone, terminal, PATH),
 * those of the sandbox's config, HOME and PWD. Everything else is left out, so that credentials
 * in the caller's environment do not reach an agent's commands by accident. HOME is always the
 * sandbox's home, regardless of config and call, so that file calls find what commands write to
 * their home. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strv.h"
#include "runtime/link.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* None of these carries a secret or makes a program load code. */
static const char *const allowed[] = {"PATH", "LANG",    "LANGUAGE", "TZ",       "TERM",
                                      "USER", "LOGNAME", "SHELL",    "COLORTERM"};
/* Allowed with the name of a locale as value. Others whose name begins with LC_ are not known
 * to libc: they carry what their user sends through SSH, which passes LC_*. */
static const char *const locales[] = {
    "LC_ALL",       "LC_CTYPE",          "LC_COLLATE",    "LC_MESSAGES", "LC_MONETARY",
    "LC_NUMERIC",   "LC_TIME",           "LC_ADDRESS",    "LC_NAME",     "LC_PAPER",
    "LC_TELEPHONE", "LC_IDENTIFICATION", "LC_MEASUREMENT"};

static size_t name_len(const char *assignment)
{
    return strcspn(assignment, "=");
}

static bool same_name(const char *a, const char *b)
{
    size_t n = name_len(a);

    return n == name_len(b) && memcmp(a, b, n) == 0;
}

/* The length of a part of a locale's name, or 0. */
static size_t part_len(const char *s, const char *bytes, size_t max)
{
    size_t n = strspn(s, bytes);

    return n <= max ? n : 0;
}

/* C, POSIX, or language[_TERRITORY][.codeset][@modifier]. */
static bool is_locale(const char *s)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz",
                      upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                      any[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t n = strncmp(s, "POSIX", 5) == 0 ? 5 : *s == 'C' ? 1 : part_len(s, lower, 3);

    if (n == 0)
        return *s == '\0';
    for (s += n; *s; s += n + 1) {
        n = *s == '_'   ? part_len(s + 1, upper, 3)
            : *s == '.' ? part_len(s + 1, any, 16)
            : *s == '@' ? part_len(s + 1, any, 16)
                        : 0;
        if (n == 0)
            return false;
    }
    return true;
}

static bool is_in(const char *const *names, size_t count, const char *assignment, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && memcmp(names[i], assignment, n) == 0)
            return true;
    return false;
}

static bool is_allowed(const char *assignment)
{
    size_t n = name_len(assignment);

    if (assignment[n] != '=')
        return false;
    return is_in(allowed, sizeof(allowed) / sizeof(allowed[0]), assignment, n) ||
           (is_in(locales, sizeof(locales) / sizeof(locales[0]), assignment, n) &&
            is_locale(assignment + n + 1));
}

/* Adds a variable or replaces the one of the same name. 0 or ENOMEM. */
static int put(char ***v, const char *assignment)
{
    for (size_t i = 0; *v && (*v)[i]; i++) {
        if (!same_name((*v)[i], assignment))
            continue;
        char *copy = strdup(assignment);
        if (!copy)
            return ENOMEM;
        free((*v)[i]);
        (*v)[i] = copy;
        return 0;
    }
    return csn_strv_push(v, assignment);
}

static int put_pair(char ***v, const char *name, const char *value)
{
    csn_autofree char *s = NULL;

    if (asprintf(&s, "%s=%s", name, value) < 0) {
        s = NULL;
        return ENOMEM;
    }
    return put(v, s);
}

/* An entry NAME takes the caller's value, if set; NAME=value is used as it is. */
static int put_config(char ***v, const char *const *config)
{
    int e = 0;

    for (size_t i = 0; config && config[i] && e == 0; i++) {
        const char *value;
        if (strchr(config[i], '='))
            e = put(v, config[i]);
        else if ((value = getenv(config[i])) != NULL)
            e = put_pair(v, config[i], value);
    }
    return e;
}

csn_status csn_runtime_environ_new(const csn_runtime *rt, char ***ret, csn_error **err)
{
    char **v = NULL;
    int e = put_pair(&v, "PATH", DEFAULT_PATH);

    for (char **env = environ; env && *env && e == 0; env++)
        if (is_allowed(*env))
            e = put(&v, *env);
    if (e == 0)
        e = put_config(&v, rt->config->env);
    if (e == 0)
        e = put_pair(&v, "HOME", rt->home.path ? rt->home.path : "/");
    if (e != 0) {
        csn_strv_free(v);
        return csn_fail(err, CSN_NOMEM, "environment");
    }
    *ret = v;
    return CSN_OK;
}

/* True if `extra`, from index `from` on, sets this name again. PWD is always set by us. */
static bool overridden(const char *assignment, const char *const *extra, size_t from)
{
    if (strncmp(assignment, "PWD=", 4) == 0)
        return true;
    for (size_t i = from; extra && extra[i]; i++)
        if (same_name(assignment, extra[i]))
            return true;
    return false;
}

csn_status csn_runtime_environ_merge(const csn_runtime *rt, const char *const *extra,
                                     const char *pwd, const char ***ret, char **ret_pwd,
                                     csn_error **err)
{
    const char *const *base = (const char *const *)rt->environ_base;
    size_t n = 0;
    csn_autofree char *pwd_text = NULL;
    const char **v = calloc(csn_strv_len(base) + csn_strv_len(extra) + 2, sizeof(*v));

    if (!v || (pwd && asprintf(&pwd_text, "PWD=%s", pwd) < 0)) {
        free(v);
        return csn_fail(err, CSN_NOMEM, "environment");
    }
    for (size_t i = 0; base && base[i]; i++)
        if (strncmp(base[i], "HOME=", 5) == 0 || !overridden(base[i], extra, 0))
            v[n++] = base[i];
    for (size_t i = 0; extra && extra[i]; i++)
        if (strncmp(extra[i], "HOME=", 5) != 0 && !overridden(extra[i], extra, i + 1))
            v[n++] = extra[i];
    if (pwd_text)
        v[n++] = pwd_text;
    *ret = v;
    *ret_pwd = CSN_STEAL(pwd_text);
    return CSN_OK;
}
