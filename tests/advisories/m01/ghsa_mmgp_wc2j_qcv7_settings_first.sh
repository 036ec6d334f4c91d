#!/bin/bash
# GHSA-mmgp-wc2j-qcv7, Claude Code: settings of the project were in effect before the project was
# trusted, and loosened the rules for its own commands.
# Escaped: a policy file that lies in the project widens the sandbox that is opened there.
# shellcheck disable=SC2317,SC2034
NEEDS="caisson"
. "${0%/*}/../lib.sh"
policy() { printf '{"write": ["%s"], "allow_weaker": true}\n' "$OUT"; }
prepare()
{
    mkdir -p "$WS/.caisson" "$WS/.config/caisson" "$WS/caisson"
    policy | tee "$WS/.caisson/config.json" "$WS/.config/caisson/config.json" "$WS/caisson/config.json" \
        "$WS/caisson.json" "$WS/.caisson.json" "$WS/policy.json" "$WS/config.json" "$WS/.caisson/policy.json" >/dev/null
}
attack()
{
    if [ "$BOX" = none ]; then # the user names it
        "$CAISSON" run --backend jail --no-project --policy "$WS/policy.json" -- touch "$OUT/marker"
    else
        "$CAISSON" run --backend jail -- touch "$OUT/marker" # caisson.json, not trusted: refused
        rm "$WS/caisson.json"
        box_open
        inside 'touch "$OUT/marker"'
    fi
}
escaped() { marked; }
attempt "a policy in the project"
