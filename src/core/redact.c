/* redact.c: removes secrets from command lines for the audit log.
 *
 * The text is untrusted: malformed quoting is never an error; at worst too much or too little
 * is hidden. One pass from left to right; if a word names a secret, its value is replaced by
 * ***. Invariants: the cost is linear; the result is at most the input plus one *** per word.
 * audit.c logs only the names of variables, so their values do not get here. */
#include "core/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/limits.h"

#define HIDDEN "***"

/* A name that contains one of these is a secret's. Case is ignored; - equals _. */
static const char *const secret_words[] = {
    "password",   "passwd",      "passphrase", "secret",        "token",  "apikey", "api_key",
    "access_key", "private_key", "credential", "authorization", "cookie", "bearer", NULL};
/* Prefixes of the tokens of well-known services. */
static const char *const token_starts[] = {"ghp_", "gho_",  "ghs_",  "github_pat_", "glpat-",
                                           "sk-",  "xoxb-", "xoxp-", "AKIA",        "eyJ",
                                           "npm_", "hf_",   "AIza",  NULL};

static bool is_name_byte(char c)
{
    return isascii(c) && (isalnum((unsigned char)c) || c == '_' || c == '-');
}

static bool same_letter(char a, char b)
{
    a = a == '-' ? '_' : (char)tolower((unsigned char)a);
    return a == b;
}

static bool contains(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= len; i++) {
        size_t k = 0;
        while (k < n && same_letter(name[i + k], word[k]))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static bool names_secret(const char *name, size_t len)
{
    for (size_t i = 0; secret_words[i]; i++)
        if (contains(name, len, secret_words[i]))
            return true;
    /* "auth" must be a whole word at the end: --author is no secret */
    return len >= 4 && strncasecmp(name + len - 4, "auth", 4) == 0 &&
           (len == 4 || !isalnum((unsigned char)name[len - 5]));
}

/* Is it an environment variable (capitals, digits and _)? */
static bool names_variable(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isupper((unsigned char)name[i]) && name[i] != '_' &&
            !isdigit((unsigned char)name[i]))
            return false;
    return len > 0 && !isdigit((unsigned char)name[0]);
}

/* The length of a word with a known token prefix, else 0. */
static size_t token_length(const char *s)
{
    for (size_t i = 0; token_starts[i]; i++) {
        size_t n = strlen(token_starts[i]);
        if (strncmp(s, token_starts[i], n) != 0)
            continue;
        size_t len = n + strspn(s + n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789._-");
        return len >= n + 12 ? len : 0;
    }
    return 0;
}

/* The end of the value at p. The value of a header ends with its line or the quotes around it;
 * any other value ends with its word, which may consist of several quoted parts. */
static const char *value_end(const char *p, bool header)
{
    const char *stop = header ? "\"'\n" : " \t\n`;|&<>(),}";

    while (*p && !strchr(stop, *p)) {
        char quote = *p == '"' || *p == '\'' ? *p : '\0';
        p += *p == '\\' && p[1] ? 2 : 1;
        while (quote && *p && *p != quote)
            p += *p == '\\' && p[1] ? 2 : 1;
        p += quote && *p;
    }
    return p;
}

/* p is after the name of a secret: returns the start of its value, or NULL. */
static const char *value_start(const char *p, bool option, bool *ret_header)
{
    const char *q = p;

    *ret_header = false;
    if (*q == '"' || *q == '\'') /* "token": "x" */
        q++;
    const char *sign = q + strspn(q, " \t");
    if (*sign == ':' || *sign == '=') {
        *ret_header = *sign == ':' && q == p;
        return sign + 1 + strspn(sign + 1, " \t");
    }
    if (option && (*p == ' ' || *p == '\t')) /* --token x */
        return p + strspn(p, " \t");
    return NULL;
}

/* Keeps the name and hides the value: the log shows that a token was given, but not which. */
static int hide_value(csn_buf *out, const char *from, const char *value)
{
    int rc = csn_buf_append(out, from, (size_t)(value - from));

    return rc != 0 ? rc : csn_buf_puts(out, HIDDEN);
}

/* At "://": hides user:password before the @. Returns where to continue. */
static const char *hide_userinfo(csn_buf *out, const char *p, int *rc)
{
    const char *host = p + 3;
    size_t len = strcspn(host, "/?# \t\n\"'<>");
    const char *at = memrchr(host, '@', len);

    *rc = csn_buf_append(out, p, 3);
    if (!at)
        return host;
    if (*rc == 0)
        *rc = csn_buf_puts(out, HIDDEN);
    return at;
}

/* curl -u name:password */
static bool asks_login(const char *option, size_t len, const char *value)
{
    bool user = (len == 2 && strncmp(option, "-u", 2) == 0) ||
                (len == 6 && strncmp(option, "--user", 6) == 0);

    return user && memchr(value, ':', (size_t)(value_end(value, false) - value)) != NULL;
}

/* Copies or hides the word at p, which starts with a name byte. Returns where to continue. */
static const char *redact_word(csn_buf *out, const char *p, int *rc)
{
    size_t len = 0;
    bool header = false;

    while (is_name_byte(p[len]))
        len++;
    const char *end = p + len;
    size_t token = token_length(p);
    if (token > 0) {
        *rc = csn_buf_puts(out, HIDDEN);
        return p + token;
    }
    if (names_secret(p, len)) {
        bool spaced = p[0] == '-' || strncasecmp(p, "bearer", len) == 0;
        const char *value = value_start(end, spaced, &header);
        if (value && *value) {
            *rc = hide_value(out, p, value);
            return value_end(value, header && !strchr("\"'", *value));
        }
    }
    if (*end == '=' && names_variable(p, len) && end[1]) {
        *rc = hide_value(out, p, end + 1);
        return value_end(end + 1, false);
    }
    if (*end != '\0' && strchr(" \t=", *end) && asks_login(p, len, end + 1)) {
        *rc = hide_value(out, p, end + 1);
        return value_end(end + 1, false);
    }
    *rc = csn_buf_append(out, p, len);
    return end;
}

char *csn_redact_line(const char *line)
{
    csn_autobuf out;
    int rc = 0;

    csn_buf_init(&out, 8 * (size_t)CSN_ARGV_BYTES_MAX);
    for (const char *p = line; *p && rc == 0;) {
        if (strncmp(p, "://", 3) == 0)
            p = hide_userinfo(&out, p, &rc);
        else if (is_name_byte(*p))
            p = redact_word(&out, p, &rc);
        else
            rc = csn_buf_putc(&out, *p++);
    }
    return rc == 0 ? csn_buf_take(&out) : NULL;
}

/* In argv the value of --token is the whole next argument. */
char *csn_redact_arg(const char *const *argv, int i)
{
    const char *before = i > 0 ? argv[i - 1] : "";
    bool named =
        before[0] == '-' && !strchr(before, '=') && names_secret(before, strlen(before));

    if (asks_login(before, strlen(before), argv[i]))
        named = true;
    return named ? strdup(HIDDEN) : csn_redact_line(argv[i]);
}
