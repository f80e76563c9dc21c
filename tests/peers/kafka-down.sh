#!/bin/bash
# kafka-down.sh FOLDER [--wipe]   stop what kafka-up.sh started there (20 s, then SIGKILL); --wipe also deletes its data
folder=${1:-}
pid=$(cat "$folder/pid" 2> /dev/null) || { echo "nothing running in '$folder'" >&2; exit 1; }
kill "$pid" 2> /dev/null
for _ in $(seq 1 200); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.1
done
kill -9 "$pid" 2> /dev/null
rm -f "$folder/pid"
[ "${2:-}" = --wipe ] && rm -rf "$folder/data"
echo down
