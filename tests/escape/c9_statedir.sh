#!/bin/bash
# C9: what caisson writes, trusts and deletes on the host lies in directories that no other user and no
# sandbox can redirect. Links, directories of others and records planted from inside are refused.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

plain=(env -u XDG_STATE_HOME -u XDG_RUNTIME_DIR -u XDG_CONFIG_HOME)
# at HOME COMMAND...: caisson with the directories of that home
at() { local home=$1; shift && "${plain[@]}" "HOME=$home" "$CAISSON" "$@"; }
victim=$T/victim
plant() # DIR: what deletion would begin with
{
    mkdir -p "$1/run/jail-1-aaaaaaaa/keep" "$1/run/local-1-aaaaaaaa/keep" "$1/frames/.csn-abcdefghijklmn/keep" \
        "$1/sandboxes/jail-1-bbbbbbbb"
    mkdir -p "$1/frames/$(printf '%064d' 1)/keep" "$1/frames/important/keep"
    echo log >"$1/sandboxes/jail-1-bbbbbbbb/precious"
    find "$1" -exec touch -h -d '2000-01-01' {} +
}
state_of() { (cd "$1" && find . | sort | tr '\n' ' '); }

# ---- components of the path ----
for link in .local .local/state .local/state/caisson; do
    home=$T/h-${link//\//-}
    rm -rf "$victim"
    mkdir -p "$victim/state/caisson" "$home/$(dirname "$link")" "$home/ws"
    plant "$victim/state/caisson"
    plant "$victim/caisson"
    plant "$victim"
    before=$(state_of "$victim")
    ln -s "$victim" "$home/$link"
    status "a symlink $link: list" 1 at "$home" list
    like "is named, with the fix" "$err" "*state directory: $home/.local/state/caisson*$home/$link is a symlink*hint: set XDG_STATE_HOME*"
    status "run" 125 at "$home" run --workspace "$home/ws" -- true
    like "says so too" "$err" "*$home/$link is a symlink*"
    status "create" 1 at "$home" create --workspace "$home/ws"
    is "and nothing behind it was touched" "$(state_of "$victim")" "$before"
done
home=$T/h-run
mkdir -p "$home/ws" "$T/elsewhere"
ln -s "$T/elsewhere" "$T/rt"
status "a symlink as the runtime directory" 125 env "XDG_STATE_HOME=$home" "XDG_RUNTIME_DIR=$T/rt" "$CAISSON" run --backend local --workspace "$home/ws" -- true
like "is named" "$err" "*runtime directory: $T/rt/caisson/*: $T/rt is a symlink*hint: set XDG_RUNTIME_DIR*"
mkdir -p "$T/open/dir" && chmod 777 "$T/open"
status "a component that others can write" 125 env "XDG_STATE_HOME=$T/open/dir" "$CAISSON" run --workspace "$home/ws" -- true
like "is named, with the fix" "$err" "*other users can write to $T/open*hint: chmod go-w $T/open*"
chmod 1777 "$T/open"
status "the sticky bit helps only in a directory of root" "$([ "$ROOT" = yes ] && echo 0 || echo 125)" \
    env "XDG_STATE_HOME=$T/open/dir" "$CAISSON" run --workspace "$home/ws" -- true
if [ "$ROOT" = yes ] && [ -L /var/run ] && sys=$(mktemp -d /run/csn-test.XXXXXX); then
    status "links of the system are followed: /var/run" 0 env "XDG_STATE_HOME=/var$sys" "$CAISSON" run --workspace "$home/ws" -- true
    rm -rf "$sys"
fi

# ---- another user's environment, as sudo -E keeps it ----
if [ "$ROOT" = yes ]; then
    theirs=$T/theirs
    mkdir -p "$theirs/.config/caisson" "$theirs/ws"
    plant "$theirs/.local/state/caisson"
    ln -s /etc "$theirs/.local/state/caisson/sandboxes/jail-1-bbbbbbbb/run"
    echo '{"network":"host"}' >"$theirs/.config/caisson/config.json"
    chown -hR 65534:65534 "$theirs"
    chmod 755 "$T"
    before=$(state_of "$theirs")
    for verb in list 'run -- true' create 'destroy jail-1-bbbbbbbb' 'log jail-1-bbbbbbbb'; do
        # shellcheck disable=SC2086
        (cd "$theirs/ws" && at "$theirs" $verb >"$T/.out" 2>"$T/.err")
        like "root with the HOME of a user: ${verb% --*}" "$? $(cat "$T/.err")" "[1-9]*belongs to user 65534, and we are user 0*hint: use sudo without -E*"
    done
    rm "$theirs/.config/caisson/config.json"
    status "without a configuration" 1 at "$theirs" list
    like "likewise" "$err" "*state directory: *$theirs belongs to user 65534*"
    is "and nothing of the user was touched" "$(state_of "$theirs" | sed 's/[^ ]*config.json //')" "$(sed 's/[^ ]*config.json //' <<<"$before")"
    chmod 700 "$T"
fi

# ---- deletion: only what has one of our names ----
home=$T/h-mine
mkdir -p "$home/ws"
plant "$home/.local/state/caisson"
mkdir -p "$home/.local/state/caisson/run/"{jail-x,jail-1-AAAAAAAA,jail-1-aaaaaaa,important}/keep
chmod -R go-w "$home"
at "$home" list >/dev/null
left=$(ls "$home/.local/state/caisson/run" | tr '\n' ' ')
is "the sweep of the runtime directory" "$left" "important jail-1-AAAAAAAA jail-1-aaaaaaa jail-x "
at "$home" run --workspace "$home/ws" -- true
holds "directories of other names stay" test -d "$home/.local/state/caisson/frames/important/keep"
holds "a record without our files stays" test -e "$home/.local/state/caisson/sandboxes/jail-1-bbbbbbbb/precious"
id=$(at "$home" create --workspace "$home/ws")
record=$home/.local/state/caisson/sandboxes/$id
mkdir -p "$T/victim/$id/keep" "$T/victim/else/keep"
mv "$record/keeper" "$record/kept" # as if an earlier version had made it
for to in "$T/victim" "$T/victim/else"; do
    ln -s "$to" "$record/run"
    status "a record that names another directory" 1 at "$home" destroy "$id"
    holds "nothing there is deleted" test -d "$T/victim/$id/keep" -a -d "$T/victim/else/keep"
    rm "$record/run"
done
mv "$record/kept" "$record/keeper"
status "the right one is deleted" 0 at "$home" destroy "$id"

# ---- planted from inside ----
for where in .local/state/caisson .config/caisson; do
    for with in "" "$T/other-xdg"; do
        home=$T/p-${where##*/}-${with:+other}
        rm -rf "$home" && mkdir -p "$home"
        xdg=()
        [ -n "$with" ] && xdg=("XDG_STATE_HOME=$with" "XDG_CONFIG_HOME=$with" "XDG_RUNTIME_DIR=$with")
        mkdir -p "$T/other-xdg" && chmod 700 "$T/other-xdg"
        by=("${plain[@]}" "HOME=$home" "${xdg[@]}" "$CAISSON" run --workspace "$home" -c)
        "${by[@]}" "mkdir -p $where; echo '{}' >$where/config.json; ln -s /etc $where/link" >/dev/null 2>&1
        is "nothing is planted in ~/$where${with:+, with other XDG directories}" \
            "$(cd "$home" && find "$where" -maxdepth 1 -name config.json -o -maxdepth 1 -name link)" ""
        "${by[@]}" "mv .config .c; mv .local .l; mv .local/state .s; rm -rf .config .local
            ln -sT $T/victim .config; ln -sT $T/victim .local; ln -sT $T/victim .local/state" >/dev/null 2>&1
        is "nor is its path replaced" "$(cd "$home" && find . -maxdepth 3 -type l; ls -Ad .config/caisson .local/state/caisson 2>&1)" \
            ".config/caisson
.local/state/caisson"
    done
done
holds "control: outside it can be" sh -c "mkdir -p $T/c/.config/caisson && echo '{}' >$T/c/.config/caisson/config.json"

# ---- an audit log that commands could write ----
mkdir -p "$WS/logs" "$T/logs"
ln -s "$T/logs" "$WS/out"
for log in "$WS/log" "$WS/logs/log" "$T/ws/../ws/log" "$WS/out/log"; do
    echo "{ \"audit\": \"$log\" }" >"$T/audit.json"
    status "an audit log at ${log#"$T/"} is refused" 125 cs run --workspace "$WS" --policy "$T/audit.json" -- touch "$WS/ran"
    like "by name" "$err" "*audit '$log': commands can write to $WS*"
done
holds "and nothing ran" test ! -e "$WS/ran"
echo "{ \"audit\": \"$T/logs/log\" }" >"$T/audit.json"
status "one beside the workspace is not" 0 cs run --workspace "$WS" --policy "$T/audit.json" -- true
holds "it is written" test -s "$T/logs/log"
