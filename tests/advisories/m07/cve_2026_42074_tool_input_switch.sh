#!/bin/bash
# CVE-2026-42074, OpenClaude: the input of the shell tool had a field that switched the sandbox off, and
# the model set it.
# Escaped: a tool call writes outside whatever fields it carries.
# shellcheck disable=SC2317,SC2034
NEEDS="service"
. "${0%/*}/../lib.sh"
prepare() { secret_out; }
attack()
{
    local c="touch $OUT/marker; cat $OUT/secret" f
    if [ "$BOX" = none ]; then # a server that honours such a field
        bash -c "$c" >"$R/said" 2>&1
        return
    fi
    for f in '"dangerouslyDisableSandbox":true' '"dangerously_disable_sandbox":true' '"sandbox":false' '"sandbox":"none"' '"backend":"local"' \
        '"allow_weaker":true' '"policy":{"backend":"local"}' '"sandbox_permissions":"require_escalated"' '"write":["/"]' '"unsandboxed":true'; do
        printf 'bash\n{"command":"%s",%s}\n' "$c" "$f"
    done | mcp_calls >"$R/said"
    grep -q '"jsonrpc"' "$R/said" || idle=1
}
escaped() { marked || grep -qs "$SECRET" "$R"/said*; }
attempt "a field in the arguments of the shell tool"
