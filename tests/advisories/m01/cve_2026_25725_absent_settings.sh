#!/bin/bash
# CVE-2026-25725, Claude Code before 2.1.2: a settings file was protected only if it existed when the
# sandbox started; a command created it, with a start-up hook that the host ran at the next start.
# Escaped: a protected name of the project has the attacker's text after the command. The same for the
# other states that such a name can have at the start. Names: those that the product says it protects.
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

prepare() { repo "$WS"; }
attack() { inside "for n in $names; do mkdir -p \$(dirname \$n); echo evil >\$n; done"; }
attempt "absent, and its directory too"
prepare() { start; }
attempt "absent in a directory that is there"
prepare() { local n; start; for n in $names; do mkdir -p "$WS/$n"; done; }
attack() { inside "for n in $names; do rmdir \$n; echo evil >\$n; done"; }
attempt "a directory in its place"
prepare() { start; }
attack() { inside "for n in $names; do echo evil >x; mv x \$n; done"; }
attempt "created by rename"
prepare() { local n; start; for n in $names; do [ -e "$WS/$n" ] || echo 1 >"$WS/$n"; done; }
attack() { inside "for n in $names; do d=\$(dirname \$n); [ \$d = . ] && continue; mv \${d%%/*} \$RANDOM; mkdir -p \$d; echo evil >\$n; done"; }
attempt "in a directory that was renamed and made anew"
