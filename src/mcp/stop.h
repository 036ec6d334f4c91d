/* stop.h: SIGTERM, SIGINT and SIGHUP as a readable descriptor. */
#pragma once

/* A descriptor that becomes readable after a signal or csn_mcp_stop, or -errno. Never closed.
 * Ignored signals stay ignored; a second signal has its default effect. */
int csn_mcp_stop_fd(void);
void csn_mcp_stop(void); /* from any thread */
