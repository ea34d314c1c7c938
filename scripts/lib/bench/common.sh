# Sourced by scripts/bench: messages, the broker, and where things are kept.
# shellcheck shell=bash disable=SC2034 # for those who source it

# Without it, a failure inside `$(...)` would go on to the next line.
shopt -s inherit_errexit

readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/idempotent-consumer
# Outside the repository: a clone that comes later need not compile RocksDB again.
readonly PEERS_CACHE=$CACHE/peers
readonly PEERS_MANIFEST=$BENCH_ROOT/benches/peers/Cargo.toml
readonly STREAMS_POM=$BENCH_ROOT/benches/streams/pom.xml
work='' bootstrap='' broker_data='' kafka_version=''

say() { printf '%s\n' "bench: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# The call itself is wrong.
usage_error() {
    say "$* (see scripts/bench help)"
    exit 2
}

cleanup() {
    if [[ -d $work/kafka ]]; then "$BENCH_ROOT/scripts/kafka" down --dir "$work/kafka" || true; fi
    rm -rf -- "$work"
}

# Sets `bootstrap`, `broker_data` and `kafka_version`.
start_kafka() {
    local lines
    if [[ -n ${KAFKA_BOOTSTRAP:-} ]]; then
        bootstrap=$KAFKA_BOOTSTRAP kafka_version="the broker at $KAFKA_BOOTSTRAP"
        return
    fi
    lines=$("$BENCH_ROOT/scripts/kafka" up --dir "$work/kafka" --parent $$) || die 'no broker (see above)'
    bootstrap=$(sed -n 's/^bootstrap=//p' <<<"$lines")
    broker_data=$work/kafka/data
    kafka_version="Apache Kafka $(pom_version kafka.version "$BENCH_ROOT/scripts/lib/kafka/pom.xml")"
}

pom_version() { sed -n "s|.*<$1>\(.*\)</$1>.*|\1|p" "$2"; }

load_now() { cut -d ' ' -f 1 /proc/loadavg; }
