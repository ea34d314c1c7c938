# Sourced by scripts/bench: on what, and of what, a part's figures are.
# shellcheck shell=bash disable=SC2154 # sizes is set by scripts/bench, kafka_version by common.sh

# print_setting PART LOAD_BEFORE SECONDS
print_setting() {
    local cpu memory
    cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
    memory=$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)
    cat <<SETTING
- $(date --utc +%F), commit $(commit_name), \`scripts/bench $1\` (${sizes,,} size), $3 s
- ${cpu:-unknown CPU}, $(nproc) cores, $memory, $(disks "$1"), $(uname -sr); load average (1 minute) before and after: $2, $(load_now)
- $(rustc --version), $(versions "$1")
SETTING
}

# disks PART: of what a part measures, which need not be the repository's.
disks() {
    local stores=${CARGO_TARGET_DIR:-$BENCH_ROOT/target}
    case $1 in
    # benches/dedup/run knows no other.
    filter) stores=$BENCH_ROOT/target ;;
    engines | mq_bridge | streams) stores=$PEERS_CACHE/target ;;
    esac
    printf 'files on %s' "$(disk_of "$stores")"
    if needs_broker "$1" && [[ -n $broker_data ]]; then printf ', the broker on %s' "$(disk_of "$broker_data")"; fi
}

disk_of() { df --output=fstype,source -- "$1" | tail -n 1 | tr -s ' '; }

commit_name() {
    local name changes
    name=$(git -C "$BENCH_ROOT" rev-parse --short=12 HEAD 2>/dev/null) || name=unknown
    changes=$(git -C "$BENCH_ROOT" status --porcelain -- src benches Cargo.toml Cargo.lock 2>/dev/null) || changes=''
    printf '%s%s\n' "$name" "${changes:+ with changes}"
}

versions() {
    local librdkafka own=$BENCH_ROOT/Cargo.lock peers=$BENCH_ROOT/benches/peers/Cargo.lock
    librdkafka=$(locked rdkafka-sys "$own")
    librdkafka=${librdkafka##*+}
    case $1 in
    commit) printf 'sled %s, redb %s\n' "$(locked sled "$own")" "$(locked redb "$own")" ;;
    index) printf 'sled %s\n' "$(locked sled "$own")" ;;
    end_to_end) printf 'librdkafka %s, sled %s, %s on the same machine\n' "$librdkafka" "$(locked sled "$own")" "$kafka_version" ;;
    filter) printf '%s, %s\n' "$(sort --version | head -n 1)" "$(filter_versions)" ;;
    engines)
        printf 'RocksDB %s, fjall %s, sled %s, redb %s (ours: %s)\n' "$(locked librocksdb-sys "$peers" | sed 's/.*+//')" \
            "$(locked fjall "$peers")" "$(locked sled "$peers")" "$(locked redb "$peers" | tail -n 1)" "$(locked redb "$own")"
        ;;
    mq_bridge) printf 'mq-bridge %s, librdkafka %s, %s on the same machine\n' "$(locked mq-bridge "$peers")" "$librdkafka" "$kafka_version" ;;
    streams)
        printf 'Kafka Streams %s on %s, librdkafka %s, %s on the same machine\n' \
            "$(pom_version kafka.version "$STREAMS_POM")" "$(java_version)" "$librdkafka" "$kafka_version"
        ;;
    esac
}

# locked PACKAGE LOCKFILE: its versions, a line each.
locked() { sed -n "/^name = \"$1\"\$/{n;s/^version = \"\(.*\)\"\$/\1/p}" "$2"; }

java_version() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n '1s/"//gp'; }

filter_versions() {
    local text anew
    printf -v text '%s, ' "${FILTER_CRATES[@]//@/ }"
    anew=$(filters_dir)/bin/anew
    if [[ -e $anew ]]; then text+="anew $(anew_version "$anew"), "; fi
    printf '%s\n' "${text%, }"
}

# anew_version FILE: it does not say it, and one from PATH may be any; Go writes it into a program.
anew_version() {
    local version
    version=$(LC_ALL=C grep -aom 1 -P "mod\t$FILTER_MODULE\t\K[^\t\n]+" "$1") || version='of unknown version'
    if [[ -L $1 ]]; then version+=" (from PATH)"; fi
    printf '%s\n' "$version"
}
