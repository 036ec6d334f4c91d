/* access.c: checks the token, Host and Origin of HTTP requests.
 *
 * Runs before the body is read. An attacker is another user of the machine, without a token, or
 * a web page that makes a browser connect to the loopback address. A page cannot choose Host
 * and Origin, so both must name this machine or a host that the user allowed. Invariants:
 * tokens are kept as hashes, compared in constant time and never printed; a token file that
 * others can read is refused. */
#include "httpd/access.h"

#include <errno.h>
#include <fcntl.h>
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

/* ---- token file ----------------------------------------------------------------- */

/* Creates the file with a new token. Returns 0 or errno; EEXIST if another process was
 * faster. */
static int create_file(const char *path)
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
        int e = create_file(path);
        if (e != 0)
            return csn_fail_errno(err, e, "cannot create the token file '%s'", path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return csn_fail_errno(err, errno, "cannot read the token file '%s'", path);
    if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & 077) != 0) {
        csn_status s =
            csn_fail(err, CSN_DENIED,
                     "the token file '%s' is readable by others or has another owner", path);
        return csn_error_advise(s, err, "run: chmod 600 %s", path);
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

static csn_status parse_tokens(csn_httpd_access *a, const char *path, const char *text,
                               csn_error **err)
{
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, "\r\n");
        if (len > 0 && (!is_token(p, len) || a->count == TOKENS_MAX))
            return csn_fail(err, CSN_INVALID,
                            "the token file '%s' must have lines of %d to %d printable "
                            "characters, at most %d",
                            path, TOKEN_MIN, TOKEN_MAX, TOKENS_MAX);
        if (len > 0)
            csn_hash_bytes(p, len, a->hash[a->count++]);
        p += len + strspn(p + len, "\r\n");
    }
    if (a->count == 0)
        return csn_fail(err, CSN_INVALID, "the token file '%s' is empty", path);
    return CSN_OK;
}

static csn_status read_tokens(csn_httpd_access *a, const char *path, csn_error **err)
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
    st = parse_tokens(a, path, text, err);
    explicit_bzero(text, sizeof(text));
    return st;
}

csn_status csn_httpd_access_new(const char *token_file, const char *const *hosts,
                                const char *bound, csn_httpd_access **ret, csn_error **err)
{
    static const char *const loopback_names[] = {"localhost", "127.0.0.1", "[::1]"};
    CSN_CLEANUP(csn_freep) csn_httpd_access *a = calloc(1, sizeof(*a));
    int e = a ? 0 : ENOMEM;

    csn_status st = e == 0 ? read_tokens(a, token_file, err) : CSN_OK;
    if (st < 0)
        return st;
    for (size_t i = 0; e == 0 && i < sizeof(loopback_names) / sizeof(loopback_names[0]); i++)
        e = csn_strv_push(&a->hosts, loopback_names[i]);
    for (; e == 0 && hosts && *hosts; hosts++)
        e = csn_strv_push(&a->hosts, *hosts);
    if (e == 0) {
        csn_autofree char *host = strdup(bound);
        char *colon = host ? strrchr(host, ':') : NULL;
        if (colon)
            *colon = '\0';
        e = host ? csn_strv_push(&a->hosts, host) : ENOMEM;
    }
    if (e != 0) {
        if (a)
            csn_strv_free(a->hosts);
        return csn_fail(err, CSN_NOMEM, "tokens");
    }
    *ret = CSN_STEAL(a);
    return CSN_OK;
}

void csn_httpd_access_free(csn_httpd_access *a)
{
    if (!a)
        return;
    csn_strv_free(a->hosts);
    free(a);
}

/* ---- checks ----------------------------------------------------------------------------- */

/* `text` is "name", "name:80" or "[::1]:80". */
static bool is_allowed_host(const csn_httpd_access *a, const char *text)
{
    const char *end = *text == '[' ? strchr(text, ']') : NULL;
    size_t len = end ? (size_t)(end - text) + 1 : strcspn(text, ":");
    const char *port = text + len;

    if (*port == ':' && (strspn(port + 1, "0123456789") != strlen(port + 1) || !port[1]))
        return false;
    if (*port && *port != ':')
        return false;
    for (char *const *h = a->hosts; *h; h++)
        if (strlen(*h) == len && strncasecmp(*h, text, len) == 0)
            return true;
    return false;
}

int csn_httpd_access_host(const csn_httpd_access *a, const char *host, const char *origin)
{
    if (!host || strlen(host) > HOST_MAX || !is_allowed_host(a, host))
        return 403;
    if (!origin)
        return 0;
    if (csn_str_starts(origin, "http://"))
        origin += 7;
    else if (csn_str_starts(origin, "https://"))
        origin += 8;
    else
        return 403;
    return strlen(origin) <= HOST_MAX && is_allowed_host(a, origin) ? 0 : 403;
}

/* Compares every hash to its last byte, so that the time reveals nothing about the tokens. */
int csn_httpd_access_token(const csn_httpd_access *a, const char *authorization)
{
    char hash[CSN_HASH_HEX];
    int found = -1;

    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return -1;
    const char *token = authorization + 7;
    token += strspn(token, " ");
    csn_hash_bytes(token, strlen(token), hash);
    for (unsigned i = 0; i < a->count; i++) {
        unsigned char differs = 0;
        for (size_t k = 0; k < CSN_HASH_HEX - 1; k++)
            differs |= (unsigned char)(hash[k] ^ a->hash[i][k]);
        found = differs == 0 ? (int)i : found;
    }
    return found;
}

unsigned csn_httpd_access_tokens(const csn_httpd_access *a)
{
    return a->count;
}
