#!/bin/bash
# CVE-2026-112346, OpenHands: the server of the agent listened on every address and asked for no key.
# Escaped: a request without the token, or from a web page of another origin, is answered by a tool; or a
# server without tokens starts on an address that others reach.
# shellcheck disable=SC2317,SC2034
NEEDS="service"
. "${0%/*}/../lib.sh"
INIT='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
start()
{
    "$CAISSON" mcp --http "$1" --token-file "$R/token" --backend jail --workspace "$WS" >"$R/server" 2>&1 &
    server=$!
    eventually grep -q 'http://' "$R/server" || return
    url=$(grep -o 'http://[^ ]*' "$R/server" | head -n 1)
}
prepare() { :; }
# ask HEADERS...: whether a session is given
ask() { curl -s --max-time 20 -D - -o "$R/answer" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' "$@" -d "$INIT" "$url" >"$R/headers"; grep -qi '^HTTP/1.1 200' "$R/headers" && grep -q serverInfo "$R/answer" && touch "$OUT/marker"; }
attack()
{
    start 127.0.0.1:0
    if [ "$BOX" = none ]; then # the same request with the token
        ask -H "Authorization: Bearer $(head -n 1 "$R/token")"
    else
        ask
        ask -H 'Authorization: Bearer '
        ask -H 'Authorization: Bearer x'
        ask -H "Authorization: Basic $(head -n 1 "$R/token")"
        ask -H "Authorization: Bearer $(head -n 1 "$R/token")" -H 'Origin: http://evil.test'
        ask -H "Authorization: Bearer $(head -n 1 "$R/token")" -H 'Host: evil.test'
    fi
    kill "$server"
    wait "$server"
}
escaped() { marked; }
attempt "a request without the token, or from elsewhere"
attack()
{
    if [ "$BOX" = none ]; then touch "$OUT/marker"; return; fi
    timeout 5 "$CAISSON" mcp --http 0.0.0.0:0 --backend jail --workspace "$WS"
    [ $? -eq 124 ] && touch "$OUT/marker"
    timeout 5 "$CAISSON" mcp --http 127.0.0.1:0 --backend jail --workspace "$WS"
    [ $? -eq 124 ] && touch "$OUT/marker"
}
attempt "a server without tokens"
