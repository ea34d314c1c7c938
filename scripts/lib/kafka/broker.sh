# Sourced by scripts/kafka: configure, format, start and wait for one broker.
# shellcheck shell=bash

readonly START_DEADLINE_S=${KAFKA_START_DEADLINE_S:-90}

# Ports above the well-known and below those the kernel gives to outgoing connections, so
# that a client's own socket does not take one between choosing and binding.
readonly PORT_MIN=20000 PORT_MAX=32000

ports_in_use() {
    # Field 2 is the local address as HEX_IP:HEX_PORT.
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk '$2 ~ /:/ { sub(/.*:/, "", $2); print $2 }' | sort -u
}

# Prints COUNT different free ports, a line each. Another process may still take one
# first: `start_on_free_ports` then chooses again.
free_ports() {
    local count=$1 used port hex tries=0
    local -A taken=()
    used=$(ports_in_use)
    while ((count > 0)); do
        ((++tries <= 1000)) || die "found no free port between $PORT_MIN and $PORT_MAX"
        port=$((PORT_MIN + SRANDOM % (PORT_MAX - PORT_MIN)))
        printf -v hex '%04X' "$port"
        if [[ -n ${taken[$port]:-} ]] || grep -qx -- "$hex" <<<"$used"; then continue; fi
        taken[$port]=1
        printf '%s\n' "$port"
        count=$((count - 1))
    done
}

# write_config DIR PORT CONTROLLER_PORT PROXIED_PORT UPSTREAM_PORT: the last two may be
# empty. A client that comes through a proxy is told by the broker where to go next, so the
# listener behind the proxy is advertised at the proxy's address.
write_config() {
    local dir=$1 port=$2 controller=$3 proxied=$4 upstream=$5
    local listeners=PLAINTEXT://127.0.0.1:$port advertised=PLAINTEXT://127.0.0.1:$port
    if [[ -n $proxied ]]; then
        listeners+=,PROXIED://127.0.0.1:$upstream
        advertised+=,PROXIED://127.0.0.1:$proxied
    fi
    cat >"$dir/server.properties" <<CONFIG
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=$listeners,CONTROLLER://127.0.0.1:$controller
advertised.listeners=$advertised
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=$dir/data
num.partitions=1
default.replication.factor=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# Internal topics are created on first use; 50 partitions each would cost a test seconds.
offsets.topic.num.partitions=5
transaction.state.log.num.partitions=5
share.coordinator.state.topic.num.partitions=5
# One member is a whole group here: waiting for others would cost every test 3 s.
group.initial.rebalance.delay.ms=0
# After a SIGKILL the node may register again only when its old session has ended; the
# default of 9 s would be most of a restart.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
CONFIG
    {
        printf 'bootstrap=127.0.0.1:%s\n' "$port"
        if [[ -n $proxied ]]; then
            printf 'proxied=127.0.0.1:%s\nproxied_upstream=127.0.0.1:%s\n' "$proxied" "$upstream"
        fi
    } >"$dir/broker.env"
}

# 16 random bytes in Kafka's URL-safe alphabet, without the characters that an argument
# parser or an eye could trip over.
random_cluster_id() { head -c 16 /dev/urandom | base64 | tr '+/' 'xy' | tr -d '=\n'; }

format_data() {
    local dir=$1
    rm -rf -- "$dir/data"
    "$KAFKA_LIB/run-class" kafka.tools.StorageTool format \
        --cluster-id "$(random_cluster_id)" --config "$dir/server.properties" >"$dir/format.log" 2>&1 ||
        die "formatting $dir/data failed; what the storage tool said is in $dir/format.log"
}

# launch DIR: starts the broker in a session of its own, so that Ctrl-C in the terminal
# goes to the test and not to the broker under it, and writes down its id.
launch() {
    local dir=$1 java path
    java=$(java_bin)
    path=$(class_path)
    # The lock (9) must not live on in the broker.
    # shellcheck disable=SC2086 # KAFKA_HEAP_OPTS is several words by Kafka's own convention
    setsid "$java" ${KAFKA_HEAP_OPTS:--Xms256m -Xmx1g} \
        "-Dlog4j2.configurationFile=$KAFKA_LIB/log4j2.xml" "-Dkafka.log.level=${KAFKA_LOG_LEVEL:-INFO}" \
        -cp "$path" kafka.Kafka "$dir/server.properties" \
        >>"$dir/broker.log" 2>&1 </dev/null 9>&- &
    printf '%s\n' "$!" >"$dir/broker.pid"
}

# wait_ready DIR LOG_START: 0 when the broker said that it started, 2 when another process
# had one of its ports, 1 otherwise. LOG_START is the log's size in bytes before this start.
wait_ready() {
    local dir=$1 log_start=$2 pid deadline
    pid=$(<"$dir/broker.pid")
    deadline=$((SECONDS + START_DEADLINE_S))
    until new_log "$dir" "$log_start" | grep -q 'Kafka Server started'; do
        if [[ ! -d /proc/$pid ]]; then
            rm -f -- "$dir/broker.pid"
            if new_log "$dir" "$log_start" | grep -q 'java.net.BindException'; then return 2; fi
            say "the broker stopped while starting; its log is $dir/broker.log and ends with:"
            tail -n 5 -- "$dir/broker.log" >&2
            return 1
        fi
        if ((SECONDS >= deadline)); then
            stop_broker "$dir" TERM
            say "the broker was not ready in $START_DEADLINE_S s (KAFKA_START_DEADLINE_S); its log is $dir/broker.log"
            return 1
        fi
        sleep 0.1
    done
}

new_log() { tail -c "+$(($2 + 1))" -- "$1/broker.log"; }

start_and_wait() {
    local dir=$1 log_start
    # Made here, since the broker's own process may make it only after it was looked at.
    : >>"$dir/broker.log"
    log_start=$(stat -c %s -- "$dir/broker.log")
    launch "$dir"
    wait_ready "$dir" "$log_start"
}
