# Sourced by scripts/bench: what the parts need beside Rust.
# shellcheck shell=bash

# A line each: the command that shows whether it is there, and Debian's package.
readonly BENCH_TOOLS='
g++ g++
gnuplot gnuplot-nox
javac openjdk-17-jdk-headless
mvn maven
time time
'
# RocksDB's bindings are made with it, at each build.
readonly LIBCLANG_PACKAGE=libclang-dev
# The line filters that `dedup` is measured against; from their registries, by their own clients.
readonly FILTER_CRATES=(xuniq@0.1.4 huniq@2.7.0 runiq@2.1.0)
readonly FILTER_MODULE=github.com/tomnomnom/anew FILTER_MODULE_VERSION=v0.1.1

install_all() {
    local missing
    mapfile -t missing < <(missing_bench_packages)
    if ((${#missing[@]} > 0)); then
        if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
            die "these are missing, and only root may install them: apt-get install ${missing[*]}"
        fi
        apt-get -q update >&2
        DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
    fi
    install_filters
}

missing_bench_packages() {
    local tool package
    while read -r tool package; do
        if [[ -n $tool ]] && ! type -P "$tool" >/dev/null; then printf '%s\n' "$package"; fi
    done <<<"$BENCH_TOOLS"
    has_libclang || printf '%s\n' "$LIBCLANG_PACKAGE"
}

has_libclang() { [[ -n ${LIBCLANG_PATH:-} ]] || compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null; }

# Prints the directory of the line filters. A changed list is installed into another one.
filters_dir() {
    local sum
    sum=$(cksum <<<"${FILTER_CRATES[*]} $FILTER_MODULE@$FILTER_MODULE_VERSION")
    printf '%s\n' "$PEERS_CACHE/filters-${sum%% *}"
}

# The directory exists only complete, because it is filled under another name and renamed. What a
# failure or an interrupt leaves of it is removed.
install_filters() {
    local dir part
    dir=$(filters_dir)
    if [[ -d $dir ]]; then return; fi
    say "installing ${FILTER_CRATES[*]} and anew into $dir"
    mkdir -p -- "$PEERS_CACHE"
    part=$(mktemp -d -- "$dir.part-XXXXXX")
    (
        trap 'rm -rf -- "$part"' EXIT
        CARGO_TARGET_DIR=$part/target cargo install --locked --quiet --root "$part" "${FILTER_CRATES[@]}" >&2
        rm -rf -- "$part/target"
        install_anew "$part/bin"
        mv -T -- "$part" "$dir"
    )
}

install_anew() {
    if type -P anew >/dev/null; then
        ln -s -- "$(type -P anew)" "$1/anew"
    elif ! type -P go >/dev/null || ! GOBIN=$1 go install "$FILTER_MODULE@$FILTER_MODULE_VERSION" >&2; then
        say "anew cannot be had here ($FILTER_MODULE@$FILTER_MODULE_VERSION by Go): it is left out of the" \
            "tables; put it into PATH and remove $(filters_dir) to have it measured"
    fi
}
