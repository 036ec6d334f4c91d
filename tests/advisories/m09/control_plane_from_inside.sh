#!/bin/bash
# Control plane, seen from inside (the mechanism of CVE-2026-112346 and CVE-2026-32064): code inside calls the service that
# controls its own sandbox.
# Escaped: code inside finds a socket, a record or a port of caisson, and uses it.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="service keeps"
. "${0%/*}/../lib.sh"
prepare() { :; }
escaped() { marked || grep -qs 'FOUND' "$R"/said*; }
LOOK='for p in "$STATE" "$RUN"; do find "$p" 2>/dev/null | grep -q . && ls "$p" && echo FOUND $p; done; find / -xdev -type s 2>/dev/null | grep -i caisson | sed s/^/FOUND/; grep -i "caisson" /proc/net/unix | sed s/^/FOUND/; for f in /proc/1/fd/*; do readlink $f && echo FOUND a descriptor of the keeper; done; (cat </proc/1/fd/3) && echo FOUND an open one'
attack()
{
    if [ "$BOX" = none ]; then id=$("$CAISSON" create --backend jail --workspace "$WS"); else box_open; fi
    inside "STATE=$XDG_STATE_HOME RUN=$XDG_RUNTIME_DIR; $LOOK; true"
    [ "$BOX" = none ] && "$CAISSON" destroy "$id"
    true
}
attempt "sockets, records, descriptors"
attack()
{
    "$CAISSON" mcp --http 127.0.0.1:0 --token-file "$R/token" --backend jail --workspace "$OUT" >"$R/server" 2>&1 &
    server=$!
    eventually grep -q 'http://' "$R/server"
    port=$(grep -o '127.0.0.1:[0-9]*' "$R/server" | head -n 1 | cut -d: -f2)
    [ "$BOX" = none ] || EXTRA=(--host-port "$port")
    local key=""
    [ "$BOX" = none ] && key="-H 'Authorization: Bearer $(head -n 1 "$R/token")'"
    inside "curl -s --max-time 20 $key -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}' http://127.0.0.1:$port/mcp | grep -q serverInfo && echo FOUND the server; cat '$R/token' 2>/dev/null | grep . && echo FOUND the token"
    kill "$server"
    wait "$server"
}
attempt "an MCP server on the host, even with its port given inside"
