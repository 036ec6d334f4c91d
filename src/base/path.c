/* path.c: join, compare and print paths as text; never resolve them.
 *
 * An agent controls the path: any bytes but NUL, any length, any `..`. Invariants: no component
 * is dropped or reordered, because only the kernel can resolve `link/../x`; comparison is by
 * whole components, so /base is not a parent of /basement. */
#include "base/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"

/* The message shows only the start of the path, which may be megabytes long. */
static csn_status too_long(const char *path, csn_error **err)
{
    char start[65];

    snprintf(start, sizeof(start), "%s", path);
    csn_autofree char *shown = csn_path_printable(start);
    return csn_fail(err, CSN_INVALID, "path %s... is longer than %u bytes", shown ? shown : "",
                    CSN_PATH_MAX - 1);
}

csn_status csn_path_join(const char *workdir, const char *home, const char *path, char **ret,
                         csn_error **err)
{
    const char *front = workdir, *rest = path;

    if (!path || !path[0])
        return csn_fail(err, CSN_INVALID, "path is empty");
    if (path[0] == '/') {
        front = "";
    } else if (path[0] == '~' && (path[1] == '/' || !path[1])) {
        front = home;
        rest = path + 1 + strspn(path + 1, "/");
    }
    if (!front)
        return csn_fail(err, CSN_INVALID, "path '%c...': there is no %s", path[0],
                        path[0] == '~' ? "home" : "working directory");
    size_t front_len = strlen(front), rest_len = strlen(rest);
    /* No slash for "~" alone (rest is empty), and none after a front that ends with one. */
    bool slash = front_len > 0 && front[front_len - 1] != '/' && rest_len > 0;
    /* The kernel's limit applies to the part below an open directory; the working directory is
     * not counted. */
    if (front_len >= CSN_PATH_MAX || rest_len >= CSN_PATH_MAX)
        return too_long(path, err);
    char *joined = malloc(front_len + slash + rest_len + 1);
    if (!joined)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    char *at = mempcpy(joined, front, front_len);
    if (slash)
        *at++ = '/';
    memcpy(at, rest, rest_len + 1);
    *ret = joined;
    return CSN_OK;
}

const char *csn_path_base(const char *path)
{
    const char *base = path; /* the start of the last component */

    for (const char *p = path; *p; p++)
        if (*p == '/' && p[1] && p[1] != '/')
            base = p + 1;
    return base;
}

char *csn_path_dir(const char *path)
{
    size_t len = (size_t)(csn_path_base(path) - path);

    if (len == 0)
        return strdup(path[0] == '/' ? "/" : ".");
    while (len > 1 && path[len - 1] == '/')
        len--;
    return strndup(path, len);
}

void csn_workspace_split(char *text, bool (*exists)(const char *path), const char **ret_inside,
                         const char **ret_mode)
{
    const char *inside = NULL, *mode = NULL;
    bool whole = exists(text);
    char *colon = whole ? NULL : strrchr(text, ':');

    if (colon && (strcmp(colon, ":rw") == 0 || strcmp(colon, ":ro") == 0 ||
                  strcmp(colon, ":cow") == 0)) {
        mode = colon + 1;
        *colon = '\0';
    }
    colon = whole ? NULL : strrchr(text, ':');
    if (colon && colon[1] == '/' && !exists(text)) {
        inside = colon + 1;
        *colon = '\0';
    }
    if (ret_inside)
        *ret_inside = inside;
    if (ret_mode)
        *ret_mode = mode;
}

bool csn_name_valid(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";

    if (!name || !name[0] || name[0] == '.' || name[0] == '-')
        return false;
    size_t len = strspn(name, allowed);
    return !name[len] && len <= CSN_NAME_BYTES_MAX;
}

bool csn_id_valid(const char *id)
{
    const char *tail = csn_name_valid(id) ? strrchr(id, '-') : NULL;
    const char *time = tail;

    if (!tail || strlen(tail + 1) != CSN_ID_RANDOM ||
        tail[1 + strspn(tail + 1, "0123456789abcdefghijklmnopqrstuvwxyz")])
        return false;
    while (time > id && time[-1] >= '0' && time[-1] <= '9')
        time--;
    return time < tail && time > id + 1 && time[-1] == '-';
}

/* Is the valid character at s (n bytes) an ASCII or C1 control? */
static bool is_control(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < ' ' || *s == 0x7f;
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

char *csn_path_printable(const char *path)
{
    const unsigned char *s = (const unsigned char *)(path ? path : "");
    size_t left = strlen((const char *)s);
    csn_autobuf out;
    csn_buf_init(&out, 4 * left + 2); /* every byte as \xNN, and the quotes */
    int e = csn_buf_putc(&out, '\'');

    while (left > 0 && e == 0) {
        size_t n = csn_utf8_char(s, left);
        if (n == 0 || is_control(s, n)) {
            n = 1;
            e = csn_buf_printf(&out, "\\x%02x", *s);
        } else if (*s == '\'' || *s == '\\') {
            e = csn_buf_printf(&out, "\\%c", *s);
        } else {
            e = csn_buf_append(&out, s, n);
        }
        s += n;
        left -= n;
    }
    if (e == 0)
        e = csn_buf_putc(&out, '\'');
    return e == 0 ? csn_buf_take(&out) : NULL;
}
