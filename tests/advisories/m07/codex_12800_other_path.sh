#!/bin/bash
# openai/codex#12800: one of several ways to start a command, a forked shell, had lost the wrapper of the
# sandbox.
# Escaped: some way to start a command writes outside.
# shellcheck disable=SC2317,SC2034
NEEDS="keeps filecalls service"
. "${0%/*}/../lib.sh"
prepare() { cp "$(command -v touch)" "$WS/t"; }
escaped() { marked; }
C() { echo "touch '$OUT/marker'"; }
way()
{
    local name=$1
    shift
    eval "attack() { if [ \"\$BOX\" = none ]; then touch \"\$OUT/marker\"; else box_open; $*; fi; }"
    attempt "$name"
}
way "exec -c" 'inside "$(C)"'
way "exec with words" '"$CAISSON" exec "$BOX_ID" -- touch "$OUT/marker"'
way "exec of a program of the project" '"$CAISSON" exec "$BOX_ID" -- "$WS/t" "$OUT/marker"'
way "a session, restarted" '"$CAISSON" exec "$BOX_ID" --session s -c "$(C)"; "$CAISSON" exec "$BOX_ID" --session s --restart -c "$(C)"'
way "in the background" '"$CAISSON" exec "$BOX_ID" -d -c "$(C)"; "$CAISSON" exec "$BOX_ID" -c "sleep 0.2"'
way "a terminal" '"$CAISSON" exec "$BOX_ID" -t -c "$(C)"'
way "a shell" 'echo "$(C)" | "$CAISSON" shell "$BOX_ID"'
way "standard input" '"$CAISSON" exec "$BOX_ID" --stdin -- bash <<<"$(C)"'
way "run" '"$CAISSON" run --backend jail --workspace "$WS" -c "$(C)"; "$CAISSON" run --backend jail --workspace "$WS" -t -c "$(C)"'
way "tools of the MCP server" 'mcp_bash "{\"command\":\"$(C)\"}" "{\"command\":\"$(C)\",\"run_in_background\":true}" "{\"command\":\"sleep 0.2\"}"'
