/* double.h: starts the double of a remote provider for the length of a test process. */
#pragma once
#include <stdint.h>

/* As csn_conf_backend.setup: every sandbox works in `root`. Sets the variables by which the
 * backend finds the double. -1 and csn_double_why() when there is no node, or it does not
 * start. The double ends when this process does. */
int csn_double_e2b(const char *root);
int csn_double_docker(const char *root);
int csn_double_vercel(const char *root);
int csn_double_dagger(const char *root);
const char *csn_double_why(void);
/* Ends those that this process started, before it ends itself; waits for them. */
void csn_double_end_all(void);
/* node FILE.mjs ARGS...: the port it listens on, or -1. */
int csn_double_start(const char *file, const char *const *args);
