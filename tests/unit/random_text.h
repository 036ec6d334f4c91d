/* random_text.h: random texts and random changes of them. A test prints the seed with which it
 * can be repeated: CSN_TEST_SEED=n; CSN_TEST_ROUNDS=n makes more of them. After cmocka.h. */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "text/linediff.h"

static uint64_t random_state;

__attribute__((unused)) static unsigned long random_setting(const char *name,
                                                            unsigned long other)
{
    const char *s = getenv(name);

    return s && *s ? strtoul(s, NULL, 10) : other;
}

__attribute__((unused)) static void random_begin(void)
{
    unsigned long seed = random_setting("CSN_TEST_SEED", (unsigned long)csn_now_ns() % 1000000);

    print_message("# CSN_TEST_SEED=%lu\n", seed);
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

/* [0, below) */
__attribute__((unused)) static unsigned random_below(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below ? (unsigned)((random_state >> 33) % below) : 0;
}

/* How the lines of a text look. */
typedef struct random_style {
    unsigned alphabet; /* different lines */
    unsigned crlf;     /* per cent of the lines that end with \r\n */
    unsigned cut;      /* per cent of the texts without a last \n */
    bool distinct;     /* each line is made once, whatever the alphabet */
} random_style;

__attribute__((unused)) static void random_line(csn_buf *out, const random_style *s)
{
    static const char *const odd[] = {"}", "", "\t", "  {", "--"};
    static unsigned made;
    unsigned n = s->distinct ? made++ : random_below(s->alphabet);

    if (!s->distinct && n < 5 && s->alphabet > 8)
        (void)csn_buf_puts(out, odd[n]);
    else
        (void)csn_buf_printf(out, "line %u", n);
    (void)csn_buf_puts(out, random_below(100) < s->crlf ? "\r\n" : "\n");
}

__attribute__((unused)) static void random_cut(csn_buf *out, const random_style *s)
{
    if (out->len > 0 && random_below(100) < s->cut)
        out->data[--out->len] = '\0';
}

__attribute__((unused)) static csn_text as_text(const csn_buf *b)
{
    return (csn_text){b->data, b->len};
}

__attribute__((unused)) static void random_text(csn_buf *out, unsigned lines,
                                                const random_style *s)
{
    for (unsigned i = 0; i < lines; i++)
        random_line(out, s);
    random_cut(out, s);
}

/* Appends `from` with lines replaced, removed and added: `percent` of its lines are changed. */
__attribute__((unused)) static void random_change(csn_buf *out, csn_text from, unsigned percent,
                                                  const random_style *s)
{
    for (size_t at = 0, len; at < from.len; at += len) {
        len = csn_text_line_len(from, at);
        bool change = random_below(100) < percent;
        if (!change || random_below(3) == 0)
            (void)csn_buf_append(out, from.data + at, len);
        if (out->len > 0 && out->data[out->len - 1] != '\n')
            (void)csn_buf_putc(out, '\n');
        for (unsigned n = change ? random_below(3) : 0; n > 0; n--)
            random_line(out, s);
    }
    random_cut(out, s);
}
