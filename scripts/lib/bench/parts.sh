# Sourced by scripts/bench: the parts, their sizes, how each is built and run. A part's tables go
# to standard output, everything else to standard error.
# shellcheck shell=bash disable=SC2034,SC2154 # PARTS and sizes are for scripts/bench; the broker is from common.sh

readonly PARTS=(commit index end_to_end filter engines mq_bridge streams)
# What stands in docs/benchmarks.md: 15 to 20 minutes in all.
declare -rA PUBLISHED=(
    [commit]='BENCH_KEYS=1000000 BENCH_ROUNDS=3'
    [index]='BENCH_INDEX_KEYS=100000000'
    [end_to_end]='BENCH_RECORDS=5000000 BENCH_ROUNDS=3'
    [filter]='BENCH_LINES=10000000 BENCH_ROUNDS=3'
    [engines]='BENCH_KEYS=1000000 BENCH_ROUNDS=3'
    [mq_bridge]='BENCH_RECORDS=1000000 BENCH_ROUNDS=3 BENCH_KILLS=3'
    [streams]='BENCH_RECORDS=1000000 BENCH_ROUNDS=3'
)
declare -rA QUICK=(
    [commit]='BENCH_KEYS=100000 BENCH_ROUNDS=3'
    [index]='BENCH_INDEX_KEYS=1000000'
    [end_to_end]='BENCH_RECORDS=200000 BENCH_ROUNDS=3'
    [filter]='BENCH_LINES=200000 BENCH_ROUNDS=3 BENCH_SCRIPT_LINES=5000'
    [engines]='BENCH_KEYS=100000 BENCH_ROUNDS=3'
    [mq_bridge]='BENCH_RECORDS=100000 BENCH_ROUNDS=3 BENCH_KILLS=1'
    [streams]='BENCH_RECORDS=100000 BENCH_ROUNDS=3'
)

known_part() {
    [[ " ${PARTS[*]} " == *" $1 "* && -n $1 ]] || usage_error "${1:-''}: no such part"
    printf '%s\n' "$1"
}

needs_broker() { [[ $1 == end_to_end || $1 == mq_bridge || $1 == streams ]]; }

# export_sizes PART SIZES: what the caller's environment says already stays.
export_sizes() {
    local setting
    local -n of=$2
    for setting in ${of[$1]}; do
        if [[ -z $(printenv "${setting%%=*}") ]]; then export "${setting?}"; fi
    done
}

own_bench() { cargo bench --quiet --features redb "$@"; }

peers_bench() {
    CARGO_TARGET_DIR=$PEERS_CACHE/target cargo bench --quiet --manifest-path "$PEERS_MANIFEST" "$@"
}

build_commit() { own_bench --no-run --bench commit; }
run_commit() { own_bench --bench commit; }

build_index() { own_bench --no-run --bench index; }
# It prints lines, not tables.
run_index() {
    printf '```text\n'
    own_bench --bench index -- "$BENCH_INDEX_KEYS"
    printf '```\n'
}

# Its reading alone needs the test kit.
build_end_to_end() { own_bench --features testkit --no-run --bench end_to_end; }
# What the share of copies changes is shown on one partition, with fewer records; a restore needs
# many to be worth a figure, a handler that takes time needs few.
run_end_to_end() {
    end_to_end throughput "$BENCH_RECORDS" BENCH_COPIES=0
    end_to_end throughput "$((BENCH_RECORDS * 2 / 5))" BENCH_COPIES=1,100 BENCH_PARTITIONS=1
    end_to_end latency "$BENCH_RECORDS" BENCH_PARTITIONS=1,4
    end_to_end handler "$((BENCH_RECORDS / 50))" BENCH_PARTITIONS=1,4
    end_to_end restore "$((BENCH_RECORDS * 2))" BENCH_PARTITIONS=1 BENCH_ROUNDS=1
}

# end_to_end SECTION RECORDS NAME=VALUE...
# The address is not exported: `scripts/kafka down` would take the broker for somebody else's.
end_to_end() {
    local section=$1 records=$2
    shift 2
    env KAFKA_BOOTSTRAP="$bootstrap" BENCH_RECORDS="$records" "$@" \
        cargo bench --quiet --features redb,testkit --bench end_to_end -- "$section"
}

build_filter() {
    type -P time >/dev/null || die "the program 'time' is missing: scripts/bench install"
    install_filters
    cargo build --quiet --release --bin dedup
}
run_filter() {
    local target=${CARGO_TARGET_DIR:-$BENCH_ROOT/target}
    PEERS_DIR=$(filters_dir)/bin DEDUP=$target/release/dedup "$BENCH_ROOT/benches/dedup/run"
}

build_engines() {
    has_libclang || die "libclang is missing, with which RocksDB's bindings are made: scripts/bench install"
    peers_bench --features engines --no-run --bench engines
}
run_engines() { peers_bench --features engines --bench engines; }

build_mq_bridge() { peers_bench --features mq-bridge --no-run --bench mq_bridge; }
run_mq_bridge() { KAFKA_BOOTSTRAP=$bootstrap peers_bench --features mq-bridge --bench mq_bridge; }

streams_dir() { printf '%s\n' "$PEERS_CACHE/streams-$(pom_version kafka.version "$STREAMS_POM")"; }

build_streams() {
    local dir
    dir=$(streams_dir)
    if ! type -P mvn >/dev/null || ! type -P javac >/dev/null; then
        die "Maven or a Java compiler is missing: scripts/bench install"
    fi
    mvn --batch-mode -Dstyle.color=never --quiet --strict-checksums --file "$STREAMS_POM" \
        "-Dbench.directory=$dir" compile dependency:copy-dependencies -DincludeScope=runtime \
        "-DoutputDirectory=$dir/jars" >&2
    peers_bench --no-run --bench streams
}
run_streams() {
    local dir
    dir=$(streams_dir)
    KAFKA_BOOTSTRAP=$bootstrap BENCH_BROKER_DATA=$broker_data BENCH_STREAMS_CLASSES="$dir/classes:$dir/jars/*" \
        peers_bench --bench streams
}
