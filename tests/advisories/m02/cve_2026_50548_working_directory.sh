#!/bin/bash
# CVE-2026-50548, Cursor before 3.0: the agent chose the working directory of a command, and the sandbox
# took it for the project.
# Escaped: a working directory outside makes it writable or readable.
# shellcheck disable=SC2317,SC2034
NEEDS="filecalls keeps"
. "${0%/*}/../lib.sh"
prepare() { secret_out; }
at() { if [ "$BOX" = none ]; then (cd "$1" && bash -c "$2"); else "$CAISSON" exec "$BOX_ID" --cwd "$1" -c "$2"; fi >>"$R/said" 2>&1; }
attack()
{
    local d
    box_open
    inside 'ln -s "$OUT" l'
    for d in "$OUT" l ../out "$WS/../out" /proc/self/root"$OUT"; do
        at "$d" 'touch marker; cat secret'
    done
}
escaped() { marked || secret_seen; }
attempt "the directory of one command"
attack()
{
    local d
    box_open
    inside 'ln -s "$OUT" l'
    for d in "$OUT" l ../out; do
        if [ "$BOX" = none ]; then cd "$WS/$d" || cd "$d" || return; else "$CAISSON" cd "$BOX_ID" "$d"; fi
        [ "$BOX" = none ] && cat secret >>"$R/said" && touch marker
        [ "$BOX" = none ] || "$CAISSON" cat "$BOX_ID" secret >>"$R/said"
        [ "$BOX" = none ] || echo x | "$CAISSON" write "$BOX_ID" marker
        [ "$BOX" = none ] || "$CAISSON" exec "$BOX_ID" --session s -c "cd '$OUT'; touch marker; cat secret" >>"$R/said" 2>&1
        cd "$WS" || return
    done
}
attempt "the directory of the sandbox and of a session"
