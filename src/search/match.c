/* match.c: compiles a pattern and searches buffers for it.
 *
 * A plain pattern uses memmem; a regular expression, or a pattern that ignores case, uses PCRE2
 * with JIT. Pattern and text are hostile: steps, depth, heap and JIT stack of a match are
 * limited, and reaching a limit is CSN_TOO_LARGE; invalid UTF-8 in the text never matches and
 * is no error (MATCH_INVALID_UTF). A pattern that is not UTF-8 is taken as bytes.
 *
 * ^, $ and the dot respect lines, but a class such as [^x] or \s may match a newline. So a
 * match in a text of several lines can extend beyond its line; a caller that wants lines
 * searches that line again alone. No matching line is skipped, since the first match starts no
 * later than the first matching line ends. */
#include "search/match.h"

#include <errno.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/path.h"
#include "base/utf8.h"

#define PATTERN_MAX     (64u * 1024u)
#define MATCH_STEPS     2000000u
#define MATCH_DEPTH     20000u
#define MATCH_HEAP_KIB  (32u * 1024u)
#define JIT_STACK_START (32u * 1024u)
#define JIT_STACK_MAX   (4u * 1024u * 1024u)

struct csn_matcher {
    char *literal; /* NULL: `code` is used */
    size_t literal_len;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

void csn_matcher_free(csn_matcher *m)
{
    if (!m)
        return;
    free(m->literal);
    pcre2_code_free(m->code);
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

/* ---- compiling -------------------------------------------------------------------------- */

static uint32_t options_of(const char *pattern, size_t len, uint32_t flags)
{
    uint32_t o = flags & CSN_GREP_IGNORE_CASE ? PCRE2_CASELESS : 0;

    if (flags & CSN_GREP_REGEX)
        o |= PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C; /* \C would split characters */
    else
        o |= PCRE2_LITERAL;
    if (csn_utf8_valid(pattern, len))
        o |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    return o;
}

static csn_status compile_failed(const char *pattern, int code, size_t at, csn_error **err)
{
    csn_autofree char *shown = csn_path_printable(pattern);
    PCRE2_UCHAR text[160] = "";

    if (code == PCRE2_ERROR_HEAP_FAILED)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    pcre2_get_error_message(code, text, sizeof(text));
    return csn_fail(err, CSN_INVALID, "regular expression %s: %s at byte %zu",
                    shown ? shown : "", (const char *)text, at);
}

static csn_status compile(csn_matcher *m, const char *pattern, size_t len, uint32_t flags,
                          csn_error **err)
{
    pcre2_compile_context *c = pcre2_compile_context_create(NULL);
    PCRE2_SIZE at = 0;
    int code = 0;

    if (!c)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    pcre2_set_newline(c, PCRE2_NEWLINE_LF);
    m->code =
        pcre2_compile((PCRE2_SPTR)pattern, len, options_of(pattern, len, flags), &code, &at, c);
    pcre2_compile_context_free(c);
    if (!m->code)
        return compile_failed(pattern, code, at, err);
    /* If the kernel forbids JIT, the slower interpreter is used. */
    (void)pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
    if (!m->data || !m->context)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    pcre2_set_match_limit(m->context, MATCH_STEPS);
    pcre2_set_depth_limit(m->context, MATCH_DEPTH);
    pcre2_set_heap_limit(m->context, MATCH_HEAP_KIB);
    if (m->stack) /* NULL where there is no JIT */
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return CSN_OK;
}

csn_status csn_matcher_new(const char *pattern, uint32_t flags, csn_matcher **ret,
                           csn_error **err)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = calloc(1, sizeof(*m));
    size_t len = pattern ? strlen(pattern) : 0;
    csn_status st = CSN_OK;

    if (!pattern)
        return csn_fail(err, CSN_INVALID, "no pattern given");
    if (len > PATTERN_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "the pattern has more than %u bytes", PATTERN_MAX);
    if (!m)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    if (flags & (CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE)) {
        st = compile(m, pattern, len, flags, err);
    } else {
        m->literal = strdup(pattern);
        m->literal_len = len;
        if (!m->literal)
            st = csn_fail(err, CSN_NOMEM, "out of memory");
    }
    if (st < 0)
        return st;
    *ret = CSN_STEAL(m);
    return CSN_OK;
}

/* ---- finding ---------------------------------------------------------------------------- */

static int find_regex(csn_matcher *m, const char *text, size_t len, size_t start,
                      size_t *ret_from, size_t *ret_to)
{
    int rc = pcre2_match(m->code, (PCRE2_SPTR)text, len, start, 0, m->data, m->context);

    switch (rc) {
    case PCRE2_ERROR_NOMATCH:
        return 0;
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
    case PCRE2_ERROR_JIT_STACKLIMIT:
        return CSN_TOO_LARGE;
    case PCRE2_ERROR_NOMEMORY:
        return CSN_NOMEM;
    default:
        if (rc < 0)
            return CSN_INTERNAL;
        break;
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    /* \K can move the start past the end, or before the start of the search. */
    *ret_from = at[0] < start ? start : at[0];
    *ret_to = at[1] < *ret_from ? *ret_from : at[1];
    return 1;
}

int csn_matcher_find(csn_matcher *m, const char *text, size_t len, size_t start,
                     size_t *ret_from, size_t *ret_to)
{
    if (start > len)
        return 0;
    if (!m->literal)
        return find_regex(m, text, len, start, ret_from, ret_to);
    const char *hit = memmem(text + start, len - start, m->literal, m->literal_len);
    if (!hit)
        return 0;
    *ret_from = (size_t)(hit - text);
    *ret_to = *ret_from + m->literal_len;
    return 1;
}
