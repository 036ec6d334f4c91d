/* access.c: who may speak to a server over HTTP.
 *
 * Called before a body is read. The headers are anybody's: another user of this machine who has
 * no token, or a web page that makes a browser connect to the loopback. A page cannot choose
 * Host and Origin, so both must name this machine (or what the user allowed); and it does not
 * have the token. What must hold: tokens are kept as hashes and compared in constant time, they
 * are printed nowhere, and a file that others can read is not accepted. */
#include "httpd/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/strv.h"

#define TOKENS_MAX 64
#define FILE_MAX   16384
#define TOKEN_MIN  16
#define TOKEN_MAX  512
#define RANDOM_LEN 32
#define HOST_MAX   256

struct csn_httpd_access {
    char hash[TOKENS_MAX][CSN_HASH_HEX];
    unsigned count;
    char **hosts;
};

/* ---- the file of tokens -------------------------------------------------------------------
 */

/* A new file with one new token; 0 or errno. Nobody who was faster is overwritten. */
static int make_file(const char *path)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[RANDOM_LEN];
    char text[2 * RANDOM_LEN + 1];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return errno ? errno : EIO;
    for (size_t i = 0; i < RANDOM_LEN; i++) {
        text[2 * i] = digits[random[i] >> 4];
        text[2 * i + 1] = digits[random[i] & 15];
    }
    text[2 * RANDOM_LEN] = '\n';
    csn_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n = fd < 0 ? -1 : write(fd, text, sizeof(text));
    int e = n == (ssize_t)sizeof(text) ? 0 : n < 0 ? errno : EIO;
    explicit_bzero(text, sizeof(text));
    return e;
}

static csn_status open_file(const char *path, int *ret, csn_error **err)
{
    struct stat st;
    csn_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 && errno == ENOENT) {
        int e = make_file(path);
        if (e != 0)
            return csn_fail_errno(err, e, "cannot make the token file '%s'", path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return csn_fail_errno(err, errno, "cannot read the token file '%s'", path);
    if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & 077) != 0) {
        csn_status s = csn_fail(
            err, CSN_DENIED, "the token file '%s' can be read by others, or is not ours", path);
        return csn_error_advise(s, err, "chmod 600 it");
    }
    *ret = csn_steal_fd(&fd);
    return CSN_OK;
}

static bool is_token(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] <= ' ' || s[i] > '~')
            return false;
    return len >= TOKEN_MIN && len <= TOKEN_MAX;
}

static csn_status take_tokens(csn_httpd_access *g, const char *path, const char *text,
                              csn_error **err)
{
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\r\n");
        if (len > 0 && (!is_token(p, len) || g->count == TOKENS_MAX))
            return csn_fail(err, CSN_INVALID,
                            "the token file '%s' must have lines of %d to %d printable "
                            "characters, at most %d",
                            path, TOKEN_MIN, TOKEN_MAX, TOKENS_MAX);
        if (len > 0)
            csn_hash_bytes(p, len, g->hash[g->count++]);
        p += len + strspn(p + len, "\r\n");
    }
    if (g->count == 0)
        return csn_fail(err, CSN_INVALID, "the token file '%s' is empty", path);
    return CSN_OK;
}

static csn_status read_tokens(csn_httpd_access *g, const char *path, csn_error **err)
{
    char text[FILE_MAX];
    csn_autofd int fd = -1;

    csn_status st = open_file(path, &fd, err);
    if (st < 0)
        return st;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return csn_fail_errno(err, errno, "cannot read the token file '%s'", path);
    text[n] = '\0';
    st = take_tokens(g, path, text, err);
    explicit_bzero(text, sizeof(text));
    return st;
}

csn_status csn_httpd_access_new(const char *token_file, const char *const *hosts,
                                const char *bound, csn_httpd_access **ret, csn_error **err)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    CSN_CLEANUP(csn_freep) csn_httpd_access *g = calloc(1, sizeof(*g));
    int e = g ? 0 : ENOMEM;

    csn_status st = e == 0 ? read_tokens(g, token_file, err) : CSN_OK;
    if (st < 0)
        return st;
    for (size_t i = 0; e == 0 && i < sizeof(own) / sizeof(own[0]); i++)
        e = csn_strv_push(&g->hosts, own[i]);
    for (; e == 0 && hosts && *hosts; hosts++)
        e = csn_strv_push(&g->hosts, *hosts);
    if (e == 0) {
        csn_autofree char *host = strdup(bound);
        char *colon = host ? strrchr(host, ':') : NULL;
        if (colon)
            *colon = '\0';
        e = host ? csn_strv_push(&g->hosts, host) : ENOMEM;
    }
    if (e != 0) {
        if (g)
            csn_strv_free(g->hosts);
        return csn_fail(err, CSN_NOMEM, "tokens");
    }
    *ret = CSN_STEAL(g);
    return CSN_OK;
}

void csn_httpd_access_free(csn_httpd_access *g)
{
    if (!g)
        return;
    csn_strv_free(g->hosts);
    free(g);
}

/* ---- asking -------------------------------------------------------------------------------
 */

/* "name", "name:80", "[::1]:80": is the name one of ours? */
static bool host_ok(const csn_httpd_access *g, const char *text)
{
    const char *end = *text == '[' ? strchr(text, ']') : NULL;
    size_t len = end ? (size_t)(end - text) + 1 : strcspn(text, ":");
    const char *port = text + len;

    if (*port == ':' && (strspn(port + 1, "0123456789") != strlen(port + 1) || !port[1]))
        return false;
    if (*port && *port != ':')
        return false;
    for (char *const *h = g->hosts; *h; h++)
        if (strlen(*h) == len && strncasecmp(*h, text, len) == 0)
            return true;
    return false;
}

int csn_httpd_access_host(const csn_httpd_access *g, const char *host, const char *origin)
{
    if (!host || strlen(host) > HOST_MAX || !host_ok(g, host))
        return 403;
    if (!origin)
        return 0;
    if (csn_str_starts(origin, "http://"))
        origin += 7;
    else if (csn_str_starts(origin, "https://"))
        origin += 8;
    else
        return 403;
    return strlen(origin) <= HOST_MAX && host_ok(g, origin) ? 0 : 403;
}

/* Hashes have one length, and every one of them is compared to its end. */
int csn_httpd_access_token(const csn_httpd_access *g, const char *authorization)
{
    char hash[CSN_HASH_HEX];
    int found = -1;

    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return -1;
    const char *token = authorization + 7;
    token += strspn(token, " ");
    csn_hash_bytes(token, strlen(token), hash);
    for (unsigned i = 0; i < g->count; i++) {
        unsigned char differs = 0;
        for (size_t k = 0; k < CSN_HASH_HEX - 1; k++)
            differs |= (unsigned char)(hash[k] ^ g->hash[i][k]);
        found = differs == 0 ? (int)i : found;
    }
    return found;
}

unsigned csn_httpd_access_tokens(const csn_httpd_access *g)
{
    return g->count;
}
