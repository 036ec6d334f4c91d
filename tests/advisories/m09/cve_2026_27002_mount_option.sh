#!/bin/bash
# CVE-2026-27002, OpenClaw: options for bind mounts came from configuration that the agent can influence.
# Escaped: a field of a tool call, or text in the name of a directory, mounts something of the host.
# shellcheck disable=SC2317,SC2034
NEEDS="service caisson"
. "${0%/*}/../lib.sh"
MAY_REFUSE=1
prepare() { secret_out; }
attack()
{
    local c="cat $OUT/secret /host/secret /mnt/secret; touch $OUT/marker /host/marker" f n
    if [ "$BOX" = none ]; then # a launcher that honours it
        "$CAISSON" run --backend jail --workspace "$WS" --workspace "$OUT:/host:rw" -c "$c" >"$R/said" 2>&1
        return
    fi
    for f in "\"workspaces\":[\"$OUT:/host:rw\"]" "\"binds\":[\"$OUT:/host\"]" "\"mounts\":[{\"source\":\"$OUT\",\"target\":\"/host\"}]" "\"write\":[\"$OUT\"]" "\"read\":[\"/\"]" "\"env\":{\"XDG_CONFIG_HOME\":\"$WS\"}"; do
        printf 'bash\n{"command":"%s",%s}\n' "$c" "$f"
    done | mcp_calls >"$R/said"
    grep -q '"jsonrpc"' "$R/said" || idle=1
    for n in "x:$OUT:rw" "x:/host:rw,bind=$OUT" "x,$OUT" "x:/host:rw --write $OUT"; do
        mkdir -p "$R/p/$n"
        (cd "$R/p/$n" && "$CAISSON" run --backend jail -c "$c") >>"$R/said" 2>&1
        "$CAISSON" run --backend jail --workspace "$R/p/$n" -c "$c" >>"$R/said" 2>&1
    done
}
escaped() { marked || grep -qs "$SECRET" "$R"/said*; }
attempt "mounts by tool input or by a name"
