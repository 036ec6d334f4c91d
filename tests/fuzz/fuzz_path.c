/* fuzz_path.c: three lines: working directory, home, path. Any bytes.
 *
 * What must hold: joining drops nothing of the path, the two halves of a split are the whole,
 * being below survives joining, and what is shown holds no control byte and is valid UTF-8. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);

    return n >= k && strcmp(s + n - k, tail) == 0;
}

static void check_join(const char *workdir, const char *home, const char *path)
{
    csn_autofree char *joined = NULL;
    csn_error *err = NULL;

    if (csn_path_join(workdir, home, path, &joined, &err) < 0) {
        must(!joined && csn_error_code(err) == CSN_INVALID);
        must(!path[0] || strlen(workdir) + strlen(home) + strlen(path) >= 4094);
        csn_error_free(err);
        return;
    }
    must(strlen(joined) < 2 * 4096);
    if (path[0] != '~')
        must(ends_with(joined, path));
    if (path[0] == '/')
        must(strcmp(joined, path) == 0);
    else if (path[0] != '~')
        must(csn_path_below(joined, workdir) != NULL);
}

static void check_split(const char *path)
{
    csn_autofree char *dir = csn_path_dir(path);
    const char *base = csn_path_base(path);

    must(ends_with(path, base));
    must(base[0] || !path[0]);
    must(dir && dir[0] && (dir[1] == '\0' || dir[strlen(dir) - 1] != '/'));
    if (base != path && path[0] != '/')
        must(strncmp(path, dir, strlen(dir)) == 0);
}

static void check_printable(const char *path)
{
    csn_autofree char *shown = csn_path_printable(path);

    must(shown && csn_utf8_valid(shown, strlen(shown)));
    for (const char *p = shown; *p; p++)
        must((unsigned char)*p >= ' ' && *p != 0x7f);
    if (csn_name_valid(path))
        must(strlen(shown) == strlen(path) + 2 && !strchr(path, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *text = strndup((const char *)data, size);
    char *home = text ? strchr(text, '\n') : NULL;
    char *path = home ? strchr(home + 1, '\n') : NULL;

    if (!path)
        return 0;
    *home++ = *path++ = '\0';
    check_join(text, home, path);
    check_split(path);
    check_printable(path);
    return 0;
}
