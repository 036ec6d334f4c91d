/* log_line.h: one line of an audit log, for people. */
#pragma once
#include <stddef.h>

#include "base/json_read.h"

/* The strings belong to `root`, or are literals. */
typedef struct csn_log_line {
    csn_jval *root;
    const char *time, *sandbox, *op, *target; /* target: NULL if there is none */
    char result[64], duration[32];
    char *words; /* of an argument vector */
} csn_log_line;

/* A line that is no JSON becomes one with the op "?" and the text as its target. */
void csn_log_line_read(const char *text, size_t len, csn_log_line *ret);
void csn_log_line_print(const csn_log_line *l);
void csn_log_line_release(csn_log_line *l);
