#!/bin/bash
# CVE-2026-71963, hermes: the agent's host side ran git with the repository's config, in which many keys
# name programs.
# Escaped: git on the host starts one of them.
# shellcheck disable=SC2317,SC2034,SC2016
NEEDS=protect
. "${0%/*}/../lib.sh"
prepare() { repo "$WS"; }
escaped() { marked; }
for key in 'core.hooksPath' 'diff.external' 'filter.x.clean' 'diff.x.textconv' 'core.pager' 'gpg.program' 'core.editor'; do
    for where in root nested; do
        attack()
        {
            local d=$WS dir=.
            [ $where = nested ] && d=$WS/new dir=new
            inside "[ $dir = . ] || (git init -q new; cd new; echo 1 >file; git add file; git commit -qm one)
                cd $dir; $EVIL mkdir -p h; for n in pre-commit post-index-change post-checkout; do cp evil h/\$n; done
                v=\$E; case $key in core.hooksPath) v=\$PWD/h ;; esac
                git config $key \"\$v\" || git config -f .git/config.new $key \"\$v\"
                git config commit.gpgSign $([ "$key" = gpg.program ] && echo true || echo false)
                case $key in *.x.*) echo 'file filter=x diff=x' >.gitattributes ;; esac; echo 2 >>file"
            host_git "$d"
            case $key in core.editor) (cd "$d" && echo 3 >>file && git commit -qa) ;; core.pager) (cd "$d" && script -qc 'git log' /dev/null </dev/null) ;; esac
        }
        attempt "$key, $where"
    done
done
