#!/bin/bash
# kafka-up.sh PORT FOLDER   start a one-node KRaft Apache Kafka on 127.0.0.1:PORT (its controller on PORT+1)
#
# Returns when it answers and prints: ready pid=PID listen_ms=... metadata_ms=...
# env: KHEAP (default -Xmx1G -Xms1G, Kafka's own), KEXTRA = extra server.properties lines, KLL = log level (WARN), UPLIMIT = 90 s.
# exit: 0 ready, 1 not started, 2 usage, 3 not set up. Log: FOLDER/server.log. Stop it with kafka-down.sh FOLDER.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
port=${1:-}
[ -n "$port" ] && [ -n "${2:-}" ] || usage
need kafka/libs kafka
folder=$(mkdir -p "$2" && cd "$2" && pwd) || exit 1

running() { kill -0 "$(cat "$folder/pid" 2> /dev/null)" 2> /dev/null; }
listening() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
give_up() {
    tail -20 "$folder/server.log" >&2
    kill "$(cat "$folder/pid")" 2> /dev/null
    rm -f "$folder/pid"
    echo "$1" >&2
    exit 1
}
wait_until() { # WHAT COMMAND...
    local what=$1
    shift
    until "$@"; do
        running || give_up "the broker ended"
        [ $SECONDS -lt "$limit" ] || give_up "no $what in time"
        sleep 0.02
    done
}
answers() { timeout 5 kcat -b "127.0.0.1:$port" -L -m 2 > /dev/null 2>&1; }

running && { echo "already running: $(cat "$folder/pid")" >&2; exit 1; }
for p in "$port" $((port + 1)); do listening "$p" && { echo "port $p is in use" >&2; exit 1; }; done
sed -e "s#@PORT@#$port#g;s#@CPORT@#$((port + 1))#g;s#@DATA@#$folder#g" "$PEERS/kafka/server.properties.in" > "$folder/server.properties" || exit 1
[ -n "${KEXTRA:-}" ] && printf '%s\n' "$KEXTRA" >> "$folder/server.properties"
log4j=-Dlog4j2.configurationFile=$PEERS/kafka/log4j2.properties
classes="$PEERS_HOME/kafka/libs/*"
if [ ! -f "$folder/data/meta.properties" ]; then
    java -Xmx256m -XX:TieredStopAtLevel=1 -cp "$classes" "$log4j" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ \
        -c "$folder/server.properties" > "$folder/format.log" 2>&1 || { cat "$folder/format.log" >&2; exit 1; }
fi
started=$(date +%s%N)
limit=$((SECONDS + ${UPLIMIT:-90}))
# The JVM flags of Kafka's own start scripts.
nohup setsid java ${KHEAP:--Xmx1G -Xms1G} -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 \
    -XX:+ExplicitGCInvokesConcurrent -Djava.awt.headless=true -Dkll="${KLL:-WARN}" "$log4j" -cp "$classes" \
    kafka.Kafka "$folder/server.properties" > "$folder/server.log" 2>&1 < /dev/null &
echo $! > "$folder/pid"
wait_until listener listening "$port"
listens=$(date +%s%N)
wait_until metadata answers
echo "ready pid=$(cat "$folder/pid") listen_ms=$(((listens - started) / 1000000)) metadata_ms=$((($(date +%s%N) - started) / 1000000))"
