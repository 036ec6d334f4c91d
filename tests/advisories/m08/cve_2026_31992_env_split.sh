#!/bin/bash
# CVE-2026-31992, OpenClaw: `env -S` splits one word into a command line, which the check took for a word.
# Escaped: with a list that has neither, `env -S` or a word with spaces runs a command.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commandlist"
. "${0%/*}/../lib.sh"
prepare() { [ "$BOX" = none ] || EXTRA=(--allow-command ls --allow-command 'l*'); MAY_REFUSE=1; }
escaped() { [ -e "$WS/ran" ]; }
attack()
{
    local c
    for c in "env -S 'touch ran'" "env -S'touch\\tran'" "env --split-string='touch ran'" "'env' -vS 'touch ran'" 'e""nv -S "touch ran"' '\env -S "touch ran"' '$(echo env) -S "touch ran"'; do
        box_run "$c"
    done
    [ "$BOX" = none ] && return
    caisson_words
    "$CAISSON" run "${words[@]}" -- env -S 'touch ran'
    "$CAISSON" run "${words[@]}" -- 'env -S touch ran'
}
attempt "a word that is split later"
