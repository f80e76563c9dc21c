#!/bin/bash
# setup.sh [PART...]   install the Kafka broker and the client programs that the tests use (default: all parts)
#
# PART = kafka java streams connect python node librdkafka go rust c bench iggy_python iggy_rust suites, and bench_sdk, which "all"
# leaves out because only bench/run needs it. Everything goes to $PEERS_HOME (default
# ~/.cache/iggy-gateway-kafka/peers, about 2 GB). A part whose inputs did not change is skipped. System packages: tools/setup,
# group test; besides those it needs go 1.26 and a stable rust, which Debian 12 does not have.
# env: FORCE=1 does parts again, NICE=19 lowers the priority of the builds. Logs: $PEERS_HOME/log/PART.log. Exit 1: a part failed.
set -u -o pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
H=$PEERS_HOME
ALL="kafka java streams connect python node go rust c bench iggy_python iggy_rust suites"
case ${1:-} in -h | --help) usage ;; esac
[ $# = 0 ] && set -- $ALL
for part; do
    [[ " $ALL librdkafka bench_sdk " == *" $part "* ]] || { echo "unknown part '$part'; parts: $ALL librdkafka bench_sdk" >&2; exit 2; }
done
"$TESTS/../tools/setup" test || exit 1
mkdir -p "$H"/{log,stamp,bin,tmp} || exit 1
exec 9> "$H/.lock"
flock -n 9 || { echo "another setup.sh works in $H: waiting" >&2; flock 9; }
jobs_max=$(nproc)
low=()
[ -n "${NICE:-}" ] && low=(nice -n "$NICE")

say() { printf '%s [%s] %s\n' "$(date +%T)" "$1" "$2"; }

command_need() { # COMMAND HINT
    command -v "$1" > /dev/null || { echo "command '$1' not found: $2"; return 1; }
}

maven_libs() { # FOLDER WITH POM, TARGET
    rm -rf "$H/tmp/maven" "$2.new"
    mkdir -p "$H/tmp/maven" "$(dirname "$2")" && cp "$1/pom.xml" "$H/tmp/maven/" || return 1
    (cd "$H/tmp/maven" && "${low[@]}" mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies \
        -DoutputDirectory="$2.new" -DincludeScope=runtime) || return 1
    rm -rf "$2" && mv "$2.new" "$2"
}

npm_ci() { # FOLDER: the locked packages of tests/clients/FOLDER
    command_need npm "node 20 with npm" || return 1
    mkdir -p "$H/$1" && cp "$TESTS/clients/$1/package.json" "$TESTS/clients/$1/package-lock.json" "$H/$1/" || return 1
    (cd "$H/$1" && "${low[@]}" npm ci --no-audit --no-fund --ignore-scripts)
}

do_kafka() { # the broker with its command line tools, and the 3.9 client library
    command_need mvn "maven with a JDK 17" || return 1
    maven_libs "$PEERS/kafka" "$H/kafka/libs" && maven_libs "$PEERS/kafka39" "$H/kafka39/libs"
}

do_java() { # one program against both client libraries
    local v
    for v in kafka kafka39; do
        rm -rf "$H/java/$v" && mkdir -p "$H/java/$v" || return 1
        "${low[@]}" javac -nowarn -d "$H/java/$v" -cp "$H/$v/libs/*" "$TESTS"/clients/java/*.java || return 1
    done
}

do_streams() { # Kafka Streams, and the applications on it
    command_need mvn "maven with a JDK 17" || return 1
    maven_libs "$PEERS/streams" "$H/streams/libs" || return 1
    rm -rf "$H/streams/classes" && mkdir "$H/streams/classes" || return 1
    "${low[@]}" javac -nowarn -d "$H/streams/classes" -cp "$H/streams/libs/*" "$TESTS"/streams/WordCount.java
}

do_connect() { # Kafka Connect; the connectors have a folder of their own, where its worker looks for them
    command_need mvn "maven with a JDK 17" || return 1
    maven_libs "$PEERS/connect" "$H/connect/libs" || return 1
    rm -rf "$H/connect/plugins" && mkdir "$H/connect/plugins" && cp "$H"/connect/libs/connect-file-*.jar "$H/connect/plugins/"
}

do_python() {
    command_need python3 "Python 3.11" || return 1
    rm -rf "$H/py"
    python3 -m venv "$H/py" || return 1
    "${low[@]}" "$H/py/bin/python" -m pip install -q --no-input -r "$TESTS/requirements.txt"
}

do_librdkafka() { # a current one, compiled from the sources inside the npm package @confluentinc/kafka-javascript
    npm_ci js-confluent || return 1
    rm -rf "$H/src/librdkafka" && mkdir -p "$H/src" || return 1
    cp -r "$H/js-confluent/node_modules/@confluentinc/kafka-javascript/deps/librdkafka" "$H/src/" || return 1
    (cd "$H/src/librdkafka" && ./configure --prefix="$H/librdkafka" && "${low[@]}" make -j"$jobs_max" libs && make install-subdirs)
}

do_node() {
    npm_ci js || return 1
    local package=$H/js-confluent/node_modules/@confluentinc/kafka-javascript node_prefix
    node_prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
    [ -d "$package" ] || npm_ci js-confluent || return 1
    [ -f "$node_prefix/include/node/node.h" ] || { echo "no node headers under $node_prefix/include/node"; return 1; }
    # Its prebuilt binary is on no registry, so it is compiled against the librdkafka above.
    local lib=$H/librdkafka/lib gyp=$package/binding.gyp
    grep -q "$lib" "$gyp" || sed -i -e "s#\"-lrdkafka\", \"-lrdkafka++\"#\"-L$lib\", \"-Wl,-rpath,$lib\", &#" \
        -e "s#\"/usr/include/librdkafka\"#\"$H/librdkafka/include/librdkafka\"#" "$gyp"
    grep -q "$lib" "$gyp" || { echo "binding.gyp of the package has another form"; return 1; }
    (cd "$package" && env BUILD_LIBRDKAFKA=0 JOBS="$jobs_max" "${low[@]}" ../../.bin/node-pre-gyp install \
        --build-from-source --nodedir="$node_prefix")
}

do_go() {
    command_need go "go 1.26 or later" || return 1
    local p
    for p in franz sarama segmentio; do
        (cd "$TESTS/clients/go" && CGO_ENABLED=0 "${low[@]}" go build -mod=readonly -trimpath -buildvcs=false -o "$H/bin/go-$p" "./$p") || return 1
    done
}

cargo_build() { # FOLDER PROFILE NAME: a locked program of tests/FOLDER. The lock file has no index address in the repository: cargo says which
    # one it uses here.
    command_need cargo "rust (stable)" || return 1
    local index at="$H/src/$3"
    rm -rf "$at" && mkdir -p "$at" && cp -r "$TESTS/$1"/{Cargo.toml,src} "$at/" || return 1
    (cd "$at" && "${low[@]}" cargo generate-lockfile -q) || return 1
    index=$(sed -n 's/^source = //p' "$at/Cargo.lock" | sort -u | head -1)
    sed "s|^source = .*|source = $index|" "$TESTS/$1/Cargo.lock.in" > "$at/Cargo.lock" || return 1
    (cd "$at" && "${low[@]}" cargo build --profile "$2" --locked --target-dir "$H/$3")
}

do_rust() {
    PKG_CONFIG_PATH="$H/librdkafka/lib/pkgconfig" RUSTFLAGS="-C link-arg=-Wl,-rpath,$H/librdkafka/lib" cargo_build clients/rust release rust &&
        cp "$H/rust/release/clients" "$H/bin/rust-clients"
}

do_iggy_rust() { # not optimized: that takes a third of the time to compile, and the driver is fast enough
    cargo_build iggy/rust dev iggy-rust && install "$H/iggy-rust/debug/iggy-judge" "$H/bin/iggy-judge"
}

do_iggy_python() { # the SDK of both protocol generations, each in a venv of its own
    command_need python3 "Python 3.11" || return 1
    local v
    for v in 0.11 0.12; do
        rm -rf "$H/iggy-py-$v"
        python3 -m venv "$H/iggy-py-$v" || return 1
        "${low[@]}" "$H/iggy-py-$v/bin/python" -m pip install -q --no-input -r "$PEERS/iggy/requirements-$v.txt" || return 1
    done
}

rdkafka_cc() { # OUT SOURCE OPTIONS...: against the librdkafka compiled above
    "${low[@]}" gcc -O2 -pthread -I"$H/librdkafka/include" -o "$@" -L"$H/librdkafka/lib" -Wl,-rpath,"$H/librdkafka/lib" -lrdkafka
}

do_c() { # one program against Debian's librdkafka (2.0.2 in Debian 12) and the current one
    gcc -O2 -o "$H/bin/rdkafka-debian" "$TESTS/clients/c/rdkafka.c" -lrdkafka &&
        rdkafka_cc "$H/bin/rdkafka-current" "$TESTS/clients/c/rdkafka.c"
}

do_bench() { rdkafka_cc "$H/bin/kbench" "$TESTS/../bench/kbench.c"; }

do_bench_sdk() { cargo_build ../bench/sdk release bench-sdk && cp "$H/bench-sdk/release/sdk-bench" "$H/bin/sdk-bench"; }

do_suites() { # what ../suites runs: librdkafka's own tests, and those of franz-go's kgo at the version of clients/go
    local module
    "${low[@]}" make -C "$H/src/librdkafka/tests" -j"$jobs_max" test-runner || return 1
    module=$(cd "$TESTS/clients/go" && go mod download -json github.com/twmb/franz-go | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') || return 1
    rm -rf "$H/src/franz-go" && cp -r "$module" "$H/src/franz-go" && chmod -R u+w "$H/src/franz-go" || return 1
    (cd "$H/src/franz-go/pkg/kgo" && CGO_ENABLED=0 "${low[@]}" go test -c -o "$H/bin/kgo-tests" .)
}

needs() { # PART: the parts that must be there first
    case $1 in java) echo kafka ;; node | rust | c | bench | suites) echo librdkafka ;; esac
}

inputs() { # PART: files whose contents decide whether it must be done again
    case $1 in
        kafka) echo peers/kafka/pom.xml peers/kafka39/pom.xml ;;
        java) echo clients/java peers/kafka/pom.xml peers/kafka39/pom.xml ;;
        streams) echo peers/streams/pom.xml streams/WordCount.java ;;
        connect) echo peers/connect/pom.xml ;;
        python) echo requirements.txt ;;
        node) echo clients/js/package.json clients/js/package-lock.json clients/js-confluent ;;
        librdkafka) echo clients/js-confluent ;;
        go | rust | c) echo "clients/$1" ;;
        bench) echo ../bench/kbench.c ;;
        bench_sdk) echo ../bench/sdk ;;
        suites) echo clients/js-confluent clients/go/go.mod clients/go/go.sum ;;
        iggy_python) echo peers/iggy ;;
        iggy_rust) echo iggy/rust ;;
    esac
}

stamp() { # PART
    (cd "$TESTS" && find $(inputs "$1") -type f -not -path '*/target/*' | LC_ALL=C sort | xargs sha256sum
     declare -f "do_$1") | sha256sum | cut -d' ' -f1
}

declare -A done_with
bad=0
part() { # PART: do it once, after what it needs
    local name=$1 need started=$SECONDS
    [ -n "${done_with[$name]:-}" ] && return "${done_with[$name]#r}"
    for need in $(needs "$name"); do
        part "$need" || { say "$name" "left out: $need failed"; done_with[$name]=r1 bad=1; return 1; }
    done
    if [ -z "${FORCE:-}" ] && [ "$(cat "$H/stamp/$name" 2> /dev/null)" = "$(stamp "$name")" ]; then
        say "$name" "already there"
        done_with[$name]=r0
        return 0
    fi
    say "$name" "installing (log: $H/log/$name.log)"
    rm -f "$H/stamp/$name"
    if "do_$name" > "$H/log/$name.log" 2>&1 < /dev/null 9>&-; then
        stamp "$name" > "$H/stamp/$name"
        say "$name" "done in $((SECONDS - started)) s"
        done_with[$name]=r0
    else
        say "$name" "FAILED after $((SECONDS - started)) s; last lines:"
        tail -8 "$H/log/$name.log" | sed 's/^/    /'
        done_with[$name]=r1 bad=1
    fi
    return "${done_with[$name]#r}"
}

for p; do part "$p"; done
exit $bad
