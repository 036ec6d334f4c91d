#!/bin/bash
# CVE-2026-25725, Claude Code before 2.1.2, as a link: a settings file was protected only if it existed when the
# sandbox started; a command created it, with a start-up hook that the host ran at the next start.
# Escaped: a protected name of the project has the attacker's text after the command. Here the name is a
# link at the start, and what it points to, in the project, is created or changed by the command.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
case $SANDBOX in
srt) names=".bashrc .mcp.json .vscode/tasks.json .idea/workspace.xml .claude/commands/x.md .git/hooks/post-commit" ;;
codex) names=".git/hooks/post-commit .codex/config.toml" ;;
*) names=".bashrc .mcp.json .vscode/tasks.json .idea/workspace.xml .claude/settings.json .claude/commands/x.md .cursor/mcp.json .git/hooks/post-commit .envrc" ;;
esac
start() { repo "$WS" && mkdir -p "$WS/.vscode" "$WS/.idea" "$WS/.claude/commands" "$WS/.cursor" "$WS/.git/hooks" "$WS/.codex"; }
escaped() { local n; for n in $names; do grep -qs evil "$WS/$n" && echo "$n" && return 0; done; return 1; }

prepare() { local n; start; for n in $names; do ln -s "$WS/later" "$WS/$n"; done; }
attack() { inside "echo evil >later"; }
attempt "a dangling link whose target is created"
prepare() { local n; start; echo 1 >"$WS/later"; for n in $names; do ln -s "$WS/later" "$WS/$n"; done; }
attempt "a link whose target is changed"
