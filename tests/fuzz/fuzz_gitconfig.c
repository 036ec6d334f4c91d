/* fuzz_gitconfig.c: the input is a git config; also read as a git-rebase-todo and as a path.
 *
 * Beside not crashing: the same answer twice; a reason whenever the answer is no; a config that
 * is harmless stays so with a harmless line after it, and never does with one that runs a
 * program. A protected path is protected at any depth. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/gitconfig.h"
#include "policy/protected_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static bool with_end(const char *text, size_t len, const char *end)
{
    csn_autofree char *both = malloc(len + strlen(end) + 1);
    csn_autofree char *tree = NULL;

    if (!both)
        abort();
    memcpy(both, text, len);
    memcpy(both + len, end, strlen(end) + 1);
    return csn_gitconfig_is_harmless(both, len + strlen(end), NULL, &tree);
}

static void check_path(const uint8_t *data, size_t size)
{
    csn_autofree char *path = strndup((const char *)data, size), *deep = NULL;
    const char *rule = NULL;

    if (!path || asprintf(&deep, "a/b/%s", path) < 0)
        return;
    bool hit = csn_protected_name_match(path, &rule);
    must(hit == (rule != NULL));
    must(!hit || csn_protected_name_match_tree(path, NULL));
    must(csn_protected_name_match(deep, NULL) == hit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *text = malloc(size + 1); /* no room behind it for a reader too far */
    csn_autofree char *key = NULL, *tree = NULL, *again = NULL;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text = realloc(text, size > 0 ? size : 1);
    bool fine = csn_gitconfig_is_harmless(text, size, &key, &tree);
    must(fine == csn_gitconfig_is_harmless(text, size, NULL, &again));
    must((tree != NULL) == (again != NULL) && (fine || (key && !tree)));
    if (fine && size < 1000) {
        must(with_end(text, size, "\n\n[core]\n\tbare = false\n"));
        must(!with_end(text, size, "\n\n[core]\n\thooksPath = x\n"));
    }
    (void)csn_gittodo_is_harmless(text, size);
    check_path(data, size);
    return 0;
}
