# Sourced by scripts/kafka: one broker's directory, its files, and whose process it is.
# shellcheck shell=bash

# A directory is ours when it holds this file; nothing is removed from any other.
readonly MARKER=.idempotent-consumer-kafka
readonly STOP_DEADLINE_S=20

default_dir() { printf '%s\n' "${TMPDIR:-/tmp}/idempotent-consumer-kafka-$(id -u)"; }

is_instance() { [[ -f $1/$MARKER ]]; }

# lock_instance DIR: one command at a time for a directory. The directory itself is the
# lock; whoever waited while it was removed and made again must not hold the old one.
lock_instance() {
    local dir=$1
    while true; do
        exec 9<"$dir" || die "cannot open $dir"
        flock -w 120 9 || die "another command has been working on $dir for two minutes"
        if [[ /proc/self/fd/9 -ef $dir ]]; then return; fi
        [[ -d $dir ]] || die "$dir was removed by another command"
    done
}

# Prints the id of DIR's broker when it runs. A number in a file may have been given to
# another process since: the command line must name this very directory's settings.
running_pid() {
    local dir=$1 pid
    [[ -s $dir/broker.pid ]] || return 1
    pid=$(<"$dir/broker.pid")
    is_broker_of "$dir" "$pid" || return 1
    printf '%s\n' "$pid"
}

is_broker_of() {
    local args
    [[ $2 =~ ^[0-9]+$ && -r /proc/$2/cmdline ]] || return 1
    args=$(tr '\0' ' ' 2>/dev/null <"/proc/$2/cmdline") || return 1
    [[ $args == *" kafka.Kafka $1/server.properties "* ]]
}

# stop_broker DIR SIGNAL: waits until the process is gone; KILL when the deadline passed.
stop_broker() {
    local dir=$1 signal=$2 pid deadline
    pid=$(running_pid "$dir") || return 0
    kill "-$signal" "$pid" 2>/dev/null || true
    deadline=$((SECONDS + STOP_DEADLINE_S))
    while is_broker_of "$dir" "$pid"; do
        if ((SECONDS >= deadline)); then
            say "pid $pid did not stop in $STOP_DEADLINE_S s: killing it"
            # Looked at once more just before: this signal cannot be taken back.
            if is_broker_of "$dir" "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
            deadline=$((SECONDS + STOP_DEADLINE_S))
        fi
        sleep 0.1
    done
    rm -f -- "$dir/broker.pid"
}

# Removes what `up` made, by name, and the directory itself only if nothing else is in it.
remove_instance() {
    local dir=$1
    rm -rf -- "$dir/data"
    rm -f -- "$dir"/{server.properties,broker.env,broker.pid,broker.log,format.log,"$MARKER"}
    rmdir -- "$dir" 2>/dev/null || say "left $dir: it holds files that are not the broker's"
}

print_instance() {
    local dir=$1 pid
    pid=$(running_pid "$dir") || pid=
    cat -- "$dir/broker.env"
    printf 'pid=%s\ndir=%s\nlog_dir=%s\nlog=%s\n' "$pid" "$dir" "$dir/data" "$dir/broker.log"
}

instance_value() { sed -n "s/^$2=//p" "$1/broker.env"; }
