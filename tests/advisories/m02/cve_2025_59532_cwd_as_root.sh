#!/bin/bash
# CVE-2025-59532, Codex CLI: the working directory in a tool call of the model became a writable root of
# the sandbox.
# Escaped: a tool call that names a directory outside writes or reads there.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls service"
. "${0%/*}/../lib.sh"
prepare() { secret_out; }
attack()
{
    if [ "$BOX" = none ]; then # what the product did: the directory of the call is the sandbox's
        "$CAISSON" run --backend jail --workspace "$OUT" -c 'touch marker; cat secret' >"$R/said" 2>&1
        return
    fi
    mcp_bash "{\"command\": \"touch marker; cat secret\", \"cwd\": \"$OUT\"}" \
        "{\"command\": \"touch marker; cat secret\", \"cwd\": \"../out\"}" \
        "{\"command\": \"touch $OUT/marker; cat $OUT/secret\", \"workdir\": \"$OUT\", \"workspace\": \"$OUT\"}" \
        "{\"command\": \"cd $OUT; touch marker; cat secret\"}" >"$R/said" 2>&1
    grep -q '"jsonrpc"' "$R/said" || idle=1
}
escaped() { marked || grep -qs "$SECRET" "$R"/said*; }
attempt "the directory in a tool call"
