/* audit_net.h: writes the fields of one connection into a line of the audit log. */
#pragma once
#include "base/json_write.h"
#include "caisson/caisson.h"

/* Adds the fields to the open object `args` of the line. */
void csn_audit_put_net(csn_json *j, const csn_net_event *e);
