#!/bin/bash
# C8: objects of the kernel that no limit on processes, memory or disk covers are bounded, or refused.
# shellcheck source=tests/escape/lib.sh
. "${0%/*}/lib.sh"

attempt "terminals" take-ptys 100

# ---- System V: these stay when their process has ended ----
IN+=(--disk 64M)
attempt "shared memory" take-objects shm 100
IN=("${IN[@]::${#IN[@]}-2}")
attempt "message queues" take-objects msg 200
attempt "semaphores" take-objects sem 40

# ---- counted for the user outside: half of it is left ----
attempt "POSIX message queues" take-objects mq "$(($(ulimit -Hq) / 2 / 84000 + 1))"
attempt "timers and queued signals" take-timers "$(($(ulimit -Hi) / 2 + 1))"

# ---- leases make others wait that open the file; dnotify ----
touch "$WS/leased" "$OUT/leased"
attempt "a lease" take-lease "$WS/leased" -- take-lease "$OUT/leased"
attempt "dnotify" take-dnotify "$WS" -- take-dnotify "$OUT"

# ---- and ordinary use works ----
like "shared memory in small works" "$(inside take-objects shm 10)" "ESCAPED*"
like "terminals in small work" "$(inside take-ptys 10)" "ESCAPED*"
