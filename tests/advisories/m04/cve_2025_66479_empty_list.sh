#!/bin/bash
# CVE-2025-66479, sandbox-runtime: an empty list of allowed domains meant that there was no list.
# Escaped: with a list that is given and empty, a connection or a question leaves.
# shellcheck disable=SC2317,SC2034
NEEDS="world netrules"
. "${0%/*}/../lib.sh"
prepare() { ALLOW=(); before=$(($(served 93.184.216) + $(asked evil.test))); }
escaped() { settle; [ $(($(served '93.184.216.66\|93.184.216.10') + $(asked '[^e]x.evil.test'))) -gt "$hits" ]; }
GET='curl -sS --max-time 5 http://evil.test/; curl -sS --max-time 5 http://93.184.216.66/; curl -sS --max-time 5 http://ok.test/; curl -sS --max-time 5 -k https://evil.test/'
hits() { hits=$(($(served '93.184.216.66\|93.184.216.10') + $(asked '[^e]x.evil.test'))); }
attack() { hits; inside "$GET"; }
attempt "no rule"
for policy in '{"network": {"allow": []}}' '{"network": {}}' '{"network": {"allow": [], "deny": []}}' '{"network": {"packages": []}}' '{"network": "none"}' '{"network": {"deny": ["x.test"]}}'; do
    attack() { hits; if [ "$BOX" = none ]; then inside "$GET"; else echo "$policy" >"$R/p.json"; EXTRA=(--policy "$R/p.json"); MAY_REFUSE=1; inside "$GET"; fi; }
    case $SANDBOX in caisson) attempt "$policy" ;; esac
done
