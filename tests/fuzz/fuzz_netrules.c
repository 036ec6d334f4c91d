/* fuzz_netrules.c: each line of the input is a rule (`-` in front: deny), a name (`?`) or an
 * address (`@`) that is asked about.
 *
 * Beside not crashing: what is allowed on a port can be looked up; a denied name stays refused
 * whatever else is allowed; an allow rule that was just offered as a hint opens what it was
 * offered for; a rule is within a policy that has it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strv.h"
#include "policy/netrules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static csn_netrules *compile(const char *mode, char **allow, char **deny)
{
    csn_netrules *r = NULL;
    csn_error *err = NULL;
    csn_status st =
        csn_netrules_new(mode, (const char *const *)allow, (const char *const *)deny, &r, &err);

    must((st == CSN_OK) == (r != NULL) && (st == CSN_OK) == (err == NULL));
    must(st == CSN_OK || st == CSN_INVALID || st == CSN_NOMEM);
    csn_error_free(err);
    return r;
}

static void check_hint(const csn_netverdict *v, char **deny, const csn_domain *d,
                       const csn_netaddr *a)
{
    csn_netverdict after;

    if (v->allowed || v->hint[0] == '\0')
        return;
    csn_netrules *r = compile(NULL, (char *[]){(char *)v->hint, NULL}, deny);
    must(r != NULL);
    if (d)
        csn_netrules_name(r, d, 443, &after);
    else
        csn_netrules_address(r, a, 443, &after);
    must(after.allowed);
    csn_netrules_free(r);
}

static void ask_name(const csn_netrules *r, char **deny, const char *text)
{
    csn_netverdict v, any;
    csn_domain d;

    if (!csn_domain_parse_lookup(text, strlen(text), &d, NULL))
        return;
    csn_netrules_name(r, &d, 443, &v);
    csn_netrules_lookup(r, &d, &any);
    must(!v.allowed || any.allowed);
    must(v.allowed == (v.why[0] == '\0') && any.allowed == (any.why[0] == '\0'));
    must(!v.allowed || v.rule);
    check_hint(&v, deny, &d, NULL);
}

static void ask_address(const csn_netrules *r, char **deny, const char *text)
{
    csn_netverdict literal, dial, own;
    csn_netaddr a;

    if (!csn_netaddr_parse(text, strlen(text), &a))
        return;
    csn_netrules_address(r, &a, 443, &literal);
    csn_netrules_dial(r, NULL, &a, 443, NULL, &dial);
    csn_netrules_dial(r, NULL, &a, 443, "this host", &own);
    must(!literal.allowed || dial.allowed);
    must(!own.allowed || dial.allowed);
    check_hint(&literal, deny, NULL, &a);
}

static void split(char *text, char ***allow, char ***deny, char ***ask)
{
    char *rest = text, *line;

    for (int i = 0; i < 64 && (line = strsep(&rest, "\n")); i++) {
        char ***to = line[0] == '-' ? deny : line[0] == '?' || line[0] == '@' ? ask : allow;
        if (line[0] != '\0' && csn_strv_push(to, to == deny ? line + 1 : line) != 0)
            abort();
    }
}

/* Keeps what parses, so that one bad line does not hide the rest. */
static void sift(char **list)
{
    size_t kept = 0;

    for (size_t i = 0; list && list[i]; i++) {
        csn_netrule rule;
        const char *why = NULL;
        char *item = list[i];
        list[i] = NULL;
        if (csn_netrule_parse(item, &rule, &why) && !strcasestr(item, "localhost"))
            list[kept++] = item;
        else
            free(item);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    csn_autofree char *text = strndup((const char *)data, size);
    char **allow = NULL, **deny = NULL, **ask = NULL;

    if (!text || size == 0)
        return 0;
    split(text, &allow, &deny, &ask);
    csn_netrules_free(compile(NULL, allow, deny));
    sift(allow);
    sift(deny);
    csn_netrules *r = compile(data[size - 1] & 1 ? "all" : "none", allow, deny);
    must(r != NULL);
    for (size_t i = 0; ask && ask[i]; i++)
        if (ask[i][0] == '?')
            ask_name(r, deny, ask[i] + 1);
        else
            ask_address(r, deny, ask[i] + 1);
    csn_netrules_free(r);
    r = compile(NULL, allow, NULL);
    must(r && csn_netrules_subset(r, "x", (const char *const *)allow, NULL) == CSN_OK);
    csn_netrules_free(r);
    csn_strv_free(allow);
    csn_strv_free(deny);
    csn_strv_free(ask);
    return 0;
}
