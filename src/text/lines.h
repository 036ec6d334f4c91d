/* lines.h: extracts a window of lines from a stream of bytes, for csn_read.
 *
 * Feed the file from its start. Only the window is kept, at most byte_max bytes, cut between
 * UTF-8 characters. Lines end with \n; \r stays; a last line without \n counts. Numbered form:
 * "%6d\t" before each line, 1-based. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct csn_lines {
    uint64_t offset, limit; /* lines */
    bool numbers;
    csn_buf out; /* its max is the byte ceiling (numbers not counted against it) */
    size_t byte_max;
    size_t content_bytes; /* bytes of the window kept so far */
    uint64_t line;        /* index of the line being read */
    uint64_t output_lines;
    uint64_t fed;            /* bytes */
    size_t line_begin, mark; /* offsets in out of the last kept line: its number, its content */
    bool at_line_start;
    bool cut_by_bytes, cut_by_lines;
    int err;
} csn_lines;

void csn_lines_init(csn_lines *w, uint64_t offset, uint64_t limit, size_t byte_max,
                    bool numbers);
void csn_lines_release(csn_lines *w);
int csn_lines_feed(csn_lines *w, const void *data, size_t len); /* 0 or errno */
/* True if the window is complete: further bytes only count lines. */
bool csn_lines_complete(const csn_lines *w);
/* Returns the lines fed so far: the total after the whole file was fed. */
uint64_t csn_lines_total(const csn_lines *w);
