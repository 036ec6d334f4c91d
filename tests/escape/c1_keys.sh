#!/bin/bash
# C1: the keys of a home are hidden from a sandbox that shares the home, until an option names them.
# The control of each check is the same with the option that shows the place.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

put() { mkdir -p "${1%/*}" && printf '%s\n' "$2" >"$1"; } # FILE TEXT
H=$T/top/user
export HOME=$H
fresh() # a home with keys
{
    rm -rf "$T/top" && mkdir -p "$H/dot"
    put "$H/.ssh/id_rsa" secret && put "$H/.ssh/known_hosts" hosts && put "$H/.netrc" secret
    put "$H/.config/gh/hosts.yml" secret && put "$H/.config/plain" plain && put "$H/project/x" plain
    cd "$H" || exit 1
}
in_home()
{
    sleep 0.02 # the clock of file systems ticks: a link made just now would count as made by the command
    cs run --timeout 300s --workspace "$H" "$@" 2>/dev/null
}
count() { grep -c secret; }
# hidden NAME SCRIPT [OPTIONS...]: it prints `secret` with the options, and not without them
hidden()
{
    local name=$1 script=$2
    shift 2
    is "$name" "$(in_home -c "$script" | count)" 0
    is "$name: control" "$(in_home "$@" -c "$script" | count)" 1
}

fresh
hidden "a directory of keys" 'cat .ssh/id_rsa' --read "$H/.ssh"
hidden "a directory that commands must not change, either" 'cat .ssh/id_rsa' --write "$H/.ssh"
hidden "a file" 'cat .netrc' --read "$H/.netrc"
hidden "below another directory" 'cat .config/gh/hosts.yml' --write "$H/.config/gh"
is "the rest is readable" "$(in_home -c 'cat .config/plain project/x')" $'plain\nplain'
is "a name does not tell what is in it" "$(in_home -c 'ls .ssh' | wc -l)" 0
status "one line says what is hidden" 0 cs run --workspace "$H" -- true
is "it names the places and the option" "$err" \
    "caisson: run: keys of your home are hidden: .ssh .netrc .config/gh; --read $H/.ssh shows one"
status "nothing is said about a project" 0 cs run --workspace "$H/project" -- true
is "no line" "$err" ""
status "a failure tells the reason" 1 cs run --workspace "$H" -- cat .netrc
like "without an option to paste" "$err" "*denied read '.netrc'; hidden by default: it may hold keys*"

# ---- attempts from inside ----
is "moved away" "$(in_home -c 'mv .ssh x; mv .netrc y; cat x/id_rsa y' | count)" 0
is "nothing can be put in its place" "$(in_home -c 'rm -rf .ssh .netrc; mkdir .ssh; ls -d .ssh; echo x >.netrc; ln -f project/x .netrc' ; cat "$H/.netrc" "$H/.ssh/id_rsa")" $'.ssh\nsecret\nsecret'
is "its directory stays" "$(in_home -c 'mv .config x; ls -d x')" ""
is "linked" "$(in_home -c 'ln .netrc n; cp .netrc m; cat n m' | count)" 0

# ---- links ----
fresh && mv .ssh dot/ssh && ln -s dot/ssh .ssh
hidden "through a link" 'cat .ssh/id_rsa' --read "$H/.ssh"
is "what it leads to" "$(in_home -c 'cat dot/ssh/id_rsa' | count)" 0
is "the link stays" "$(in_home -c 'rm -f .ssh; ln -sfn project .ssh'; readlink "$H/.ssh")" dot/ssh
fresh && mv .config dot/config && ln -s dot/config .config
hidden "through a link to a directory above" 'cat .config/gh/hosts.yml' --read "$H/.config/gh"
is "what it leads to, too" "$(in_home -c 'cat dot/config/gh/hosts.yml' | count)" 0
is "a link on the way cannot be replaced" "$(in_home -c 'rm -f .config; mkdir .config; mv .config x'; readlink "$H/.config")" dot/config
is "but it can be used" "$(in_home -c 'cat .config/plain')" plain
fresh && ln -s . .aws && ln -s project .azure && ln -s nowhere .kube
is "links that lead nowhere, or to the home, do no harm" "$(in_home -c 'cat .config/plain')" plain
fresh

# ---- other shares ----
for share in --read --write --home; do
    is "$share of the home" "$(cs run --workspace "$OUT" $share "$H" -c "cat $H/.ssh/id_rsa $H/.netrc $H/project/x" 2>/dev/null)" plain
done
is "a directory above" "$(cs run --workspace "$T/top" -c 'cat user/.ssh/id_rsa user/.netrc user/project/x; mv user x' 2>/dev/null)" plain
is "a directory inside" "$(cs run --workspace "$OUT" --read "$H/.config" -c "cat $H/.config/gh/hosts.yml $H/.config/plain" 2>/dev/null)" plain
is "at another path" "$(cs run --workspace "$H:/w" -c 'cat /w/.ssh/id_rsa /w/project/x' 2>/dev/null)" plain
is "a place that is a share of its own" "$(cs run --workspace "$H/.ssh" -- cat id_rsa)" secret
is "a file in a place" "$(in_home --read "$H/.ssh/known_hosts" -c 'cat .ssh/*')" hosts
is "shown at one path" "$(in_home --read "$H/.netrc" -c 'cat .netrc .ssh/id_rsa' | count)" 1
printf '{"rules": [{"op": "read", "effect": "allow", "path": "%s/.ssh"}]}' "$H" >"$T/p.json"
is "a policy names it" "$(in_home --policy "$T/p.json" -c 'cat .ssh/id_rsa .netrc' | count)" 1

if "$PROBE" without userns "$CAISSON" run --allow-weaker --workspace "$OUT" -- true 2>/dev/null; then
    chmod 711 "$T" "$T/top" && chmod 777 "$H"
    status "where nothing can be hidden, it runs" 0 "$PROBE" without userns "$CAISSON" run --allow-weaker --workspace "$H/project" --read "$H" -- true
    like "and says so" "$err" "*weaker isolation*; the keys of a shared home are not hidden"
fi

# ---- what appears later ----
fresh
is "a command may make a place that is missing" "$(in_home -c 'mkdir .aws; echo k >.aws/credentials; cat .aws/credentials')" k
is "which keeps what was written" "$(cat "$H/.aws/credentials")" k
is "and is hidden from the next sandbox" "$(in_home -c 'cat .aws/credentials')" ""
id=$(cs create --workspace "$H" 2>/dev/null)
put "$H/new" secret && mv "$H/new" "$H/.netrc"
is "a file that the host replaces stays hidden" "$(cs exec "$id" -- cat .netrc 2>/dev/null | count)" 0

# ---- file calls ----
for call in "cat $id .ssh/id_rsa" "read $id .netrc" "ls $id .ssh" "stat $id .ssh/id_rsa" "write $id .ssh/new" "rm $id .netrc" "mv $id .netrc x"; do
    # shellcheck disable=SC2086
    status "${call%% *} of a hidden path" 1 cs $call
    like "it is denied" "$err" "*denied by policy (hide *"
done
is "grep" "$(cs grep "$id" secret 2>/dev/null)" ""
is "glob" "$(cs glob "$id" '**/id_rsa' 2>/dev/null)" ""
mkdir "$OUT/copy"
cs export "$id" . "$OUT/copy" >/dev/null 2>&1
is "export" "$(grep -r secret "$OUT/copy" 2>/dev/null | wc -l)" 0
json "why" "$(cs why "$id" read .ssh/id_rsa --json)" "v['allowed'] is False and v['rule'] == 'hide $H/.ssh' and
    v['source'] == 'keys of the home: private keys of ssh' and v['enforced'] == 'mount (covered)' and
    v['hint'] == '--read $H/.ssh/id_rsa'"
json "info" "$(cs info "$id" --json)" "{'rule': 'hide $H/.ssh', 'source': 'keys of the home: private keys of ssh',
    'enforced': 'mount (covered)'} in v['rules']"
cs destroy "$id"

# ---- which home ----
is "the home of the user database" "$(env HOME="$OUT" "$CAISSON" run --workspace "$H" -c 'cat .netrc' 2>/dev/null | count)" 1
if [ "$ROOT" = yes ] && unshare -m true 2>/dev/null; then
    sed "s|^root:\(.*\):[^:]*:\([^:]*\)$|root:\1:$H:\2|" /etc/passwd >"$T/passwd"
    # shellcheck disable=SC2016
    is "it counts beside HOME" "$(unshare -m bash -c 'mount --bind "$1" /etc/passwd && HOME=$2 "$3" run --workspace "$4" -c "cat .netrc project/x"' \
        - "$T/passwd" "$OUT" "$CAISSON" "$H" 2>/dev/null)" plain
    echo "someone:x:61234:61234::$H:/bin/sh" >>"$T/passwd"
    sed -i "s|^root:\(.*\):[^:]*:\([^:]*\)$|root:\1:/root:\2|" "$T/passwd"
    chown -R 61234:61234 "$H" && chmod 755 "$T"
    # shellcheck disable=SC2016
    is "so does the home of the owner of the workspace" "$(unshare -m bash -c 'mount --bind "$1" /etc/passwd && HOME=$2 "$3" run --workspace "$4" -c "cat .netrc project/x"' \
        - "$T/passwd" "$OUT" "$CAISSON" "$H" 2>/dev/null)" plain
fi
