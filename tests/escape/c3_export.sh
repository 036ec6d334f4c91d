#!/bin/bash
# C3: an export writes no file to the host that programs of the host would run, unless it is asked to,
# and no more data than the sandbox has stored.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

id=$(new)
# Protected files cannot be made in the workspace, but in the rest of the sandbox.
cs exec "$id" -c 'mkdir -p /tmp/x/src/.git/hooks /tmp/x/.vscode /tmp/x/bare/hooks /tmp/x/bare/objects /tmp/x/bare/refs /tmp/x/d; cd /tmp/x
    echo evil >src/.git/hooks/pre-commit; chmod +x src/.git/hooks/pre-commit
    echo sample >src/.git/hooks/pre-commit.sample; echo "ref: refs/heads/main" >src/.git/HEAD
    printf "[core]\n\tbare = false\n" >src/.git/config
    echo evil >.zshenv; echo "{}" >.vscode/tasks.json; ln -s /etc/passwd .bashrc
    echo "ref: refs/heads/main" >bare/HEAD; echo evil >bare/hooks/post-checkout; printf "[core]\n\tfsmonitor = evil\n" >bare/config
    echo text >plain; echo text >d/pre-commit'
there() { (cd "$1" && find . -not -type d | sort | tr '\n' ' '); }
harmless="./d/pre-commit ./plain ./src/.git/HEAD ./src/.git/config ./src/.git/hooks/pre-commit.sample "
status "an export" 0 cs export "$id" /tmp/x "$OUT/e"
is "leaves protected files out" "$(there "$OUT/e")" "./bare/HEAD $harmless"
is "one note for each" "$(grep -c 'was left out: ' <<<"$err")" 6
like "with the reason" "$err" "*'src/.git/hooks/pre-commit' was left out: *git*"
json "--json lists them" "$(cs export "$id" /tmp/x "$OUT/j" --json)" \
    "sorted(v['protected']) == ['.bashrc', '.vscode/tasks.json', '.zshenv', 'bare/config', 'bare/hooks/post-checkout', 'src/.git/hooks/pre-commit']"
status "on request" 0 cs export "$id" /tmp/x "$OUT/all" --include-protected
is "they are written" "$(there "$OUT/all" | wc -w)" 12
like "with a note" "$err" "*'.zshenv' is protected and was written*"
is "control: it is the hook" "$(cat "$OUT/all/src/.git/hooks/pre-commit")" evil

# ---- the name of the host directory counts ----
mkdir -p "$OUT/repo/.git"
status "into a repository" 0 cs export "$id" /tmp/x/d "$OUT/repo/.git/hooks"
is "nothing becomes a hook" "$(there "$OUT/repo/.git/hooks")" ""
like "it is told" "$err" "*'pre-commit' was left out*"
ln -s "$OUT/repo/.git/hooks" "$OUT/link"
status "through a link" 0 cs export "$id" /tmp/x/d "$OUT/link"
is "nor there" "$(there "$OUT/repo/.git/hooks")" ""

# ---- a tar is not unpacked here ----
cs export "$id" /tmp/x - 2>"$T/err" >"$T/x.tar"
is "a tar contains them" "$(tar tf "$T/x.tar" 2>/dev/null | grep -c 'hooks/pre-commit$')" 1
like "with a note" "$(cat "$T/err")" "*'src/.git/hooks/pre-commit' is protected and was written*"

# ---- ordinary repositories pass ----
if command -v git >/dev/null; then
    cs exec "$id" -c 'git init -q /tmp/r && cd /tmp/r && echo x >x && git add x && git -c user.name=n -c user.email=e@x commit -qm m' >/dev/null 2>&1
    status "an ordinary repository" 0 cs export "$id" /tmp/r "$OUT/r"
    is "no note" "$err" ""
    is "it works" "$(git -c safe.directory='*' -C "$OUT/r" status --porcelain 2>&1; cat "$OUT/r/x")" x
fi

# ---- holes ----
cs exec "$id" -c 'mkdir /tmp/s; truncate -s 200M /tmp/s/hole; echo end >>/tmp/s/hole; truncate -s 1M /tmp/s/tail; printf data >/tmp/s/short'
status "a sparse file" 0 cs export "$id" /tmp/s "$OUT/s"
is "keeps its length" "$(stat -c %s "$OUT/s/hole" "$OUT/s/tail" "$OUT/s/short" | tr '\n' ' ')" "209715204 1048576 4 "
holds "takes no space" test "$(du -sk "$OUT/s" | cut -f 1)" -lt 1000
is "and ends as it did" "$(tail -c 4 "$OUT/s/hole")" end
cs exec "$id" -c 'truncate -s 100T /tmp/s/huge'
status "one of 100 TiB" 1 cs export "$id" /tmp/s "$OUT/s2"
like "is refused by name" "$err" "*more than 17179869184 bytes with 'huge', which has 109951162777600*"
cs export "$id" /tmp/s - >/dev/null 2>"$T/err"
like "in a tar as well" "$(cat "$T/err")" "*more than 17179869184 bytes with 'huge'*"
holds "and takes no space" test "$(du -sk "$OUT/s2" | cut -f 1)" -lt 1000
