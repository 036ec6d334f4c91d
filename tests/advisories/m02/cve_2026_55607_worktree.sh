#!/bin/bash
# CVE-2026-55607 (GHSA-7835-87q9-rgvv), Claude Code before 2.1.163: the .git file of a worktree named a
# directory elsewhere, and the sandbox made that directory writable.
# Escaped: a command writes to the directory that a .git file or commondir of the project names.
# shellcheck disable=SC2317,SC2034
NEEDS=commands
. "${0%/*}/../lib.sh"
prepare()
{
    repo "$OUT/main" && git -C "$OUT/main" worktree add -q "$OUT/real"
    mkdir "$WS/sub" && echo 1 >"$WS/file"
}
attack()
{
    inside 'cp "$OUT/real/.git" .git 2>/dev/null || echo "gitdir: $OUT/main/.git/worktrees/real" >.git'
    inside 'echo evil >"$OUT/main/.git/hooks/pre-commit"; touch "$OUT/marker"'
}
escaped() { marked || [ -e "$OUT/main/.git/hooks/pre-commit" ]; }
attempt "a .git file made inside"
attack() { echo "gitdir: $OUT/main/.git/worktrees/real" >"$WS/.git"; inside 'echo evil >"$OUT/main/.git/hooks/pre-commit"; touch "$OUT/marker"'; }
attempt "a .git file that the project brings"
attack()
{
    git init -q "$WS" && echo "$OUT/main/.git" >"$WS/.git/commondir" && git config -f "$WS/.git/config" core.worktree "$OUT/main"
    inside 'echo evil >"$OUT/main/.git/hooks/pre-commit"; touch "$OUT/marker"'
}
attempt "a commondir and a core.worktree that the project brings"
attack()
{
    mkdir -p "$WS/.git" && ln -s "$OUT/main/.git/hooks" "$WS/.git/hooks" && cp "$OUT/main/.git/HEAD" "$WS/.git/" && mkdir "$WS/.git/objects" "$WS/.git/refs"
    inside 'echo evil >.git/hooks/pre-commit; touch "$OUT/marker"'
}
attempt "links in .git that the project brings"
