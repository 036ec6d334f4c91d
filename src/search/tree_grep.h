/* tree_grep.h: searches the files of a tree on several threads. The result is that of one
 * thread which reads them in the order of their paths. */
#pragma once
#include "search/line_scan.h"
#include "search/tree_files.h"

#define CSN_GREP_THREADS_MAX 8u

typedef struct csn_tree_grep {
    int dir; /* open for reading */
    csn_tree_filter filter;
    bool (*cancelled)(void *ctx); /* or NULL; called from any of the threads */
    void *ctx;
    unsigned threads; /* 0: one for each CPU of the caller, at most CSN_GREP_THREADS_MAX */
} csn_tree_grep;

/* Adds to `hits`, whose status and `truncated` are set as by a line scan. The threads have all
 * signals blocked and have ended when this returns. */
void csn_tree_grep_run(const csn_tree_grep *g, csn_hits *hits);
