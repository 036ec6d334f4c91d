/* rpc.h: parses and writes one JSON-RPC 2.0 message as MCP uses it. No state, no transport. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/limits.h"

#define CSN_RPC_PARSE      (-32700)
#define CSN_RPC_INVALID    (-32600)
#define CSN_RPC_METHOD     (-32601)
#define CSN_RPC_PARAMS     (-32602)
#define CSN_RPC_INTERNAL   (-32603)
#define CSN_RPC_BUSY       (-32000)
#define CSN_RPC_SESSION    (-32001) /* no such session */
#define CSN_RPC_HEADER     (-32020) /* headers and body differ */
#define CSN_RPC_CAPABILITY (-32021) /* the client lacks a required capability */
#define CSN_RPC_VERSION    (-32022) /* unsupported revision */
#define CSN_RPC_CANCELLED  (-32800)

typedef enum csn_rpc_kind {
    CSN_RPC_REQUEST,
    CSN_RPC_NOTIFICATION,
    CSN_RPC_RESPONSE,
} csn_rpc_kind;

typedef struct csn_rpc_msg {
    csn_rpc_kind kind;
    csn_jval *root;
    char id[CSN_RPC_ID_MAX]; /* JSON text; "": none */
    const char *method;      /* NULL for a response */
    const csn_jval *params;  /* an object, or NULL */
} csn_rpc_msg;

/* The reply to an invalid message. */
typedef struct csn_rpc_fault {
    int code;
    char id[CSN_RPC_ID_MAX]; /* "" if the message has no usable id */
    char message[256];
} csn_rpc_fault;

/* Returns false and fills in `why` for an invalid message; *ret then needs no release. */
bool csn_rpc_parse(const char *text, size_t len, csn_rpc_msg *ret, csn_rpc_fault *why);
void csn_rpc_release(csn_rpc_msg *m);

/* _begin writes {"jsonrpc":"2.0","id":ID,"result": and the caller writes the value; _end writes
 * the closing brace. */
void csn_rpc_result_begin(csn_json *j, csn_buf *out, const char *id);
int csn_rpc_result_end(csn_json *j); /* 0 or errno */
/* If `id` is "", the reply has id null. `data` is JSON or NULL. Returns 0 or errno. */
int csn_rpc_error(csn_buf *out, const char *id, int code, const char *message,
                  const char *data);
