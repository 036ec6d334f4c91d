#!/bin/bash
# CVE-2026-22708, Cursor: shell builtins passed the list of allowed commands, and changed variables so that
# an allowed command ran another program.
# Escaped: with a list of allowed commands, a program that is not on it runs because of PATH or another
# variable that an earlier call set. (The list is a filter, not the wall; the jail is.)
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commandlist keeps"
. "${0%/*}/../lib.sh"
prepare() { mkdir "$WS/bin" && printf '#!/bin/sh\ntouch %s/ran\n' "$WS" | tee "$WS/bin/ls" "$WS/bin/git" >"$WS/rc" && chmod +x "$WS/bin/"*; [ "$BOX" = none ] || EXTRA=(--allow-command ls --allow-command git); }
escaped() { [ -e "$WS/ran" ]; }
calls()
{
    local c
    box_open
    for c in "$@"; do
        if [ "$BOX" = none ]; then (cd "$WS" && bash -c "$c"); else "$CAISSON" exec "$BOX_ID" --session s -c "$c"; "$CAISSON" exec "$BOX_ID" -c "$c"; fi
    done
}
attack() { calls 'export PATH=$PWD/bin:$PATH; ls' 'PATH=$PWD/bin ls' 'ls'; }
attempt "PATH"
attack() { calls 'export BASH_ENV=$PWD/rc; bash -c ls' 'ls() { ./bin/ls; }; ls' 'alias ls=./bin/ls; ls' 'hash -p $PWD/bin/ls ls; ls' 'enable -f ./x ls; ls'; }
attempt "functions, aliases, the hash table"
