/* match.c: compiles a pattern and searches buffers for it.
 *
 * A plain pattern is found by literal.c; a regular expression, or a pattern that ignores case,
 * uses PCRE2 with JIT, but only on lines that hold one of the strings that every match has
 * (required.c). Text of ASCII bytes is matched by a second compilation without UTF, which is
 * several times faster and gives the same result there. Pattern and text are hostile: steps,
 * depth, heap and JIT stack of a match are limited, and reaching a limit is CSN_TOO_LARGE;
 * invalid UTF-8 in the text never matches and is no error (MATCH_INVALID_UTF). A pattern that
 * is not UTF-8 is taken as bytes.
 *
 * ^, $ and the dot respect lines, but a class such as [^x] or \s may match a newline. So a
 * match in a text of several lines can extend beyond its line; a caller that wants lines
 * searches that line again alone. No matching line is skipped, since the first match starts no
 * later than the first matching line ends. */
#include "search/match.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/path.h"
#include "base/utf8.h"
#include "search/literal.h"
#include "search/required.h"

#define PATTERN_MAX     (64u * 1024u)
#define MATCH_STEPS     2000000u
#define MATCH_DEPTH     20000u
#define MATCH_HEAP_KIB  (32u * 1024u)
#define JIT_STACK_START (32u * 1024u)
#define JIT_STACK_MAX   (4u * 1024u * 1024u)

struct csn_matcher {
    const csn_matcher *owner; /* of text, code and bytes; NULL: this one */
    char *text;               /* a plain pattern */
    size_t text_len;
    csn_literal literal; /* len 0: `text` is too long for it, or there is none */
    csn_required required;
    pcre2_code *code;  /* NULL for a plain pattern */
    pcre2_code *bytes; /* `code` for ASCII, or NULL */
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    /* Of the window that was announced: */
    const char *window;
    size_t window_len;
    size_t searched; /* `places` are the next ones from here on */
    size_t places[CSN_REQUIRED_MAX];
    bool ascii;
};

void csn_matcher_free(csn_matcher *m)
{
    if (!m)
        return;
    if (!m->owner) {
        free(m->text);
        pcre2_code_free(m->code);
        pcre2_code_free(m->bytes);
    }
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

/* What one thread needs to match. */
static bool make_room(csn_matcher *m)
{
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
    if (!m->data || !m->context)
        return false;
    pcre2_set_match_limit(m->context, MATCH_STEPS);
    pcre2_set_depth_limit(m->context, MATCH_DEPTH);
    pcre2_set_heap_limit(m->context, MATCH_HEAP_KIB);
    if (m->stack) /* NULL where there is no JIT */
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return true;
}

static pcre2_code *compile_as(const char *pattern, size_t len, uint32_t options, int *ret_code,
                              size_t *ret_at)
{
    pcre2_compile_context *c = pcre2_compile_context_create(NULL);

    *ret_code = PCRE2_ERROR_HEAP_FAILED;
    if (!c)
        return NULL;
    pcre2_set_newline(c, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, options, ret_code, ret_at, c);
    pcre2_compile_context_free(c);
    /* If the kernel forbids JIT, the slower interpreter is used. */
    if (code)
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

static csn_status compile(csn_matcher *m, const char *pattern, size_t len, uint32_t flags,
                          csn_error **err)
{
    uint32_t options = options_of(pattern, len, flags);
    size_t at = 0;
    int code = 0;

    m->code = compile_as(pattern, len, options, &code, &at);
    if (!m->code)
        return compile_failed(pattern, code, at, err);
    /* Fails for \x{100} and its kind: such patterns have `code` only. */
    if ((options & PCRE2_UTF) && csn_is_ascii(pattern, len))
        m->bytes = compile_as(pattern, len, options & ~(PCRE2_UTF | PCRE2_MATCH_INVALID_UTF),
                              &code, &at);
    if (m->bytes && (flags & CSN_GREP_REGEX))
        csn_required_find(pattern, len, flags & CSN_GREP_IGNORE_CASE, &m->required);
    else if (m->bytes)
        csn_required_text(pattern, len, flags & CSN_GREP_IGNORE_CASE, &m->required);
    return make_room(m) ? CSN_OK : csn_fail(err, CSN_NOMEM, "out of memory");
}

static csn_status set_text(csn_matcher *m, const char *pattern, size_t len, csn_error **err)
{
    m->text = strdup(pattern);
    m->text_len = len;
    if (!m->text)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    if (len > 0 && len <= CSN_LITERAL_MAX)
        csn_literal_init(&m->literal, pattern, len, false);
    return CSN_OK;
}

csn_status csn_matcher_new(const char *pattern, uint32_t flags, csn_matcher **ret,
                           csn_error **err)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *m = calloc(1, sizeof(*m));
    size_t len = pattern ? strlen(pattern) : 0;

    if (!pattern)
        return csn_fail(err, CSN_INVALID, "no pattern given");
    if (len > PATTERN_MAX)
        return csn_fail(err, CSN_TOO_LARGE, "the pattern has more than %u bytes", PATTERN_MAX);
    if (!m)
        return csn_fail(err, CSN_NOMEM, "out of memory");
    csn_status st = flags & (CSN_GREP_REGEX | CSN_GREP_IGNORE_CASE)
                        ? compile(m, pattern, len, flags, err)
                        : set_text(m, pattern, len, err);
    if (st < 0)
        return st;
    *ret = CSN_STEAL(m);
    return CSN_OK;
}

csn_matcher *csn_matcher_copy(const csn_matcher *m)
{
    CSN_CLEANUP(csn_matcher_freep) csn_matcher *copy = malloc(sizeof(*copy));

    if (!copy)
        return NULL;
    *copy = *m;
    copy->owner = m->owner ? m->owner : m;
    copy->data = NULL;
    copy->context = NULL;
    copy->stack = NULL;
    return m->code && !make_room(copy) ? NULL : CSN_STEAL(copy);
}

/* ---- finding ---------------------------------------------------------------------------- */

static int run_code(csn_matcher *m, bool ascii, const char *text, size_t len, size_t start,
                    size_t *ret_from, size_t *ret_to)
{
    const pcre2_code *code = ascii && m->bytes ? m->bytes : m->code;
    int rc = pcre2_match(code, (PCRE2_SPTR)text, len, start, 0, m->data, m->context);

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

/* The first place of a required string from `start` on, or `len`. In an announced window each
 * string is searched once: otherwise a rare one would be searched again for every match. */
static size_t next_place(csn_matcher *m, const char *text, size_t len, size_t start)
{
    const csn_required *r = &m->required;
    bool known = text == m->window && len == m->window_len && start >= m->searched;
    size_t least = len, at = 0;

    for (size_t i = 0; i < r->count; i++) {
        at = known ? m->places[i] : 0;
        if (!known || at < start) {
            const char *hit = csn_literal_find(&r->items[i], text + start, len - start);
            at = hit ? (size_t)(hit - text) : len;
        }
        m->places[i] = at;
        least = at < least ? at : least;
    }
    m->searched = text == m->window && len == m->window_len ? start : SIZE_MAX;
    return least;
}

/* Matches only lines that hold a required string. */
static int find_by_line(csn_matcher *m, const char *text, size_t len, size_t start,
                        size_t *ret_from, size_t *ret_to)
{
    while (start < len) {
        size_t at = next_place(m, text, len, start);
        if (at == len)
            return 0;
        const char *nl = memrchr(text + start, '\n', at - start);
        size_t from = nl ? (size_t)(nl - text) + 1 : start;
        nl = memchr(text + at, '\n', len - at);
        size_t end = nl ? (size_t)(nl - text) : len;
        bool ascii = csn_is_ascii(text + from, end - from);
        int rc = run_code(m, ascii, text, end, from, ret_from, ret_to);
        if (rc != 0)
            return rc;
        start = end + 1;
    }
    return 0;
}

/* Skips the lines before the first required string. */
static int find_from_string(csn_matcher *m, const char *text, size_t len, size_t start,
                            size_t *ret_from, size_t *ret_to)
{
    size_t at = next_place(m, text, len, start);

    if (at == len)
        return 0;
    const char *nl = memrchr(text + start, '\n', at - start);
    return run_code(m, m->ascii, text, len, nl ? (size_t)(nl - text) + 1 : start, ret_from,
                    ret_to);
}

static int find_text(const csn_matcher *m, const char *text, size_t len, size_t start,
                     size_t *ret_from, size_t *ret_to)
{
    const char *hit = m->literal.len ? csn_literal_find(&m->literal, text + start, len - start)
                                     : memmem(text + start, len - start, m->text, m->text_len);

    if (!hit)
        return 0;
    *ret_from = (size_t)(hit - text);
    *ret_to = *ret_from + m->text_len;
    return 1;
}

void csn_matcher_window(csn_matcher *m, const char *text, size_t len)
{
    bool by_line = m->required.count > 0 && m->required.one_line;

    m->ascii = m->bytes && !by_line && csn_is_ascii(text, len);
    m->window = text;
    m->window_len = len;
    m->searched = SIZE_MAX;
}

int csn_matcher_find(csn_matcher *m, const char *text, size_t len, size_t start,
                     size_t *ret_from, size_t *ret_to)
{
    if (start > len)
        return 0;
    if (m->text)
        return find_text(m, text, len, start, ret_from, ret_to);
    if (m->required.count == 0)
        return run_code(m, m->ascii, text, len, start, ret_from, ret_to);
    return m->required.one_line ? find_by_line(m, text, len, start, ret_from, ret_to)
                                : find_from_string(m, text, len, start, ret_from, ret_to);
}

void csn_matcher_force_simple(csn_matcher *m)
{
    pcre2_code_free(m->bytes);
    m->bytes = NULL;
    m->required.count = 0;
    m->literal.len = 0;
}
