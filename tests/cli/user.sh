#!/bin/bash
# Another user gets nothing: no sandbox, no list, no log, even when told where to look.
# shellcheck source=tests/cli/lib.sh
. "${0%/*}/lib.sh"

other() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }

if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
    skip "another user" "needs root and setpriv"
    exit 0
fi
if ! other test -x "$CAISSON"; then
    skip "another user" "user nobody cannot reach the program"
    exit 0
fi
id=$(new --name mine)
chmod 755 "$T"
mkdir -p "$T/nobody" && chown 65534:65534 "$T/nobody" && chmod 700 "$T/nobody"
own=(env "XDG_STATE_HOME=$T/nobody" "XDG_RUNTIME_DIR=$T/nobody" "HOME=$T/nobody" "$CAISSON")
status "its list is empty" 0 other "${own[@]}" list
is "nothing in it" "$out" ""
status "it cannot use the sandbox by id" 125 other "${own[@]}" exec "$id" -- id
status "nor by name" 1 other "${own[@]}" cat mine file
status "nor with our directories" 125 other "$CAISSON" exec "$id" -- id
status "nor read the log" 1 other "$CAISSON" log "$id"
sock=$(find "$XDG_RUNTIME_DIR" -type s | head -n 1)
if [ -n "$sock" ]; then
    status "nor connect to the socket" 13 other perl -MSocket -e '
        socket(my $s, AF_UNIX, SOCK_SEQPACKET, 0) or die;
        exit(connect($s, sockaddr_un($ARGV[0])) ? 0 : $! + 0)' "$sock"
    chmod -R a+rwX "$XDG_RUNTIME_DIR"
    status "not even when the directory was opened to all" 125 other "$CAISSON" exec "$id" -- id
    chmod -R go-rwx "$XDG_RUNTIME_DIR"
fi
is "we still can" "$(cs exec mine -- echo yes)" yes
# directories without permission are errors, not empty ones
mkdir -p "$T/nobody/.config/caisson" && chmod 000 "$T/nobody/.config/caisson"
chown -R 65534:65534 "$T/nobody/.config"
status "configuration without permission" 125 other env -u XDG_CONFIG_HOME "${own[@]}" run -- true
like "is named" "$err" "*'$T/nobody/.config/caisson/config.json': Permission denied*"
rmdir "$T/nobody/.config/caisson"
box=$(cd "$T/nobody" && other "${own[@]}" create)
for dir in caisson caisson/sandboxes; do
    chmod 000 "$T/nobody/$dir"
    for command in list "info $box" "destroy $box" create; do
        # shellcheck disable=SC2086
        status "$command with $dir of mode 000" 1 other "${own[@]}" $command
        like "$command names the directory" "$err" "*$T/nobody/caisson*Permission denied*"
    done
    status "exec with $dir of mode 000" 125 other "${own[@]}" exec "$box" -- true
    chmod 700 "$T/nobody/$dir"
done
chmod 000 "$T/nobody/caisson/sandboxes/$box/meta.json"
status "exec with a record of mode 000" 125 other "${own[@]}" exec "$box" -- true
chmod 600 "$T/nobody/caisson/sandboxes/$box/meta.json"
status "the sandbox is still there" 0 other "${own[@]}" destroy "$box"
is "an ordinary user can run its own" "$(cd "$T/nobody" && other "${own[@]}" run -- id -u)" 65534
