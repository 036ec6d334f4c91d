#!/bin/bash
# CVE-2025-59944, Cursor: protected names were compared with regard to letter case, and a file system
# without it opened the protected file under another spelling.
# Escaped: a protected name in another spelling, which such a file system or a copy to one takes for the
# name itself, stays in the project.
# shellcheck disable=SC2317,SC2034
NEEDS="protect anycase"
. "${0%/*}/../lib.sh"
names=".GIT/hooks/pre-commit .Git/config .VSCode/tasks.json .MCP.json .Bashrc .CLAUDE/settings.json .Cursor/mcp.json .EnvRC"
prepare() { git init -q "$WS/other"; }
attack() { inside "cp other/.git/HEAD .; for n in $names; do mkdir -p \$(dirname \$n); printf '[core]\n\tfsmonitor = evil\n' >\$n; done"; }
escaped() { local n; for n in $names; do grep -qs evil "$WS/$n" && echo "$n" && return 0; done; return 1; }
attempt "other letter case"
