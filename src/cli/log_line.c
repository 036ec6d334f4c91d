/* log_line.c: turns one JSON line of an audit log into one line for people.
 *
 * Commands and paths in a log come from inside of sandboxes, and the log may be damaged: all
 * text is printed in visible form, wherever it goes. */
#include "cli/log_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)

static const char *text_of(const csn_jval *v, const char *key)
{
    const char *s = csn_jval_string(csn_jval_get(v, key));

    return s ? s : NULL;
}

/* The words of an argument vector, or NULL. */
static char *join(const csn_jval *list)
{
    csn_buf b;

    csn_buf_init(&b, LINE_MAX_BYTES);
    for (size_t i = 0; list && csn_jval_is_array(list) && i < csn_jval_count(list); i++) {
        const char *word = csn_jval_string(csn_jval_at(list, i));
        csn_buf_puts(&b, i ? " " : "");
        csn_buf_puts(&b, word ? word : "?");
    }
    if (b.err != 0 || b.len == 0) {
        csn_buf_release(&b);
        return NULL;
    }
    return b.data;
}

static void set_result(const csn_jval *v, csn_log_line *l)
{
    const char *verdict = text_of(v, "verdict"), *result = text_of(v, "result");
    int64_t code = 0;
    uint64_t count = 0;

    if (verdict && strcmp(verdict, "deny") == 0)
        result = "denied";
    snprintf(l->result, sizeof(l->result), "%s", result ? result : "-");
    if (csn_jget_i64(v, "code", &code, NULL) == CSN_OK && code != 0)
        snprintf(l->result, sizeof(l->result), "exit %" PRId64, code);
    if (csn_jget_u64(v, "count", &count, NULL) == CSN_OK && count > 0)
        snprintf(l->result, sizeof(l->result), "%" PRIu64 " missing", count);
}

/* Milliseconds below a second, else seconds. */
static void set_duration(const csn_jval *v, csn_log_line *l)
{
    csn_autofree char *text = csn_jval_dump(csn_jval_get(v, "duration_ms"));
    double ms = text ? strtod(text, NULL) : 0;

    if (ms >= 1000)
        snprintf(l->duration, sizeof(l->duration), "%.1fs", ms / 1000);
    else
        snprintf(l->duration, sizeof(l->duration), "%.1fms", ms);
}

void csn_log_line_read(const char *text, size_t len, csn_log_line *ret)
{
    *ret = (csn_log_line){.time = "", .op = "?"};
    snprintf(ret->result, sizeof(ret->result), "damaged");
    snprintf(ret->duration, sizeof(ret->duration), "-");
    if (csn_json_parse(text, len, "line", &ret->root, NULL) < 0 ||
        !csn_jval_is_object(ret->root)) {
        ret->words = strndup(text, len);
        ret->target = ret->words;
        return;
    }
    const csn_jval *v = ret->root;
    const char *time = text_of(v, "time"), *op = text_of(v, "op");
    ret->time = time ? time : "";
    ret->op = op ? op : "?";
    ret->sandbox = text_of(v, "sandbox");
    ret->target = text_of(v, "target");
    if (!ret->target) {
        const csn_jval *args = csn_jval_get(v, "args");
        ret->words = args && csn_jval_is_object(args) ? join(csn_jval_get(args, "argv")) : NULL;
        ret->target = ret->words;
    }
    set_result(v, ret);
    set_duration(v, ret);
}

/* Prints the text in visible form, filled up with spaces. */
static void column(const char *text, int width)
{
    csn_autobuf b;

    csn_buf_init(&b, LINE_MAX_BYTES * 8);
    csn_cli_escape(&b, text, strlen(text));
    printf("%-*s  ", width, b.err == 0 && b.data ? b.data : "");
}

void csn_log_line_print(const csn_log_line *l)
{
    char when[20];

    snprintf(when, sizeof(when), "%s", l->time);
    char *t = strchr(when, 'T');
    if (t)
        *t = ' ';
    column(when, 19);
    column(l->op, 11);
    column(l->result, 11);
    printf("%8s  ", l->duration);
    csn_autobuf b;
    csn_buf_init(&b, LINE_MAX_BYTES * 8);
    csn_cli_escape(&b, l->target ? l->target : "-", strlen(l->target ? l->target : "-"));
    puts(b.err == 0 && b.data ? b.data : "");
}

void csn_log_line_release(csn_log_line *l)
{
    csn_jval_free(l->root);
    free(l->words);
    *l = (csn_log_line){0};
}
