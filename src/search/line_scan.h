/* line_scan.h: finds the matching lines of a file, with the lines around them. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "search/match.h"

#define CSN_SCAN_CONTEXT_MAX 1000u

/* The lines found so far, of one or more files. */
typedef struct csn_hits {
    csn_arena *arena; /* of paths and texts */
    csn_matcher *matcher;
    uint32_t context;
    uint64_t max, matches; /* without context */
    csn_grep_match *items; /* malloc'd */
    size_t count, cap;
    bool truncated; /* `max` was reached */
    csn_status st;  /* failure of the matcher or of an allocation */
} csn_hits;

/* One file. buf = [lines kept for context][lines not searched yet][start of the next line]. */
typedef struct csn_line_scan {
    csn_hits *hits;
    const char *path, *kept_path; /* as given, and in the arena once it is needed */
    csn_buf buf;
    size_t fresh;        /* start of the part not searched yet */
    uint64_t fresh_line; /* its line number, 1-based */
    uint64_t shown_line; /* last line in the results */
    uint32_t after;      /* context lines still due after the last match */
    bool looked, binary;
} csn_line_scan;

void csn_line_scan_init(csn_line_scan *sc, csn_hits *hits);
void csn_line_scan_release(csn_line_scan *sc);
/* Begins the file that results call `path`, which must live until csn_line_scan_end. */
void csn_line_scan_start(csn_line_scan *sc, const char *path);
/* The next bytes of the file. False: no more are needed. */
bool csn_line_scan_feed(csn_line_scan *sc, const void *data, size_t len);
/* The same without a copy: room for `len` bytes (NULL: out of memory), then how many were
 * written to it; `last`: they end the file. */
char *csn_line_scan_room(csn_line_scan *sc, size_t len);
bool csn_line_scan_took(csn_line_scan *sc, size_t len, bool last);
/* The file has ended: searches the last line, if no newline ends it. */
void csn_line_scan_end(csn_line_scan *sc);
