/* stop.h: SIGTERM, SIGINT and SIGHUP as something to poll for. */
#pragma once

/* A descriptor that becomes readable when one of them came, or csn_mcp_stop was called; -errno
 * when it cannot be made. It stays open. Signals that were ignored stay so; a second signal has
 * its default effect. */
int csn_mcp_stop_fd(void);
void csn_mcp_stop(void); /* from any thread */
