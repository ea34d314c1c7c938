# Sourced by scripts/postgres: make, configure, start and wait for one server.
# shellcheck shell=bash

readonly START_DEADLINE_S=${POSTGRES_START_DEADLINE_S:-60}

# Ports above the well-known and below those the kernel gives to outgoing connections.
readonly PORT_MIN=20000 PORT_MAX=32000

random_port() { printf '%s\n' "$((PORT_MIN + SRANDOM % (PORT_MAX - PORT_MIN)))"; }

# make_cluster DIR [KEY=VALUE...]
make_cluster() {
    local dir=$1 bin password setting
    shift
    bin=$(bin_dir)
    password=$(od -An -N16 -tx1 </dev/urandom | tr -d ' \n')
    printf 'password=%s\n' "$password" >"$dir/postgres.env"
    printf '%s\n' "$password" >"$dir/password"
    if [[ $(id -u) == 0 ]]; then chown "$(server_user)" "$dir" "$dir/password"; fi
    (as_server test -x "$dir") || die "the user $(server_user), who is to run PostgreSQL, may not enter $dir:" \
        "choose a --dir (or TMPDIR) that other users can reach"
    # What is half made at a power cut is made again; the server itself syncs as it does anywhere.
    (cd / && as_server "$bin/initdb" --pgdata="$dir/data" --username=postgres --pwfile="$dir/password" \
        --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync --no-instructions) >"$dir/initdb.log" 2>&1 ||
        die "making a cluster in $dir/data failed; what initdb said is in $dir/initdb.log"
    rm -f -- "$dir/password"
    # Small, quiet, and as durable as the default. A deadlock is looked for sooner than after the
    # default's second, which is all that a test of one would wait for.
    {
        cat <<'CONFIG'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 16MB
huge_pages = off
dynamic_shared_memory_type = mmap
fsync = on
full_page_writes = on
synchronous_commit = on
max_wal_size = 128MB
deadlock_timeout = 100ms
lc_messages = 'C'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %d %a %e '
CONFIG
        # After a crash each of a thousand files would be synced by itself, which takes seconds.
        if "$bin/postgres" --describe-config | grep '^recovery_init_sync_method' >/dev/null; then
            printf "recovery_init_sync_method = 'syncfs'\n"
        fi
        for setting in "$@"; do printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}"; done
    } >>"$dir/data/postgresql.conf"
}

# start_and_wait DIR PORT: 0 when the server takes connections, 2 when another process has the
# port, 1 otherwise.
start_and_wait() {
    local dir=$1 port=$2 bin pid log_start deadline
    bin=$(bin_dir)
    # Made here, since the server's own process may make it only after it was looked at.
    : >>"$dir/postgres.log"
    log_start=$(stat -c %s -- "$dir/postgres.log")
    # In a session of its own, so that Ctrl-C in the terminal goes to the test and not to the
    # server under it. The lock (9) must not live on in the server.
    (cd / && as_server setsid "$bin/postgres" -D "$dir/data" -p "$port" \
        >>"$dir/postgres.log" 2>&1 </dev/null 9>&-) &
    pid=$!
    printf '%s\n' "$pid" >"$dir/postgres.pid"
    deadline=$((SECONDS + START_DEADLINE_S))
    # Not `grep -q`: it ends early, and what ends the writer counts as a failure here.
    until new_log "$dir" "$log_start" | grep 'database system is ready to accept connections' >/dev/null; do
        if [[ ! -d /proc/$pid ]]; then
            rm -f -- "$dir/postgres.pid"
            if new_log "$dir" "$log_start" | grep 'could not bind .*: Address already in use' >/dev/null; then return 2; fi
            say "the server stopped while starting; its log is $dir/postgres.log and ends with:"
            tail -n 5 -- "$dir/postgres.log" >&2
            return 1
        fi
        if ((SECONDS >= deadline)); then
            kill_server "$dir"
            say "the server was not ready in $START_DEADLINE_S s (POSTGRES_START_DEADLINE_S); its log is $dir/postgres.log"
            return 1
        fi
        sleep 0.02
    done
}

new_log() { tail -c "+$(($2 + 1))" -- "$1/postgres.log"; }
