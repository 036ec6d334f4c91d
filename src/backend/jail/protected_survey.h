/* protected_survey.h: the search for protected files in one workspace when a sandbox is opened.
 *
 *   protected.c          names of the table in the root of the workspace; the list of places
 *   protected_targets.c  where links and further hard links of protected files lead
 *   protected_git.c      what git configs and .git files refer to */
#pragma once
#include "backend/jail/protected.h"

struct csn_jail;
struct stat;

typedef struct csn_survey {
    struct csn_jail *j;
    csn_protected_tree *t;
    int error;            /* the first errno: open fails */
    int depth;            /* of included git configs */
    const char *from_dir; /* directory of the current git config, below the workspace */
    uint64_t name_bits;   /* names in the root of the workspace, see protected.c */
    unsigned entries;     /* of protected directories that were listed */
    char missing[64];     /* a directory that does not exist, with a slash */
    char via[64];         /* a directory that is a link, with a slash */
} csn_survey;

/* protected.c */
void csn_survey_fail(csn_survey *s, int error);
void csn_survey_fail_unless_absent(csn_survey *s, int error);
/* A place that is mounted over itself: read-only, or writable if rule is NULL. */
void csn_survey_add(csn_survey *s, const char *path, const char *rule);
/* A place that is not mounted (absent, link or shared) and that each scan checks. */
void csn_survey_watch(csn_survey *s, const csn_protected_place *how);
/* Mounts every directory above path over itself. */
void csn_survey_pin_parents(csn_survey *s, const char *path);
/* The read-only place at or above path, or NULL. */
const csn_protected_place *csn_survey_covering(const csn_survey *s, const char *path);

/* protected_targets.c. Makes read-only what `path` leads to, if it is in the workspace, and
 * watches the links on the way; path is below the workspace, or absolute on the host. */
void csn_survey_target(csn_survey *s, const char *path, const char *rule);
/* Follows the links in a protected directory and records its hard links. */
void csn_survey_dir(csn_survey *s, const char *path, const char *rule);
/* Records a protected file that has further names. */
void csn_survey_file(csn_survey *s, const char *path, const char *rule, const struct stat *st);

/* protected_git.c. The config of the root repository, what it includes, and its hooks. */
void csn_survey_git(csn_survey *s);
