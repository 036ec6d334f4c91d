/* explain_extract.c: extract candidate paths, names and hosts from a line with an error phrase.
 *
 * The command controls the bytes, so these are candidates that must still be verified.
 * Invariants: a candidate stands in the line exactly as returned (nothing is assembled, and an
 * unclosed quote yields nothing); it contains no control byte, invalid character or escape;
 * work is linear in the line. */
#include <string.h>

#include "base/limits.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "policy/explain_internal.h"

/* Characters that make a name look like another one: controls, direction marks, and those of
 * zero width. */
static bool is_deceptive(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < ' ' || *s == 0x7f || *s == '\\';
    if (n == 2)
        return s[0] == 0xc2 && s[1] < 0xa0;
    if (n != 3)
        return false;
    unsigned cp = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff;
}

bool csn_span_is_clean(csn_text_span s)
{
    const unsigned char *p = (const unsigned char *)s.at;

    if (s.len == 0 || s.len >= CSN_PATH_MAX)
        return false;
    for (size_t i = 0; i < s.len;) {
        size_t n = csn_utf8_char(p + i, s.len - i);
        if (n == 0 || is_deceptive(p + i, n))
            return false;
        i += n;
    }
    return true;
}

/* Old GNU tools close ` with '. */
enum { QUOTES = 5 };
static const struct {
    const char *open, *close;
} quotes[QUOTES] = {
    {"'", "'"},
    {"\"", "\""},
    {"`", "`'"},
    {"\xe2\x80\x98", "\xe2\x80\x99"},
    {"\xe2\x80\x9c", "\xe2\x80\x9d"},
};

/* The quote that starts at s; QUOTES: none. The apostrophe in "can't" is none. */
static size_t quote_at(const csn_line *l, const char *s)
{
    for (size_t q = 0; q < QUOTES; q++)
        if (csn_str_starts(s, quotes[q].open))
            return *s == '\'' && s > l->text && csn_is_word(s[-1]) ? QUOTES : q;
    return QUOTES;
}

/* A quote before a letter does not close ("it's"). */
static const char *quote_end(size_t q, const char *s)
{
    const char *close = quotes[q].close;

    if ((unsigned char)*close >= 0x80)
        return strstr(s, close);
    for (s += strcspn(s, close); *s; s += 1 + strcspn(s + 1, close))
        if (!csn_is_word(s[1]))
            return s;
    return NULL;
}

typedef struct finds {
    csn_text_span items[CSN_SPANS_MAX * 2];
    size_t count;
} finds;

static void found(finds *f, const char *at, size_t len)
{
    csn_text_span s = {at, len};

    if (f->count < sizeof(f->items) / sizeof(f->items[0]) && csn_span_is_clean(s))
        f->items[f->count++] = s;
}

static size_t trim_end(const char *at, size_t len)
{
    while (len > 1 && strchr(" .,;:)]}>", at[len - 1]))
        len--;
    return len;
}

static bool starts_path(const csn_line *l, const char *s)
{
    if (*s != '/' && !(*s == '~' && s[1] == '/') && !(*s == '.' && s[1] == '/') &&
        !(*s == '.' && s[1] == '.' && s[2] == '/'))
        return false;
    if (s == l->text)
        return true;
    /* not in a URL: the path of "https://x" begins after the host, that of "unix:///x" here */
    if (s[-1] == ':' && s[1] == '/')
        return false;
    return strchr(" \t([<=:,", s[-1]) || (s - l->text >= 7 && memcmp(s - 7, "unix://", 7) == 0);
}

/* An unquoted path may contain spaces; it ends where programs usually continue. */
static bool goes_on(const char *s)
{
    static const char *const marks[] = {": ",           " (",           " - ",
                                        " for reading", " for writing", NULL};

    for (const char *const *m = marks; *m; m++)
        if (csn_str_starts(s, *m))
            return true;
    return s[0] == ':' && !s[1];
}

/* The whole text and its first word are both candidates. */
static const char *take_bare(const csn_line *l, finds *f, const char *s)
{
    const char *end = s;
    bool whole = s >= l->text + 2 && s[-1] == ' ' && s[-2] == ':';
    bool url = s >= l->text + 7 && memcmp(s - 7, "unix://", 7) == 0; /* has no spaces */

    while (*end && !goes_on(end) && !(url && *end == ' '))
        end++;
    size_t len = trim_end(s, (size_t)(end - s));
    found(f, s, len);
    size_t word = trim_end(s, strcspn(s, " \t"));
    /* ": /a b: " is exact: the colons delimit it */
    if (word < len && !(whole && *end == ':'))
        found(f, s, word);
    return s + strcspn(s, " \t");
}

/* Every quoted text and every unquoted path of the line, in order. A kind of quote that was not
 * closed once is not searched again, so the scan is linear. */
static void find_all(const csn_line *l, finds *f)
{
    bool open_ended[QUOTES + 1] = {[QUOTES] = true};

    for (const char *s = l->text; *s;) {
        size_t q = quote_at(l, s);
        const char *start = q < QUOTES ? s + strlen(quotes[q].open) : s + 1;
        const char *end = open_ended[q] ? NULL : quote_end(q, start);
        if (end) {
            found(f, start, (size_t)(end - start));
            s = end + (q < 3 ? 1 : 3);
        } else if (starts_path(l, s)) {
            s = take_bare(l, f, s);
        } else {
            open_ended[q] = true;
            s = start;
        }
    }
}

/* The text between the last two ": " before `at`: "x" of "cat: x: No such file". `at` is at the
 * colon or after it. Empty if the line has no such part. */
static csn_text_span segment_before(const csn_line *l, size_t at)
{
    const char *end = l->text + at, *start;

    while (end > l->text && (end[-1] == ' ' || end[-1] == ':' || end[-1] == '('))
        end--;
    for (start = end; start > l->text; start--)
        if (start - l->text >= 2 && start[-1] == ' ' && start[-2] == ':')
            break;
    return (csn_text_span){start, (size_t)(end - start)};
}

static csn_text_span unquote(const csn_line *l, csn_text_span s)
{
    size_t q = quote_at(l, s.at);
    size_t n = q < QUOTES ? strlen(quotes[q].open) : 0;

    return s.len > 2 * n ? (csn_text_span){s.at + n, s.len - 2 * n} : s;
}

/* A relative name is accepted only if the text before the phrase is one word, or ends in a word
 * with a slash. */
static csn_text_span relative_before(const csn_line *l, size_t at)
{
    csn_text_span s = segment_before(l, at);
    csn_text_span none = {s.at, 0};

    /* "[Errno 2] No such file": the text before is not the file */
    if (s.at == l->text || s.len == 0 || s.at[s.len - 1] == ']')
        return none;
    /* tar: "x: Cannot open: No such file" */
    if (s.len > 7 && memcmp(l->low + (s.at - l->text), "cannot ", 7) == 0 &&
        !memchr(s.at, '/', s.len))
        s = segment_before(l, (size_t)(s.at - l->text));
    const char *space = memrchr(s.at, ' ', s.len);
    if (!space)
        return s;
    /* "could not lock config file .git/config": the word with the slash is the path */
    csn_text_span word = {space + 1, s.len - (size_t)(space + 1 - s.at)};
    return memchr(word.at, '/', word.len) ? word : none;
}

static void put(csn_text_span out[CSN_SPANS_MAX], size_t *n, csn_text_span s)
{
    for (size_t i = 0; i < *n; i++)
        if (out[i].at == s.at && out[i].len == s.len)
            return;
    if (*n < CSN_SPANS_MAX && csn_span_is_clean(s))
        out[(*n)++] = s;
}

size_t csn_line_paths(const csn_line *l, const csn_phrase_match *s,
                      csn_text_span out[CSN_SPANS_MAX])
{
    finds f = {.count = 0};
    size_t n = 0, behind = 0;
    const char *phrase_end = l->text + s->end;

    find_all(l, &f);
    while (behind < f.count && f.items[behind].at < phrase_end)
        behind++;
    for (size_t i = behind; i < f.count; i++)
        put(out, &n, f.items[i]);
    /* Backwards, but the longer candidate at one place before the shorter. */
    for (size_t i = behind; i > 0; i--) {
        if (i >= 2 && f.items[i - 2].at == f.items[i - 1].at)
            put(out, &n, f.items[i - 2]);
        put(out, &n, f.items[i - 1]);
    }
    put(out, &n, relative_before(l, s->at));
    return n;
}

/* The first word after `at`, or the quoted text there. */
static csn_text_span word_behind(const csn_line *l, size_t at)
{
    const char *s = l->text + at + strspn(l->text + at, " :");
    size_t q = quote_at(l, s);
    const char *start = q < QUOTES ? s + strlen(quotes[q].open) : s;
    const char *end = q < QUOTES ? quote_end(q, start) : NULL;

    if (end)
        return (csn_text_span){start, (size_t)(end - start)};
    return (csn_text_span){s, trim_end(s, strcspn(s, " \t"))};
}

/* node: "spawn x ENOENT"; weak_holds has verified "spawn" */
static csn_text_span spawned(const csn_line *l, size_t at)
{
    const char *spawn = memmem(l->low, at, "spawn ", 6);
    size_t from = spawn ? (size_t)(spawn - l->low) + 6 : at;

    return (csn_text_span){l->text + from, from < at ? at - from : 0};
}

csn_text_span csn_line_name(const csn_line *l, const csn_phrase_match *s)
{
    const char *low = l->low + s->at;
    csn_text_span name;

    if (csn_str_starts(low, " enoent"))
        name = spawned(l, s->at);
    else if (csn_str_starts(low, "command not found: ")) /* zsh */
        name = word_behind(l, s->end);
    else if (csn_str_starts(low, "cannot run program") || csn_str_starts(low, "error: linker"))
        name = word_behind(l, s->end - 1); /* the phrase ends with the quote */
    else
        name = unquote(l, segment_before(l, s->at));
    if (!csn_span_is_clean(name) || memchr(name.at, ' ', name.len))
        name.len = 0;
    return name;
}

/* The port after a host: ":80", " port 22", " (port 9418)", "/80", "', port=443". */
static csn_text_span port_behind(const char *s)
{
    static const char *const marks[] = {":", " port ", " (port ", "/", "', port=", NULL};
    csn_text_span none = {s, 0};

    for (const char *const *m = marks; *m; m++) {
        if (!csn_str_starts(s, *m))
            continue;
        const char *digits = s + strlen(*m);
        size_t n = strspn(digits, "0123456789");
        return n >= 1 && n <= 5 && !csn_is_word(digits[n]) ? (csn_text_span){digits, n} : none;
    }
    return none;
}

/* 0: not a host, or one with other characters in it. */
static size_t host_len(const char *s)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    bool v6 = *s == '[';
    size_t n = v6 ? 1 + strspn(s + 1, "0123456789abcdefABCDEF:.") : strspn(s, letters);

    if (v6)
        n = n > 2 && s[n] == ']' ? n + 1 : 0;
    if (n == 0 || n > 253 || *s == '.' || *s == '-')
        return 0;
    return strchr(" \t'\"`):,;/>", s[n]) || csn_str_starts(s + n, "\xe2\x80\x99") ? n : 0;
}

/* Loopback exists in every sandbox, so failing to reach it is no denial. */
static bool is_loopback(const char *host)
{
    return csn_str_starts(host, "127.") || csn_str_starts(host, "localhost") ||
           csn_str_starts(host, "[::1]") || csn_str_starts(host, "0.0.0.0");
}

static bool put_host(const char *s, char *out, size_t size)
{
    size_t n = host_len(s);
    csn_text_span port = port_behind(s + n);

    while (n > 1 && s[n - 1] == '.')
        n--;
    if (n == 0 || n + port.len + 2 > size)
        return false;
    memcpy(out, s, n);
    if (port.len > 0) {
        out[n++] = ':';
        memcpy(out + n, port.at, port.len);
        n += port.len;
    }
    out[n] = '\0';
    return !is_loopback(out);
}

csn_host csn_line_host(const csn_line *l, const csn_phrase_match *s, char *out, size_t size)
{
    const char *at = l->text + s->end;

    if (!s->host_next) {
        /* bash: "example.com: Temporary failure in name resolution" */
        csn_text_span before = segment_before(l, s->at);
        if (!memchr(before.at, '.', before.len) || host_len(before.at) != before.len)
            return CSN_HOST_NONE;
        at = before.at;
    } else if (quote_at(l, at) < QUOTES) {
        at += strlen(quotes[quote_at(l, at)].open);
    }
    return put_host(at, out, size) ? CSN_HOST_NAMED : CSN_HOST_UNFIT;
}
