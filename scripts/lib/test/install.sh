# Sourced by scripts/test: the tools that the other steps need.
# shellcheck shell=bash

# A line each: the command that shows whether it is there, and Debian's package. librdkafka is
# built by its own configure and make; the tests use the rest.
readonly TOOLS='
gcc build-essential
g++ build-essential
make build-essential
pkg-config pkg-config
shellcheck shellcheck
strace strace
setpriv util-linux
unshare util-linux
flock util-linux
mount mount
kill procps
awk mawk
git git
systemd-analyze systemd
'
readonly ZLIB_PACKAGE=zlib1g-dev

step_install() {
    local missing
    mapfile -t missing < <(missing_packages)
    if ((${#missing[@]} > 0)); then install_packages "${missing[@]}"; fi
    if ! has_kafka; then run scripts/kafka install; fi
    # It says itself what is missing, and does nothing where nothing is.
    run scripts/postgres install
    check_rust
    # Here and not under the first test that needs it: its deadline is for a broker's start.
    if [[ -z ${KAFKA_BOOTSTRAP:-} ]]; then run scripts/kafka fetch; fi
}

# Bash's own `kill` would hide that the program is missing: hence `type -P`.
missing_packages() {
    local tool package
    {
        while read -r tool package; do
            if [[ -n $tool ]] && ! type -P "$tool" >/dev/null; then printf '%s\n' "$package"; fi
        done <<<"$TOOLS"
        if ! has_zlib; then printf '%s\n' "$ZLIB_PACKAGE"; fi
    } | sort -u
}

# Without its header, librdkafka is built without zlib, and cannot read a gzip batch.
has_zlib() {
    type -P cc >/dev/null && printf '#include <zlib.h>\n' | cc -E -x c -o /dev/null - 2>/dev/null
}

has_kafka() {
    if [[ -n ${KAFKA_BOOTSTRAP:-} ]]; then return; fi
    if [[ -z ${JAVA_HOME:-} ]] && ! type -P java >/dev/null; then return 1; fi
    [[ -n ${KAFKA_HOME:-} ]] || type -P mvn >/dev/null
}

may_install() { [[ $(id -u) == 0 ]] && type -P apt-get >/dev/null; }

install_packages() {
    may_install || die "these are missing, and only root may install them: apt-get install $*"
    # A machine's own updates may hold the lock for a while.
    local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    run "${apt[@]}" update
    DEBIAN_FRONTEND=noninteractive run "${apt[@]}" install -y --no-install-recommends "$@"
}

check_rust() {
    local tool
    type -P cargo >/dev/null || die "no cargo found: install Rust with rustup, with the components clippy and rustfmt"
    for tool in clippy fmt; do
        cargo "$tool" --version >/dev/null 2>&1 ||
            die "cargo $tool is missing: rustup component add clippy rustfmt"
    done
    rustc --version
}
