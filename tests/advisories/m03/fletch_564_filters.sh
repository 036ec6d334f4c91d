#!/bin/bash
# fwdai/fletch#564: a fixed list of overridden config keys cannot cover clean filters, textconv programs and
# merge drivers, whose names come from .gitattributes.
# Escaped: git add, diff or merge on the host starts such a program.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS"; }
escaped() { marked; }
make='git init -q new; cd new; echo 1 >file; git add file; git commit -qm one;'
for kind in 'filter "q"|clean|filter=q' 'filter "q"|process|filter=q' 'diff "q"|command|diff=q' 'diff "q"|textconv|diff=q'; do
    IFS='|' read -r section key attribute <<<"$kind"
    attack() { inside "$make $(config_with .git/config "[$section]\n\t$key = %s\n") echo '* $attribute' >.gitattributes; echo 2 >>file"; host_git "$WS/new"; }
    attempt "$key of ${section%% *}"
done
attack()
{
    inside "$make git checkout -q -b side; echo 3 >file; git commit -qam side; git checkout -q main; echo 4 >file; git commit -qam main
        $(config_with .git/config '[merge "q"]\n\tdriver = %s\n') echo '* merge=q' >.git/info/attributes; echo '* merge=q' >.gitattributes"
    rm -f "$OUT/marker"
    git -C "$WS/new" merge side
}
attempt "a merge driver"
