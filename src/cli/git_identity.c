/* git_identity.c: lets git commit in a sandbox under the caller's name.
 *
 * Two values of the caller's configuration, user.name and user.email, become the ~/.gitconfig
 * of the sandbox's private home. There the configuration of a repository overrides them, as it
 * does outside; variables such as GIT_AUTHOR_NAME would override the repository. Nothing else
 * of the configuration is taken: credentials, keys, includes and aliases stay outside, and an
 * included file is not read. */
#include "cli/git_identity.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/strv.h"

#define FILE_MAX  (64u * 1024u)
#define VALUE_MAX 256u

typedef struct identity {
    char name[VALUE_MAX], email[VALUE_MAX];
} identity;

/* Reads a file of the caller or of root. Returns its length, 0 if there is nothing to use. */
static size_t read_file(const char *path, char buf[FILE_MAX])
{
    csn_autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size >= FILE_MAX ||
        (st.st_uid != geteuid() && st.st_uid != 0))
        return 0;
    for (ssize_t got; n < FILE_MAX - 1 && (got = read(fd, buf + n, FILE_MAX - 1 - n)) > 0;)
        n += (size_t)got;
    return n;
}

/* Copies a value: quotes are removed, \" and \\ are understood, a comment ends it. A value that
 * is too long or has other escapes or control bytes is ignored. */
static void copy_value(const char *p, char ret[VALUE_MAX])
{
    char text[VALUE_MAX];
    size_t n = 0, keep = 0;
    bool quoted = false;

    for (; *p && (quoted || (*p != '#' && *p != ';')); p++) {
        if (*p == '"') {
            quoted = !quoted;
            continue;
        }
        if (*p == '\\' && (*++p != '"' && *p != '\\'))
            return;
        if (n == VALUE_MAX - 1 || iscntrl((unsigned char)*p))
            return;
        text[n++] = *p;
        if (quoted || *p != ' ')
            keep = n;
    }
    if (quoted)
        return;
    text[keep] = '\0';
    memcpy(ret, text, keep + 1);
}

/* One line `key = value` of the section [user]. */
static void take_line(const char *line, identity *id)
{
    size_t len = strcspn(line, " \t=");
    const char *value = line + len + strspn(line + len, " \t");

    if (*value != '=')
        return;
    value += 1 + strspn(value + 1, " \t");
    if (len == 4 && strncasecmp(line, "name", len) == 0)
        copy_value(value, id->name);
    else if (len == 5 && strncasecmp(line, "email", len) == 0)
        copy_value(value, id->email);
}

static void take_file(const char *path, identity *id)
{
    static char text[FILE_MAX];
    bool in_user = false;

    text[read_file(path, text)] = '\0';
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        line += strspn(line, " \t");
        if (*line == '[')
            in_user = strncasecmp(line, "[user]", 6) == 0;
        if (*line == '[' && in_user)
            line += 6 + strspn(line + 6, " \t");
        if (in_user)
            take_line(line, id);
    }
}

/* In the order in which git reads them: a later value overrides. */
static void take_files(identity *id)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char path[CSN_PATH_MAX + 64];

    if (!home || home[0] != '/')
        return;
    if (xdg && xdg[0] == '/')
        snprintf(path, sizeof(path), "%s/git/config", xdg);
    else
        snprintf(path, sizeof(path), "%s/.config/git/config", home);
    take_file(path, id);
    snprintf(path, sizeof(path), "%s/.gitconfig", home);
    take_file(path, id);
}

static size_t put_value(char *to, size_t size, const char *key, const char *value)
{
    size_t n = (size_t)snprintf(to, size, "\t%s = \"", key);

    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            to[n++] = '\\';
        to[n++] = *value;
    }
    to[n++] = '"';
    to[n++] = '\n';
    return n;
}

void csn_cli_git_identity(const csn_cli *c, const csn_config *config)
{
    char text[4 * VALUE_MAX + 64] = "[user]\n";
    size_t n = strlen(text);
    csn_write_result *r = NULL;
    identity id = {0};

    if (config->home || !csn_str_starts(csn_id(c->sb), "jail-"))
        return;
    take_files(&id);
    if (id.name[0])
        n += put_value(text + n, sizeof(text) - n, "name", id.name);
    if (id.email[0])
        n += put_value(text + n, sizeof(text) - n, "email", id.email);
    if (!id.name[0] && !id.email[0])
        return;
    if (csn_write(c->sb, "~/.gitconfig", text, n, NULL, &r, NULL) == CSN_OK)
        csn_write_result_free(r);
}
