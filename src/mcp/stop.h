/* stop.h: turns SIGTERM, SIGINT and SIGHUP into a readable descriptor. */
#pragma once

/* Returns a descriptor that becomes readable after a signal or csn_mcp_stop, or -errno. It is
 * never closed. Ignored signals stay ignored; the same signal a second time has its default
 * effect. */
int csn_mcp_stop_fd(void);
void csn_mcp_stop(void); /* from any thread */
