#!/bin/bash
# shellcheck disable=SC2016 # expanded inside
# Copy-on-write workspaces: an agent runs, its changes are compared, kept in part, thrown away.
if [ "${1:-caller}" = user ] && [ "$(id -u)" -eq 0 ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \
        env -i PATH=/usr/bin:/bin CAISSON="$CAISSON" VFORK_LOOP="$VFORK_LOOP" DIE_AT="$DIE_AT" "$0"
fi
here=$(cd "${0%/*}" && pwd)
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"
unset CAISSON_BACKEND
chmod 711 "$T"
p=$T/p
mkdir -p "$p/src" "$p/old"
chmod a+rwx "$p" "$p/src" "$p/old"
cd "$p" || exit 1
printf '1\n2\n3\n' >src/a && echo b >src/b && echo o >old/file
if ! reason=$(cs run -- true 2>&1); then
    skip "all of it" "no jail: ${reason%%$'\n'*}"
    exit 0
fi

# ---- the story ----
id=$(cs create --cow --undo --record-changes)
cs exec "$id" -- sh -c 'echo 4 >>src/a; echo new >src/new; echo x >src/b; rm -r old; mkdir -p .git/hooks; echo "#!/bin/sh" >.git/hooks/pre-commit'
is "the host's files stay" "$(cat src/a src/b old/file | tr '\n' ' ')" "1 2 3 b o "
status "diff --stat" 0 cs diff "$id" --stat
like "has letters and lines" "$out" "*A .git/hooks/pre-commit*held back: .git/hooks*D old/file*M src/a*+1*A src/new*"
status "diff --name-only of a directory" 0 cs diff "$id" --name-only src
is "leaves the rest out" "$out" "$(printf 'src/a\nsrc/b\nsrc/new')"
cs diff "$id" src >"$T/patch" 2>/dev/null
mkdir "$T/copy" && cp -r src "$T/copy/"
holds "git applies the patch" git -C "$T/copy" apply "$T/patch"
is "to the same files" "$(cat "$T/copy/src/a" "$T/copy/src/new" | tr '\n' ' ')" "1 2 3 4 new "
status "diff --json" 0 cs diff "$id" --json --patch
json "has changes" "$out" '[c["kind"] for c in v["changes"] if c["path"] == "src/b"] == ["modified"] and v["files"] == len(v["changes"]) and "diff --git" in v["patch"]'
status "commit --dry-run" 0 cs commit "$id" --dry-run src
is "writes nothing" "$(cat src/b)" b
status "commit of two files" 0 cs commit "$id" src/a src/new
is "writes them" "$(cat src/a src/new src/b | tr '\n' ' ')" "1 2 3 4 new b "
status "the rest" 0 cs commit "$id" old .git
like "protected files are held back" "$out$err" "*held back*.git/hooks/pre-commit*--allow-protected*"
holds "and not written" ! test -e .git/hooks/pre-commit
holds "deletions are" ! test -e old
status "--allow-protected" 0 cs commit "$id" --allow-protected .git
holds "writes them" test -e .git/hooks/pre-commit
status "discard" 0 cs discard "$id"
is "leaves nothing" "$(cs diff "$id" --stat)" "0 files, +0 -0"
is "and the host's file inside" "$(cs exec "$id" -- cat src/b)" b

# ---- snapshots ----
cs exec "$id" -- sh -c 'echo one >src/b'
is "snapshot prints its name" "$(cs snapshot "$id" first)" first
status "a name is taken once" 1 cs snapshot "$id" first
cs exec "$id" -- sh -c 'echo two >src/b; rm src/a'
status "undo" 0 cs undo "$id"
is "takes back one command" "$(cs exec "$id" -- cat src/b src/a | head -n 1)" one
like "snapshots lists" "$(cs snapshots "$id")" "*automatic*first*"
cs exec "$id" -- sh -c 'echo three >src/b'
status "rollback" 0 cs rollback "$id" first
is "restores" "$(cs exec "$id" -- cat src/b)" one
status "an unknown snapshot" 1 cs rollback "$id" nothing
json "the log has hashes" "$(cs log "$id" --json | grep -m 1 '"path":"src/a"')" \
    '[len(c["before"]) == len(c["after"]) == 64 for c in v["changes"] if c["path"] == "src/a"] == [True]'

# ---- forks ----
status "fork" 0 cs fork "$id"
fork=$out
is "has the files" "$(cs exec "$fork" -- cat src/b)" one
cs exec "$fork" -- sh -c 'echo fork >src/b'
is "and its own changes" "$(cs exec "$id" -- cat src/b)" one
status "fork -n --json" 0 cs fork "$id" -n 2 --name t --json
json "is an array" "$out" '[e["name"] for e in v] == ["t-1", "t-2"]'
like "list --tree" "$(cs list --tree)" "*$id *  $fork*"
status "a taken name" 1 cs fork "$id" -n 2 --name t
cs destroy "$fork" t-1 t-2

# ---- conflicts ----
cs discard "$id"
cs exec "$id" -- sh -c 'echo sandbox >src/b; echo more >src/c'
echo host >src/b
status "a conflict" 1 cs commit "$id" --conflicts "$T/conflicts"
like "is named" "$err" "*1 conflict, nothing was written: src/b*--mine*--theirs*"
holds "nothing is written" ! test -e src/c
is "its versions are there" "$(cat "$T/conflicts/src/b.host" "$T/conflicts/src/b.sandbox" | tr '\n' ' ')" "host sandbox "
status "an existing directory" 2 cs commit "$id" --conflicts "$T/conflicts"
echo both >"$T/both"
status "--resolved" 0 cs commit "$id" --resolved "src/b=$T/both"
is "is written with the rest" "$(cat src/b src/c | tr '\n' ' ')" "both more "
status "--mine with --theirs" 2 cs commit "$id" --mine --theirs
status "a path that is nowhere" 1 cs commit "$id" nowhere

# ---- while something runs ----
cs exec "$id" -d -- sleep 600 >/dev/null
status "commit is refused" 1 cs commit "$id"
like "and says why" "$err" "*a command runs*hint: wait for the command or end it*"
cs destroy "$id"

# ---- run ----
status "run --cow" 3 cs run --cow -- sh -c 'echo x >src/run; exit 3'
like "tells what it threw away" "$err" "*A src/run*1 change is thrown away; --commit-on success keeps them*"
status "--commit-on success after a failure" 3 cs run --cow --commit-on success -- sh -c 'echo x >src/run; exit 3'
holds "keeps nothing" ! test -e src/run
status "--commit-on always" 3 cs run --cow --commit-on always -- sh -c 'echo x >src/run; exit 3'
is "keeps it" "$(cat src/run)" x
status "--workspace DIR:cow" 0 cs run --workspace "$p:cow" --commit-on success -- rm src/run
holds "is the same" ! test -e src/run
status "--commit-on without --cow" 2 cs run --commit-on always -- true
like "names it" "$err" "*--commit-on needs a copy-on-write workspace*--cow*"
status "--undo without --cow" 2 cs run --undo -- true
like "names it, too" "$err" "*--undo: the workspace is not copy-on-write*--cow*"
status "--cow on local" 0 cs run --backend local --cow -- true
keep() { python3 "$here/pty_drive.py" "$@" "$CAISSON" run --cow -- sh -c 'echo x >src/one; echo x >src/two'; }
keep '*|=discard [d]:|c\n|=src/one ?|y\n|=src/two ?|n\n' >"$T/.pty"
is "a terminal chooses" "$(echo src/*)" "src/a src/b src/c src/new src/one"
keep '*|=discard [d]:|d\n' >"$T/.pty"
like "or discards" "$(cat "$T/.pty")" "*2 changes are thrown away*"

# ---- race ----
printf 'echo a >src/raced; sleep 600\necho b >src/raced\n' >"$T/ways"
status "race --each" 0 cs race --each "$T/ways" --commit first-success
like "stops the rest" "$out" "*1 *stopped*2 *exit 0*"
is "keeps the first that succeeds" "$(cat src/raced)" b
status "race -n without a success" 1 cs race -n 2 --commit first-success -c 'echo c >src/raced; false'
like "has a row for each" "$out" "*1 *exit 1*2 *exit 1*"
is "keeps nothing" "$(cat src/raced)" b
status "race --json" 0 cs race -n 2 --commit 2 --json -c 'echo c >src/raced; echo out'
json "has results" "$out" '[(e["committed"], e["result"]["stdout"], e["diff"]["files"]) for e in v] == [(False, "out\n", 1), (True, "out\n", 1)]'
status "race without a command" 2 cs race -n 2
status "race --commit of an index that is not there" 2 cs race -n 2 --commit 3 -c 'echo d >src/raced'
like "is refused before anything runs" "$err" "*--commit 3: there are 2 candidates*"
printf 'echo d >src/raced\necho e >src/raced; sleep 0.3\n' >"$T/ways"
watch() { python3 "$here/pty_drive.py" "$1" "$CAISSON" race "${@:2}" >"$T/.pty"; }
watch '*|=none [N]:|3 is not one of them, and this line is long\n|=answer 1 to 2, or n|2\n' --each "$T/ways"
like "race on a terminal draws its lines again" "$(cat "$T/.pty")" $'*[[]1] running*\e[[]2A\e[[]K[[]1] exit 0*\e[[]K[[]2] exit 0*INDEX*'
like "asks again after a mistake" "$(cat "$T/.pty")" "*none [[]N]: 3 is not*answer 1 to 2, or n*none [[]N]: 2*1 change is written*status=0*"
is "and keeps that" "$(cat src/raced)" e
watch '*|=none [N]:|\n' -n 2 --commit ask -c 'echo f >src/raced'
like "an empty answer is none" "$(cat "$T/.pty")" "*nothing is kept*status=0*"
watch '*|=none [N]:|\x03' -n 2 -c 'echo f >src/raced'
like "^C at the question ends it" "$(cat "$T/.pty")" "*status=130*"
watch '*|=[2] running|\x03' -n 2 -c 'echo f >src/raced; sleep 600'
like "^C stops the candidates" "$(cat "$T/.pty")" "*1 *stopped*2 *stopped*status=130*"
watch '*|=none [N]:|n\n' -n 31 -c true
like "too many for the screen are not drawn" "$(cat "$T/.pty")" "INDEX*31 *exit 0*"
is "nothing of these is kept" "$(cat src/raced)" e

# ---- the host changes files, too ----
seq 1 9 >src/lines
id=$(cs create --cow)
cs exec "$id" -- sed -i 's/^1$/one/' src/lines
sed -i 's/^9$/nine/' src/lines
like "diff says so" "$(cs diff "$id" --stat)" "*M src/lines*the host changed it too*"
status "commit merges text" 0 cs commit "$id"
is "of both" "$(tr '\n' ' ' <src/lines)" "one 2 3 4 5 6 7 8 nine "
status "a second commit" 0 cs commit "$id"
is "keeps the host's part" "$(tail -n 1 src/lines)" nine
cs exec "$id" -- sed -i 's/^one$/uno/' src/lines
sed -i 's/^one$/eins/' src/lines
status "the same line on both sides" 1 cs commit "$id"
like "is a conflict" "$out$err" "*conflict*src/lines*"
is "nothing is written" "$(head -n 1 src/lines)" eins
status "--conflicts" 1 cs commit "$id" --conflicts "$T/versions"
is "writes the versions" "$(head -n 1 "$T/versions/src/lines.host")$(head -n 1 "$T/versions/src/lines.sandbox")" "einsuno"
cs discard "$id" >/dev/null
cs exec "$id" -- sh -c 'echo x >>src/lines'
status "after discard" 0 cs commit "$id"
cs exec "$id" -- sh -c 'echo y >>src/lines'
status "a committed file can change again" 0 cs commit "$id"
is "and is written again" "$(tail -n 2 src/lines | tr '\n' ' ')" "x y "
cs destroy "$id"

# ---- what is removed after a commit ----
id=$(cs create --cow)
cs exec "$id" -c 'mkdir -p made/in; echo x >made/in/f; echo x >made/g; mkdir moved; echo x >moved/h'
status "a commit of new directories" 0 cs commit "$id"
cs exec "$id" -c 'rm -r made/in; mv moved away 2>/dev/null || { cp -r moved away; rm -r moved; }'
like "their removal is a change" "$(cs diff "$id" --stat)" "*A away/h*D made/in/f*D moved/h*"
cs snapshot "$id" >/dev/null
is "a snapshot does not bring them back" "$(cs exec "$id" -c 'echo made/* away/* moved*')" "made/g away/h moved*"
status "and is committed" 0 cs commit "$id"
is "to the host" "$(echo made/* away/* moved*)" "made/g away/h moved*"
cs destroy "$id"
rm -r made away

# ---- while something runs, and after ----
echo secret >.secret
cp "$VFORK_LOOP" .
id=$(cs create --cow --deny .secret 2>/dev/null)
cs exec "$id" --session s -c 'cd src; V=kept'
cs exec "$id" -c 'echo 1 >count'
pid=$(cs exec "$id" -d -- sh -c 'while :; do echo >>busy; sleep 0.01; done')
status "snapshot while it runs" 0 cs snapshot "$id" busy
like "is a copy" "$(cs snapshots "$id")" "*copied*busy*"
status "rollback while it runs" 1 cs rollback "$id" busy
like "names the processes" "$err" "*still run*hint:*caisson ps*"
status "a fork while it runs" 0 cs fork "$id"
fork=$out
is "has the files" "$(cs exec "$fork" -- cat count)" 1
cs destroy "$fork"
spawner=$(cs exec "$id" -d -- ./vfork_loop)
status "a snapshot while a process waits for its vfork child" 0 cs snapshot "$id"
cs kill "$id" "$spawner" KILL
status "commit while it runs" 1 cs commit "$id"
cs kill "$id" "$pid" KILL
cs logs "$id" "$pid" -f >/dev/null
cs exec "$id" -c 'echo 2 >count; rm -rf src'
status "rollback" 0 cs rollback "$id" busy
is "brings the files back" "$(cs exec "$id" -- cat count)" 1
is "the session has its directory and variable" "$(cs exec "$id" --session s -c 'echo "${PWD##*/} $V $(ls b)"')" "src kept b"
status "what is denied stays denied" 1 cs exec "$id" -- cat .secret
n=0
while [ $n -lt 30 ]; do
    n=$((n + 1))
    cs exec "$id" -c "echo $n >n$n; rm -f n$((n - 2))"
    if [ $n -gt 20 ] && [ $n -lt 26 ]; then # when the stack is merged
        cs fork "$id" --name "at$n" >/dev/null
        is "fork $n has the files" "$(cs exec "at$n" -c 'echo n*')" "n$((n - 1)) n$n"
        cs destroy "at$n"
    fi
    cs snapshot "$id" "s$n" >/dev/null
done
is "thirty snapshots are merged" "$(cs exec "$id" -c 'echo n*')" "n29 n30"
cs rollback "$id" s3
is "and all can be reached" "$(cs exec "$id" -c 'echo n*')" "n2 n3"
cs destroy "$id"
holds "the host has none of it" ! test -e count
rm .secret vfork_loop

# ---- a commit that is killed ----
# interrupted CALL: a commit of a change, a removal and a new directory is killed before CALL. The
# layer is frozen before that, so that the calls of freezing it are not those of the commit.
interrupted()
{
    cs destroy "$id"
    mkdir -p "$p/cut" && rm -rf "$p/cut/"* && cd "$p/cut" || exit 1
    echo old >f && echo old >gone
    id=$(cs create --cow)
    cs exec "$id" -c 'echo new >f; rm gone; mkdir d; echo new >d/g'
    cs snapshot "$id" >/dev/null
    { "$DIE_AT" "$1" "$CAISSON" commit "$id"; } >/dev/null 2>&1
}
tree() { find . -type f -name '[!.]*' -exec grep . /dev/null {} + | sort | tr '\n' ' '; }
temps() { find . -name '.csn-*' | wc -l; }
interrupted copy_file_range
is "killed before its commit point" "$(tree)$(temps)" "./f:old ./gone:old 1"
status "the next run on the directory" 0 cs run -c 'cat f gone'
is "finds the old files" "$out" "$(printf 'old\nold')"
is "and undoes it" "$(temps)" 0
interrupted unlinkat
is "killed after its commit point" "$(tree)$(temps)" "./f:old ./gone:old 2"
status "the next run" 0 cs run -c 'cat f d/g; test ! -e gone'
is "finds the new files" "$out" "$(printf 'new\nnew')"
is "all of them" "$(tree)$(temps)" "./d/g:new ./f:new 0"
interrupted renameat2
is "killed between a removal and a new file" "$(tree)$(temps)" "./f:old 2"
status "create" 0 cs create
is "finishes it" "$(tree)$(temps)" "./d/g:new ./f:new 0"
plain=$out
interrupted renameat2
status "exec in a sandbox that is not copy-on-write" 0 cs exec "$plain" -- cat d/g
is "finishes it first" "$out$(temps)" new0
cs destroy "$plain"
interrupted renameat2
status "a run on local" 0 cs run --backend local -c 'cat d/g'
is "finishes it, too" "$out$(temps)" new0
interrupted renameat2
printf broken >"$(echo "$XDG_STATE_HOME"/caisson/commits/*/commit.journal)"
status "a damaged journal" 125 cs run -- true
like "is named" "$err" "*finish the interrupted commit to '$p/cut': commit.journal*damaged*hint:*rm -r $XDG_STATE_HOME/caisson/commits/*"
cs destroy "$id"
rm -r "$XDG_STATE_HOME/caisson/commits/"*
cd "$p" && rm -rf cut

# ---- without cow ----
id=$(cs create)
status "diff without --cow" 1 cs diff "$id"
like "names the option" "$err" "*not copy-on-write*hint:*--cow*"
cs destroy "$id"
holds "no layer is left" test -z "$(ls -A "$XDG_STATE_HOME/caisson/layers" 2>/dev/null)"
