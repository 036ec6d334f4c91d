#!/bin/bash
# C3: a repository that starts a program is found wherever a command hides it, however it is moved
# later, and by however many sandboxes. After each attempt git is run on the host in every directory
# of the workspace: no program of the attacker may start. The control does the same without a sandbox
# and shows that one does.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"
command -v git >/dev/null || { skip "all of it" "needs git" && exit 0; }
export GIT_CONFIG_NOSYSTEM=1 MARK=$T/ran
git config --global init.defaultBranch main
git config --global safe.directory '*'
ENV="export GIT_CONFIG_NOSYSTEM=1 MARK=$MARK"
# What a step may use: evil DIR makes a repository there whose config starts a program.
ENV+='; evil() { mkdir -p "$1" && git -C "$1" init -q . && git -C "$1" config core.fsmonitor "touch $MARK; false"; }'
ENV+='; hook() { mkdir -p "$1" && printf "#!/bin/sh\ntouch $MARK\n" >"$1/post-index-change" && chmod +x "$1/post-index-change"; }'

fresh()
{
    chmod -R u+rwx "$WS" 2>/dev/null
    find "$WS" -mindepth 1 -not -name probe -delete
    rm -f "$MARK"
    (cd "$WS" && git init -q . && git config user.name a && git config user.email a@b && echo 1 >file &&
        git add file && git commit -qm one && mkdir -p node_modules/x) || fail "a workspace to begin with"
    git -C "$WS" init -q nested && echo 1 >"$WS/nested/file" && git -C "$WS/nested" add file
    sleep 0.02 # the clock of file systems ticks: what follows is later
}
# git as the host runs it, in every directory there is, also by way of links.
host_runs()
{
    find -L "$WS" -type d -print0 2>/dev/null |
        while IFS= read -r -d '' d; do
            (cd "$d" 2>/dev/null && touch file 2>/dev/null; git status -s; git add -A . ; git diff) >/dev/null 2>&1
        done
    [ -e "$MARK" ] && echo ran || echo nothing
}

# NAME|STEP|STEP...: each step is a sandbox of its own
cases=(
    'objects, a link to it|evil .git/objects/zz/proj; ln -s .git/objects/zz/proj proj'
    'objects, moved out later|evil .git/objects/zz/proj|mv .git/objects/zz/proj proj'
    'objects, in a directory of two digits|evil .git/objects/ab/proj|mv .git/objects/ab proj'
    'objects, twice moved|evil .git/objects/zz/proj|mv .git/objects/zz .git/zz|mv .git/zz proj'
    'objects/pack|evil .git/objects/pack/x|ln -s ../.git/objects/pack/x nested/p'
    'objects/info|evil .git/objects/info/x|mv .git/objects/info/x .'
    'objects of a repository below|evil nested/.git/objects/zz/proj|mv nested/.git/objects/zz/proj nested/p'
    'objects of a submodule|mkdir -p .git/modules/m/refs .git/modules/m/objects; cp .git/HEAD .git/modules/m; evil .git/modules/m/objects/zz/p|mv .git/modules/m/objects/zz/p p'
    'objects of a bare repository|git init -q --bare b.git; evil b.git/objects/zz/p|mv b.git/objects/zz/p p'
    'the objects themselves become a repository|mkdir -p .git/objects/zz/p; cd .git/objects/zz/p; git init -q --bare .; git config core.bare false; git config core.worktree ../../../..; git config core.fsmonitor "touch $MARK; false"|mkdir q; mv .git/objects/zz/p q/.git'
    'a gitfile into objects|evil .git/objects/zz/p; mkdir q; echo "gitdir: ../.git/objects/zz/p/.git" >q/.git'
    'a gitfile that points to nothing yet|mkdir q; echo "gitdir: ../later" >q/.git|evil p; mv p/.git later'
    'a gitfile in another place among the objects|mkdir -p .git/objects/ab; echo "gitdir: ../../modules/x" >.git/objects/ab/.git; mkdir -p .git/modules|evil p; mv p/.git .git/modules/x'
    'a gitfile among the objects, changed in place|mkdir -p .git/objects/ab .git/modules; git init -q p; mv p/.git .git/modules/x; echo "gitdir: ../../modules/x" >.git/objects/ab/.git|evil /tmp/y; cp -r /tmp/y/.git .git/modules/y; echo "gitdir: ../../modules/y" >.git/objects/ab/.git'
    'a link to nothing yet|mkdir q; ln -s ../later q/.git|evil p; mv p/.git later'
    'a hidden directory of packages|evil node_modules/x/.hidden; ln -s node_modules/x/.hidden proj'
    'among the references|evil .git/refs/p|mv .git/refs/p p'
    'among the logs|evil .git/logs/p|mv .git/logs .git/l; ln -s .git/l/p p'
    'a dull directory that becomes hooks|git init -q p; echo 1 >p/file; git -C p add file; rm -rf p/.git/hooks; hook p/dull|mv p/dull p/.git/hooks'
    'a dull directory, moved by a parent|git init -q p; echo 1 >p/file; git -C p add file; mv p/.git p/dull; rm -rf p/dull/hooks; mv p/dull/HEAD p/dull/H; hook p/dull/hooks|mv p/dull/H p/dull/HEAD; mv p q; mv q/dull q/.git'
    'a submodule that becomes a repository|mkdir q; git init -q p; echo 1 >p/file; git -C p add file; mkdir -p .git/modules; mv p/.git .git/modules/p; mv .git/modules/p/HEAD .git/modules/p/H; hook .git/modules/p/hooks; echo "gitdir: ../.git/modules/p" >p/.git|mv .git/modules/p/H .git/modules/p/HEAD'
    'a hard link to an old file|git init -q p; echo 1 >p/file; git -C p add file; rm -rf p/.git/hooks; hook p/dull|mkdir p/.git/hooks; ln p/dull/post-index-change p/.git/hooks/post-index-change'
    'with its old times|evil .git/objects/zz/p; find .git/objects/zz -exec touch -h -d 2001-01-01 {} +|mv .git/objects/zz/p p; touch -d 2001-01-01 p .'
    'a directory deep below|d=$(printf "d/%.0s" {1..100}); evil $d/p|d=$(printf "d/%.0s" {1..100}); mv $d/p p'
    'closed behind it|evil .git/objects/zz/p; chmod 0 .git/objects/zz/p .git/objects/zz|chmod 755 .git/objects/zz; chmod 755 .git/objects/zz/p; mv .git/objects/zz/p p'
)
for one in "${cases[@]}"; do
    name=${one%%|*}
    IFS='|' read -r -a steps <<<"${one#*|}"
    fresh
    for step in "${steps[@]}"; do
        "${IN[@]}" -c "$ENV; $step" >"$T/.out" 2>&1 || fail "$name: inside" "$(tail -n 3 "$T/.out")"
        sleep 0.02
    done
    is "hidden: $name" "$(host_runs)" nothing
    fresh
    for step in "${steps[@]}"; do (cd "$WS" && bash -c "$ENV; $step") >/dev/null 2>&1; done
    is "control: $name" "$(host_runs)" ran
    rm -rf /tmp/y
done
