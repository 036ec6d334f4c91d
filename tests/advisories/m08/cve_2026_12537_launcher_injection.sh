#!/bin/bash
# CVE-2026-12537, Gemini CLI: text from the project was put into the command line that starts the container.
# Escaped: a name of a directory, a variable, a session or a word of a command is run by a shell, or taken
# for an option, on the host.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="caisson"
. "${0%/*}/../lib.sh"
prepare() { :; }
escaped() { marked; }
attack()
{
    local n m="touch '$OUT/marker'"
    cd "$OUT" || return
    for n in 'a;touch marker;' 'a$(touch marker)' 'a`touch marker`' "a'\$(touch marker)'" 'a"$(touch marker)"' $'a\ntouch marker' 'a|touch marker' '--write=.' '-- touch marker'; do
        mkdir -p "$R/p/$n"
        if [ "$BOX" = none ]; then
            eval "ls $R/p/$n" # a launcher that builds a line
            continue
        fi
        "$CAISSON" run --backend jail --workspace "$R/p/$n" --env "X=$n" --timeout 60s -- echo "$n" && idle=0 || idle=1
        (cd "$R/p/$n" && "$CAISSON" run --backend jail -- true)
        "$CAISSON" run --backend jail --workspace "$WS" --session "$n" -c true
        "$CAISSON" run --backend jail --workspace "$WS" --allow "$n" -- true
        "$CAISSON" run --backend jail --workspace "$WS" --cwd "$n" -- true
    done
}
attempt "names that are shell code or options"
