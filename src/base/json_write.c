/* json_write.c: a fast JSON writer; most of its output is one long string of command output.
 *
 * Invariants: whatever bytes come in, the output is valid JSON in valid UTF-8, and valid text
 * is not changed. A string is read once: eight clean bytes at a time are copied as one word
 * into a block on the stack, special bytes are escaped, full blocks are appended. So the output
 * is never sized for the worst case (six times the input) and the ceiling of the buffer is
 * exact. */
#include "base/json_write.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

#define DEPTH_MAX 32
#define BLOCK     2048u

static_assert(DEPTH_MAX <= 8 * sizeof(((csn_json *)0)->has_item), "one bit a level");

/* After the first failure nothing is written. */
static void put(csn_json *j, const void *data, size_t len)
{
    if (j->err == 0)
        j->err = csn_buf_append(j->out, data, len);
}

static void fail(csn_json *j, int err)
{
    if (j->err == 0)
        j->err = err;
}

/* ---- strings ---- */

/* The high bit of each byte of x that cannot be copied as it is: a control, '"', '\\' or not
 * ASCII. Borrows can mark clean bytes above a marked one, so only the lowest mark counts. */
static uint64_t special_bytes(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\';

    return (((x - ones * ' ') & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
            x) &
           highs;
}

/* Writes the escape of one byte below 0x80 (2 or 6 bytes; 1 for a byte that needs none). */
static size_t escape(unsigned char c, char *out)
{
    static const char letters[256] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                      ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    static const char hex[] = "0123456789abcdef";

    if (letters[c]) {
        out[0] = '\\';
        out[1] = letters[c];
        return 2;
    }
    if (c >= ' ') {
        out[0] = (char)c;
        return 1;
    }
    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

/* Writes the character or bad byte at s; returns the bytes of s that were used. */
static size_t put_special(const unsigned char *s, size_t len, char **out)
{
    if (*s < 0x80) {
        *out += escape(*s, *out);
        return 1;
    }
    size_t n = csn_utf8_char(s, len);
    if (n > 0) {
        *out = mempcpy(*out, s, n);
        return n;
    }
    *out = mempcpy(*out, "\xef\xbf\xbd", 3);
    return 1;
}

static void put_string(csn_json *j, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text, *end = s + len;
    char block[BLOCK + 16], *out = block; /* one step writes 8 bytes at most */

    /* No byte gets shorter, so this fails only if the string cannot fit. */
    if (j->err == 0 && len <= SIZE_MAX - 2)
        j->err = csn_buf_reserve(j->out, len + 2);
    *out++ = '"';
    while (s < end && j->err == 0) {
        uint64_t word;
        /* All eight are copied before they are examined; those after the first special one are
         * overwritten. */
        if (end - s >= 8) {
            memcpy(&word, s, 8);
            memcpy(out, &word, 8);
            uint64_t marks = special_bytes(le64toh(word));
            size_t clean = marks ? (size_t)__builtin_ctzll(marks) / 8 : 8;
            s += clean;
            out += clean;
            if (marks && out < block + BLOCK)
                s += put_special(s, (size_t)(end - s), &out);
        } else {
            s += put_special(s, (size_t)(end - s), &out);
        }
        if (out >= block + BLOCK) {
            put(j, block, (size_t)(out - block));
            out = block;
        }
    }
    *out++ = '"';
    put(j, block, (size_t)(out - block));
}

/* ---- structure ---- */

void csn_json_begin(csn_json *j, csn_buf *out)
{
    *j = (csn_json){.out = out};
}

int csn_json_end(csn_json *j)
{
    if (j->depth != 0 || j->after_key)
        fail(j, EINVAL);
    return j->err;
}

/* The comma before an item of the open container, if it is not the first. */
static void separate(csn_json *j)
{
    uint32_t bit = j->depth > 0 ? 1u << (j->depth - 1) : 0;

    if (j->has_item & bit)
        put(j, ",", 1);
    j->has_item |= bit;
}

/* The comma of a member stands before its key, not between key and value. */
static void before_value(csn_json *j)
{
    if (!j->after_key)
        separate(j);
    j->after_key = false;
}

static void open_container(csn_json *j, const char *bracket)
{
    before_value(j);
    if (j->depth == DEPTH_MAX)
        fail(j, EOVERFLOW);
    if (j->err != 0)
        return;
    put(j, bracket, 1);
    j->depth++;
    j->has_item &= ~(1u << (j->depth - 1));
}

static void close_container(csn_json *j, const char *bracket)
{
    if (j->depth == 0 || j->after_key)
        fail(j, EINVAL);
    if (j->err != 0)
        return;
    put(j, bracket, 1);
    j->depth--;
}

void csn_json_object(csn_json *j)
{
    open_container(j, "{");
}

void csn_json_object_end(csn_json *j)
{
    close_container(j, "}");
}

void csn_json_array(csn_json *j)
{
    open_container(j, "[");
}

void csn_json_array_end(csn_json *j)
{
    close_container(j, "]");
}

void csn_json_key(csn_json *j, const char *key)
{
    if (j->depth == 0 || j->after_key)
        fail(j, EINVAL);
    j->key_at = j->out->len;
    j->had_item = j->has_item;
    separate(j);
    put_string(j, key, strlen(key));
    put(j, ":", 1);
    j->after_key = true;
}

/* ---- values ---- */

void csn_json_raw(csn_json *j, const char *json, size_t len)
{
    before_value(j);
    put(j, json, len);
}

/* Removes the key that was written last. */
static void remove_key(csn_json *j)
{
    if (j->err != 0)
        return;
    j->out->len = j->key_at;
    j->out->data[j->key_at] = '\0';
    j->has_item = j->had_item;
    j->after_key = false;
}

void csn_json_null(csn_json *j)
{
    if (j->omit_null && j->after_key) {
        remove_key(j);
        return;
    }
    csn_json_raw(j, "null", 4);
}

void csn_json_bool(csn_json *j, bool v)
{
    csn_json_raw(j, v ? "true" : "false", v ? 4 : 5);
}

void csn_json_strn(csn_json *j, const char *s, size_t len)
{
    before_value(j);
    put_string(j, s, len);
}

void csn_json_str(csn_json *j, const char *s)
{
    if (s)
        csn_json_strn(j, s, strlen(s));
    else
        csn_json_null(j);
}

/* Encoded in place, since images are large. */
void csn_json_base64(csn_json *j, const void *p, size_t len)
{
    size_t size = csn_base64_size(len);

    before_value(j);
    put(j, "\"", 1);
    if (j->err == 0)
        j->err = csn_buf_reserve(j->out, size);
    if (j->err == 0) {
        csn_base64_encode(p, len, j->out->data + j->out->len);
        j->out->len += size;
    }
    put(j, "\"", 1);
}

/* Writes the digits of v (at most 20) before `end`; returns their start. */
static char *digits(uint64_t v, char *end)
{
    do
        *--end = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    return end;
}

void csn_json_uint(csn_json *j, uint64_t v)
{
    char text[24], *end = text + sizeof(text), *p = digits(v, end);

    csn_json_raw(j, p, (size_t)(end - p));
}

void csn_json_int(csn_json *j, int64_t v)
{
    char text[24], *end = text + sizeof(text);
    /* the unsigned negation also holds for INT64_MIN */
    char *p = digits(v < 0 ? -(uint64_t)v : (uint64_t)v, end);

    if (v < 0)
        *--p = '-';
    csn_json_raw(j, p, (size_t)(end - p));
}

/* printf's %f depends on the locale. Thousandths of a value below 9e12 fit an integer; above,
 * fractions are dropped. */
void csn_json_double(csn_json *j, double v)
{
    char text[320], *end = text + sizeof(text);

    if (!isfinite(v)) {
        csn_json_null(j);
        return;
    }
    if (v <= -9e12 || v >= 9e12) {
        int n = snprintf(text, sizeof(text), "%.0f", v);
        csn_json_raw(j, text, (size_t)n);
        return;
    }
    uint64_t milli = (uint64_t)((v < 0 ? -v : v) * 1000 + 0.5);
    unsigned fraction = milli % 1000;
    bool negative = v < 0 && milli > 0;
    if (fraction > 0) {
        for (int i = 0; i < 3; i++, fraction /= 10)
            *--end = (char)('0' + fraction % 10);
        *--end = '.';
    }
    char *p = digits(milli / 1000, end);
    if (negative)
        *--p = '-';
    end = text + sizeof(text);
    while (milli % 1000 > 0 && end[-1] == '0')
        end--;
    csn_json_raw(j, p, (size_t)(end - p));
}

void csn_json_kstr(csn_json *j, const char *key, const char *s)
{
    csn_json_key(j, key);
    csn_json_str(j, s);
}

void csn_json_kint(csn_json *j, const char *key, int64_t v)
{
    csn_json_key(j, key);
    csn_json_int(j, v);
}

void csn_json_kuint(csn_json *j, const char *key, uint64_t v)
{
    csn_json_key(j, key);
    csn_json_uint(j, v);
}

void csn_json_kbool(csn_json *j, const char *key, bool v)
{
    csn_json_key(j, key);
    csn_json_bool(j, v);
}
