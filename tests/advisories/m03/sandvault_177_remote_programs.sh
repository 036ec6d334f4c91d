#!/bin/bash
# webcoyote/sandvault#177: a host-side fetch used the config of a repository that the guest may write;
# core.sshCommand, credential helpers and transports are programs.
# Escaped: git fetch on the host starts one of them.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS"; }
escaped() { marked; }
for kind in 'core|sshCommand = %s|ssh://127.0.0.1:9/x' 'remote "origin"|uploadpack = %s|/x/y.git' 'url "ext::%s "|insteadOf = z:|z:x' 'core|gitProxy = %s|git://127.0.0.1:9/x' 'core|fsmonitor = %s|/nowhere'; do
    IFS='|' read -r section line url <<<"$kind"
    for dir in . new; do
        attack()
        {
            inside "[ $dir = . ] || git init -q new; cd $dir; $EVIL
                { echo '[remote \"origin\"]'; echo '  url = $url'; echo '  fetch = +refs/heads/*:refs/remotes/origin/*'; echo '[protocol \"ext\"]'; echo '  allow = always'
                  echo '[$section]' | sed \"s|%s|\$E|\"; echo '  $line' | sed \"s|%s|\$E|\"; } >>.git/config"
            rm -f "$OUT/marker"
            (cd "$WS/$dir" && { git fetch origin; git status; }) </dev/null
        }
        attempt "${line%% *} in $([ $dir = . ] && echo the project || echo a new repository)"
    done
done
