#!/bin/bash
# GHSA-q5hj-mxqh-vv77, Claude Code: a crafted commondir made a directory of the attacker count as a
# worktree of a trusted repository; in git the config and hooks come from the directory that it names.
# Escaped: git on the host starts a program that the directory behind commondir or gitdir names.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS" && git -C "$WS" worktree add -q "$WS/wt"; }
escaped() { marked; }
OTHER='git init -q o; mv o/.git other; rmdir o;'
LINE='[core]\n\tfsmonitor = %s\n\tbare = false\n'
attack() { inside "$OTHER $(config_with other/config "$LINE") echo \$PWD/other >.git/commondir"; host_git; }
attempt "commondir of the repository"
attack() { inside "$OTHER $(config_with other/config "$LINE") echo \$PWD/other >.git/worktrees/wt/commondir"; host_git "$WS/wt"; }
attempt "commondir of a worktree"
attack() { inside "$OTHER $(config_with other/config "$LINE") rm -f wt/.git; echo gitdir: \$PWD/other >wt/.git"; host_git "$WS/wt"; }
attempt "the .git file of a worktree"
attack() { inside "$OTHER mkdir n; $(config_with other/config "$LINE") echo gitdir: ../other >n/.git"; host_git "$WS/n"; }
attempt "a new .git file"
attack() { inside "$OTHER mkdir n; $(config_with other/config "$LINE") ln -s ../other n/.git"; host_git "$WS/n"; }
attempt "a link named .git"
attack() { inside "mkdir -p x/refs x/objects n; cp .git/HEAD x/; $OTHER $(config_with other/config "$LINE") echo ../other >x/commondir; echo gitdir: ../x >n/.git"; host_git "$WS/n"; }
attempt "a chain of both"
