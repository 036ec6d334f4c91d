/* domain.c: parse a domain name into its canonical form, or give the reason why it has none.
 *
 * Used for rules and, in the gateway, for every name that a program in the sandbox looks up or
 * sends; an attacker controls all bytes. Invariants: an accepted name is at most 253 bytes of
 * a-z 0-9 - . (and _ for lookups) without empty labels, so it can be compared byte by byte; a
 * name that some resolver would take for an address (127.1, 0x7f.1, 017700000001) is
 * refused. */
#include "policy/domain.h"

#include <stdint.h>
#include <string.h>

#define ACE_PREFIX     "xn--"
#define ACE_PREFIX_LEN 4u

/* ---- A-labels ---- */

/* Parameters of punycode, RFC 3492 section 5. */
enum { BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700, FIRST_BIAS = 72, FIRST_N = 0x80 };
#define CODE_POINT_MAX 0x10ffffu

static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
    uint32_t k = 0;

    delta = first ? delta / DAMP : delta / 2;
    delta += delta / count;
    for (; delta > ((BASE - TMIN) * TMAX) / 2; k += BASE)
        delta /= BASE - TMIN;
    return k + (BASE - TMIN + 1) * delta / (delta + SKEW);
}

static int digit_of(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= '0' && c <= '9' ? c - '0' + 26 : -1;
}

/* Reads one variable-length integer; at most 59 digits. NULL: malformed or too large. */
static const char *read_delta(const char *p, const char *end, uint32_t bias, uint64_t *i)
{
    uint64_t weight = 1;

    for (uint32_t k = BASE;; k += BASE) {
        int digit = p < end ? digit_of(*p++) : -1;
        uint32_t t = k <= bias ? TMIN : k >= bias + TMAX ? TMAX : k - bias;
        if (digit < 0)
            return NULL;
        *i += (uint64_t)digit * weight;
        if (*i > UINT32_MAX)
            return NULL;
        if ((uint32_t)digit < t)
            return p;
        weight *= BASE - t;
        if (weight > UINT32_MAX)
            return NULL;
    }
}

/* Does the text after "xn--" decode to valid code points? The caller has refused a hyphen at
 * the end. */
static bool is_punycode(const char *text, size_t len)
{
    const char *end = text + len, *p = memrchr(text, '-', len);
    uint32_t n = FIRST_N, bias = FIRST_BIAS, count = p ? (uint32_t)(p - text) : 0;
    uint64_t i = 0;

    p = p ? p + 1 : text;
    for (bool first = true; p < end; first = false) {
        uint64_t before = i;
        p = read_delta(p, end, bias, &i);
        if (!p)
            return false;
        count++;
        bias = adapt((uint32_t)(i - before), count, first);
        if (i / count > CODE_POINT_MAX - n)
            return false;
        n += (uint32_t)(i / count);
        if (n < 0xa0 || (n >= 0xd800 && n <= 0xdfff)) /* controls; surrogates */
            return false;
        i = i % count + 1;
    }
    return true;
}

/* ---- labels ---- */

static bool is_number(const char *label, size_t len)
{
    size_t digits = strspn(label, "0123456789");

    if (digits >= len)
        return true;
    return len >= 2 && label[0] == '0' && label[1] == 'x' &&
           2 + strspn(label + 2, "0123456789abcdef") >= len;
}

static const char *label_fault(const char *label, size_t len)
{
    if (len == 0)
        return "it has an empty label";
    if (len > CSN_DOMAIN_LABEL_MAX)
        return "a label is longer than 63 bytes";
    if (label[0] == '-' || label[len - 1] == '-')
        return "a label starts or ends with a hyphen";
    if (len >= ACE_PREFIX_LEN && memcmp(label, ACE_PREFIX, ACE_PREFIX_LEN) == 0 &&
        !is_punycode(label + ACE_PREFIX_LEN, len - ACE_PREFIX_LEN))
        return "a label starts with xn-- but is not a valid A-label";
    return NULL;
}

/* The byte in lower case; '\0' and *why if a name cannot contain it. */
static char fold(char c, bool underscore, const char **why)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.')
        return c;
    if (c == '_' && underscore)
        return c;
    if (c == '\0')
        *why = "it has a NUL byte";
    else if ((unsigned char)c >= 0x80)
        *why = "it is not ASCII; write international names as A-labels (xn--...)";
    else if (c == '_')
        *why = "an underscore is in no host name; a wildcard covers such names";
    else
        *why = "only letters, digits, hyphens and dots make a name";
    return '\0';
}

/* Checks the labels of d->text. */
static const char *name_fault(const csn_domain *d)
{
    const char *label = d->text;

    for (;;) {
        size_t n = strcspn(label, ".");
        const char *fault = label_fault(label, n);
        if (fault)
            return fault;
        if (label[n] == '\0')
            return is_number(label, n) ? "it ends in a number, as addresses do" : NULL;
        label += n + 1;
    }
}

static bool parse(const char *text, size_t len, bool underscore, csn_domain *out,
                  const char **why)
{
    const char *fault = NULL;

    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 0)
        fault = "it is empty";
    else if (len > CSN_DOMAIN_MAX)
        fault = "it is longer than 253 bytes";
    for (size_t i = 0; i < len && !fault; i++)
        out->text[i] = fold(text[i], underscore, &fault);
    if (!fault) {
        out->text[len] = '\0';
        out->len = len;
        fault = name_fault(out);
    }
    if (fault)
        *out = (csn_domain){.len = 0};
    if (fault && why)
        *why = fault;
    return !fault;
}

bool csn_domain_parse(const char *text, size_t len, csn_domain *out, const char **why)
{
    return parse(text, len, false, out, why);
}

bool csn_domain_parse_lookup(const char *text, size_t len, csn_domain *out, const char **why)
{
    return parse(text, len, true, out, why);
}

/* ---- comparing ---- */

bool csn_domain_equal(const csn_domain *a, const csn_domain *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool csn_domain_below(const csn_domain *name, const csn_domain *parent)
{
    if (parent->len == 0 || name->len < parent->len + 2)
        return false;
    const char *tail = name->text + (name->len - parent->len);
    return tail[-1] == '.' && memcmp(tail, parent->text, parent->len) == 0;
}
