# Sourced by scripts/lab: the lab's directory, its broker, the grading.
# shellcheck shell=bash
shopt -s inherit_errexit
PATH=$LAB_ROOT/scripts/bin:$PATH

declare -A kafka=()
proxy_pid=''
bootstrap=''
steps_passed=0
steps_total=0

die() {
    printf '%s\n' "lab: $*" >&2
    exit 1
}

# The call itself is wrong.
usage_error() {
    printf '%s\n' "lab: $* (see scripts/lab help)" >&2
    exit 2
}

# A lab counts lines in files; files of another run would be counted with them.
prepare_dir() {
    [[ -n $1 ]] || usage_error "the directory's name is empty: name a new directory"
    dir=$(realpath -m -- "$1")
    [[ -d $dir || ! -e $dir ]] || die "$dir is a file: name a new directory"
    mkdir -p -- "$dir"
    [[ -z $(ls -A -- "$dir") ]] || die "$dir is not empty: name a new directory"
    work=$(mktemp -d)
    readonly dir work
}

# start_kafka OPTION...: fills `kafka` with what `scripts/kafka up` prints.
start_kafka() {
    local lines name value
    lines=$("$LAB_ROOT/scripts/kafka" up --dir "$work/kafka" --parent $$ "$@") ||
        die "no broker (see above)$(keep_broker_dir)"
    while IFS='=' read -r name value; do kafka[$name]=$value; done <<<"$lines"
    bootstrap=${kafka[bootstrap]}
}

# The work directory is removed at exit, the log of a broker that did not start is not.
keep_broker_dir() {
    if [[ -d $work/kafka ]] && mv -- "$work/kafka" "$dir/broker"; then
        printf '%s\n' "; its files were moved to $dir/broker"
    fi
}

cleanup() {
    if [[ -n $proxy_pid ]]; then
        kill "$proxy_pid" 2>/dev/null || true
        wait "$proxy_pid" 2>/dev/null || true
    fi
    if [[ -d $work/kafka ]]; then "$LAB_ROOT/scripts/kafka" down --dir "$work/kafka" || true; fi
    rm -rf -- "$work"
}

# binary NAME VARIABLE: prints the path of one of our binaries. cargo is asked even when
# the file is there, because only cargo knows whether it is older than the sources.
binary() {
    local target=${CARGO_TARGET_DIR:-$LAB_ROOT/target}/release/$1
    if [[ -n ${!2:-} ]]; then
        target=$(realpath -m -- "${!2}")
        [[ -f $target && -x $target ]] || die "$2=${!2}: no such program; correct or unset it"
    elif command -v cargo >/dev/null; then
        (cd -- "$LAB_ROOT" && cargo build --quiet --release --bin "$1" >&2)
    fi
    [[ -x $target ]] || die "$target: not there; build it (cargo build --release --bin $1) or name it"
    printf '%s\n' "$target"
}

# Inside a step: gives up with the reason that is printed after the step's FAIL.
fail() {
    printf '%s\n' "$*"
    exit 1
}

# grade NAME TITLE: runs the function NAME as the next step. What it prints is the graded
# line's text; what the tools say on standard error goes to lab.log.
grade() {
    local text status=0
    steps_total=$((steps_total + 1))
    printf '== step %s: %s\n' "$steps_total" "$2" >>"$dir/lab.log"
    # Not `if text=$(...)`: there, bash would run the step with errexit off.
    set +e
    text=$(
        set -e
        "$1" 2>>"$dir/lab.log"
    )
    status=$?
    set -e
    if ((status == 0)); then
        steps_passed=$((steps_passed + 1))
        printf 'ok step %s: %s\n' "$steps_total" "$text"
    else
        printf 'FAIL step %s: %s (%s; the tools said: %s)\n' \
            "$steps_total" "${text:-a command failed}" "$2" "$dir/lab.log"
    fi
}

# The first step creates the topic. Where it exists already, it and the groups on it belong
# to somebody, and the steps after it would send to them and rewind them.
grade_or_stop() {
    grade "$@"
    if ((steps_passed < steps_total)); then finish; fi
}

# The verdict, also as the exit status.
finish() {
    local word=FAIL
    if ((steps_passed == steps_total)); then word=PASS; fi
    printf 'files: %s\n%s %s/%s\n' "$dir" "$word" "$steps_passed" "$steps_total"
    [[ $word == PASS ]] || exit 1
}

create_topic() {
    kafka-topics.sh --bootstrap-server "$bootstrap" --create --topic "$1" --partitions 1 >&2
}

# produce TOPIC [OPTION...]: sends the lines of standard input.
produce() {
    local topic=$1
    shift
    kafka-console-producer.sh --bootstrap-server "$bootstrap" --topic "$topic" "$@"
}

# end_offsets REGEX: prints `topic:partition:end offset`, a line for each partition.
end_offsets() { kafka-get-offsets.sh --bootstrap-server "$bootstrap" --topic "$1"; }

# The same as one number for a topic that must have a single partition.
end_offset() {
    local lines
    lines=$(end_offsets "$1")
    [[ $lines =~ ^$1:0:([0-9]+)$ ]] || fail "$1: expected one partition, got: ${lines//$'\n'/ }"
    printf '%s\n' "${BASH_REMATCH[1]}"
}

line_count() { wc -l <"$1"; }
distinct_count() { sort -u -- "$1" | wc -l; }
report_value() { sed -n "s/^$2=//p" "$1"; }
