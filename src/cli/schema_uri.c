/* schema_uri.c: where editors find the JSON Schema of policy files.
 *
 * New files name it as "$schema". The program may lie in a tree that was moved, so the file is
 * looked for beside the program first. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/policy_schema.h"

#define SCHEMA_NAME "policy.schema.json"

/* The file beside this program, as tools/stage puts it; NULL if there is none. */
static char *find_beside(void)
{
    static const char rest[] = "/../../share/caisson/" SCHEMA_NAME;
    char path[4096 + sizeof(rest)];
    ssize_t n = readlink("/proc/self/exe", path, 4096);

    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n <= 0)
        return NULL;
    memcpy(path + n, rest + 1, sizeof(rest) - 1);
    return realpath(path, NULL);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("/-._~+@", c));
}

void csn_policy_schema_uri(csn_buf *to)
{
    csn_autofree char *beside = find_beside();

    csn_buf_puts(to, "file://");
    for (const char *p = beside ? beside : CSN_DATA_DIR "/" SCHEMA_NAME; *p; p++)
        if (is_plain(*p))
            csn_buf_putc(to, *p);
        else
            csn_buf_printf(to, "%%%02X", (unsigned char)*p);
}
