# Sourced by scripts/postgres: one server's directory, its files, and whose process it is.
# shellcheck shell=bash

# A directory is ours when it holds this file; nothing is removed from any other.
readonly MARKER=.idempotent-consumer-postgres
readonly STOP_DEADLINE_S=20

default_dir() { printf '%s\n' "${TMPDIR:-/tmp}/idempotent-consumer-postgres-$(id -u)"; }

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

# Prints the id of DIR's server when it runs. A number in a file may have been given to
# another process since: the command line must name this very directory's data.
running_pid() {
    local dir=$1 pid
    [[ -s $dir/postgres.pid ]] || return 1
    pid=$(<"$dir/postgres.pid")
    is_server_of "$dir" "$pid" || return 1
    printf '%s\n' "$pid"
}

is_server_of() {
    local args
    [[ $2 =~ ^[0-9]+$ && -r /proc/$2/cmdline ]] || return 1
    args=$(tr '\0' ' ' 2>/dev/null <"/proc/$2/cmdline") || return 1
    [[ $args == *"/postgres -D $1/data "* ]]
}

# stop_server DIR: sessions are cut and the data is written out ("fast shutdown").
stop_server() {
    local dir=$1 pid deadline
    pid=$(running_pid "$dir") || return 0
    kill -INT "$pid" 2>/dev/null || true
    deadline=$((SECONDS + STOP_DEADLINE_S))
    while is_server_of "$dir" "$pid"; do
        if ((SECONDS >= deadline)); then
            say "pid $pid did not stop in $STOP_DEADLINE_S s: killing it"
            kill_server "$dir"
        fi
        sleep 0.05
    done
    rm -f -- "$dir/postgres.pid"
}

# kill_server DIR: all of its processes, none of which gets to do anything about it. The first is
# halted before it is asked for the others, so that it makes no new ones and reaps none, and each
# number still belongs to whom it was read from.
kill_server() {
    local dir=$1 pid process deadline
    local -a processes
    pid=$(running_pid "$dir") || return 0
    kill -STOP "$pid" 2>/dev/null || return 0
    mapfile -t processes < <(pgrep --parent "$pid")
    for process in "${processes[@]}" "$pid"; do kill -KILL "$process" 2>/dev/null || true; done
    deadline=$((SECONDS + STOP_DEADLINE_S))
    # What has ended and waits to be reaped has no command line any more.
    for process in "${processes[@]}" "$pid"; do
        while [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline") == *postgres* ]]; do
            ((SECONDS < deadline)) || die "pid $process of the server in $dir outlives SIGKILL"
            sleep 0.02
        done
    done
    rm -f -- "$dir/postgres.pid"
    clear_killed "$dir"
}

# clear_killed DIR: removes what a killed server leaves so that the next one recognises it: a file
# with its number, and the shared memory that is named there. Until somebody reaps it the number is
# still taken, and the next server would not start.
clear_killed() {
    local file=$1/data/postmaster.pid segment
    [[ -f $file ]] || return 0
    segment=$(sed -n '7s/.* //p' "$file")
    if [[ $segment =~ ^[0-9]+$ ]]; then (as_server ipcrm -m "$segment") 2>/dev/null || true; fi
    rm -f -- "$file"
}

# Removes what `up` made, by name, and the directory itself only if nothing else is in it.
remove_instance() {
    local dir=$1
    rm -rf -- "$dir/data"
    rm -f -- "$dir"/{postgres.env,postgres.pid,postgres.log,initdb.log,password,"$MARKER"}
    rmdir -- "$dir" 2>/dev/null || say "left $dir: it holds files that are not the server's"
}

print_instance() {
    local dir=$1 pid password
    pid=$(running_pid "$dir") || pid=
    password=$(instance_value "$dir" password)
    printf 'url=postgresql://postgres:%s@127.0.0.1:%s/postgres\n' "$password" "$(instance_value "$dir" port)"
    printf 'pid=%s\ndir=%s\nlog=%s\n' "$pid" "$dir" "$dir/postgres.log"
}

instance_value() { sed -n "s/^$2=//p" "$1/postgres.env"; }
