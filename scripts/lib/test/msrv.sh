# Sourced by scripts/test: the oldest Rust that Cargo.toml states.
# shellcheck shell=bash

# Our code is checked with the old compiler; the C libraries under it have no Rust version, and
# are told to cargo as built (`check` links nothing), which saves building them once more.
readonly LINKED_C_LIBRARIES=(rdkafka z)

step_msrv() {
    local version compiler host library args=()
    version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    [[ $version =~ ^1\.[0-9]+$ ]] || die "Cargo.toml: rust-version is '$version', expected 1.NN"
    compiler=$(old_compiler "$version") || {
        if in_ci; then die "no Rust $version to check with (see above), and CI is set"; fi
        printf '   NOT CHECKED: there is no Rust %s here (see above)\n' "$version" >&2
        return 0
    }
    "$compiler" --version
    host=$("$compiler" --version --verbose | sed -n 's/^host: //p')
    for library in "${LINKED_C_LIBRARIES[@]}"; do
        args+=(--config "target.$host.$library.rustc-link-lib=['$library']")
    done
    # The dependencies' macros run once each: optimising them costs more than it gives.
    args+=(--config 'profile.dev.package."*".opt-level=0')
    RUSTC=$compiler CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv \
        run cargo "${args[@]}" check --locked --quiet --lib --bins --features redb
}

# old_compiler VERSION: prints the path of a rustc of that version.
old_compiler() {
    local version=$1 path
    if rustc --version | grep -q "^rustc $version\."; then
        type -P rustc
        return
    fi
    # Asked by list first: about a toolchain that is missing, rustup would go and fetch it.
    if rustup toolchain list 2>/dev/null | grep -q "^${version}[.-]" &&
        path=$(rustup which --toolchain "$version" rustc); then
        printf '%s\n' "$path"
        return
    fi
    path=$CACHE/rust-$version
    if [[ ! -x $path/rustc ]]; then
        unpack_debian_compiler "$version" "$path" >&2 || return 1
    fi
    printf '%s\n' "$path/rustc"
}

# unpack_debian_compiler VERSION DIR: Debian's packages, unpacked into DIR and not installed. DIR
# exists only complete; the lock keeps two first runs from filling it twice.
unpack_debian_compiler() {
    local version=$1 dir=$2 part
    if ! type -P apt-get >/dev/null || ! type -P dpkg >/dev/null; then
        printf '   no apt-get to take Debian'\''s rustc-web %s from; rustup toolchain install %s will do\n' "$version" "$version"
        return 1
    fi
    mkdir -p -- "${dir%/*}"
    exec 7>"$dir.lock"
    flock -w 600 7 || die "another run has been fetching Rust $version for 10 minutes (lock $dir.lock)"
    if [[ ! -x $dir/rustc ]]; then
        # Left by a run that was killed; under the lock they are nobody's.
        rm -rf -- "$dir" "$dir".part-*
        part=$(mktemp -d -- "$dir.part-XXXXXX")
        if ! download_compiler "$version" "$part"; then
            rm -rf -- "$part"
            printf '   Debian'\''s rustc-web %s could not be had (see above)\n' "$version"
            return 1
        fi
        mv -T -- "$part" "$dir"
    fi
    exec 7>&-
}

download_compiler() (
    local version=$1 dir=$2 package packages
    cd -- "$dir" || return 1
    if [[ -z $(apt-cache policy "libstd-rust-web-$version") ]] && may_install; then
        apt-get -q -o Acquire::Retries=3 update || return 1
    fi
    mapfile -t packages < <(missing_libraries "libstd-rust-web-$version")
    printf '   fetching Debian'\''s Rust %s (100 MB, once)\n' "$version"
    # As the user who calls: apt's own user cannot write here.
    apt-get -q -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 download \
        "rustc-web=$version.*" "libstd-rust-web-dev=$version.*" "${packages[@]}" || return 1
    for package in *.deb; do
        dpkg -x "$package" root || return 1
    done
    rm -rf -- ./*.deb root/usr/share
    write_wrapper || return 1
    ./rustc --version
)

# missing_libraries PACKAGE: it and what it needs that this machine has not.
missing_libraries() {
    local package
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances "$1" | grep '^[a-z0-9]' | sort -u |
        while read -r package; do
            if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
                printf '%s\n' "$package"
            fi
        done
}

# The compiler's own libraries are found where they were unpacked, by it alone.
write_wrapper() {
    local driver
    driver=$(find root -name 'librustc_driver-*.so' -print -quit)
    [[ -n $driver ]] || return 1
    cat >rustc <<WRAPPER
#!/bin/sh
here=\$(dirname -- "\$(readlink -f -- "\$0")")
LD_LIBRARY_PATH="\$here/$(dirname -- "$driver")" exec "\$here/root/usr/bin/rustc" "\$@"
WRAPPER
    chmod +x rustc
}
