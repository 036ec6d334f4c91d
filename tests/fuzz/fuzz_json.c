/* fuzz_json.c: any bytes, as a document to read and as a string to write.
 *
 * Reading must survive everything, and what it accepts must come back the same from its dump.
 * Writing must give a document that our own strict reader accepts and whose string is the input
 * with each bad byte replaced, unless the input holds a NUL, which the reader refuses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/utf8.h"

#define ROOM (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void read_all_ways(const csn_jval *v)
{
    static const char *const known[] = {"a", "b", NULL};
    CSN_CLEANUP(csn_arena_freep) csn_arena *a = csn_arena_new();
    const char *s = NULL, *const *list = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    bool b = false;
    csn_error *err = NULL;

    if (csn_jval_only(v, known, "input", &err) < 0)
        csn_error_free(err);
    (void)csn_jget_str(v, "a", &s, NULL);
    (void)csn_jget_i64(v, "a", &i, NULL);
    (void)csn_jget_bool(v, "a", &b, NULL);
    (void)csn_jget_strv(v, "a", a, &list, NULL);
    if (csn_jget_u64(v, "a", &u, NULL) == CSN_OK)
        must(u <= INT64_MAX);
    for (size_t k = 0; k < csn_jval_count(v); k++)
        must(csn_jval_at(v, k) != NULL);
}

static void check_reader(const char *text, size_t len)
{
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL, *again = NULL;
    csn_error *err = NULL;

    if (csn_json_parse(text, len, "input", &v, &err) < 0) {
        must(!v && csn_utf8_valid(csn_error_message(err), strlen(csn_error_message(err))));
        csn_error_free(err);
        return;
    }
    read_all_ways(v);
    csn_autofree char *dump = csn_jval_dump(v);
    must(dump && csn_json_parse(dump, strlen(dump), "dump", &again, NULL) == CSN_OK);
    csn_autofree char *second = csn_jval_dump(again);
    must(second && strcmp(dump, second) == 0);
}

static void check_writer(const char *text, size_t len)
{
    csn_autobuf out;
    csn_buf_init(&out, ROOM);
    csn_json j;
    CSN_CLEANUP(csn_jval_freep) csn_jval *v = NULL;

    csn_json_begin(&j, &out);
    csn_json_strn(&j, text, len);
    must(csn_json_end(&j) == 0 && csn_utf8_valid(out.data, out.len));
    csn_status st = csn_json_parse(out.data, out.len, "written", &v, NULL);
    must((st == CSN_OK) == (len == 0 || !memchr(text, '\0', len)));
    const char *got = st == CSN_OK ? csn_jval_string(v) : NULL;
    while (got && len > 0) {
        size_t n = csn_utf8_char((const unsigned char *)text, len), width = n ? n : 3;
        must(strncmp(got, n ? text : "\xef\xbf\xbd", width) == 0);
        got += width;
        text += n ? n : 1;
        len -= n ? n : 1;
    }
    must(!got || !*got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_reader((const char *)data, size);
    check_writer((const char *)data, size);
    return 0;
}
