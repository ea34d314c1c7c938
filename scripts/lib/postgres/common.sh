# Sourced by every script here: messages, and where PostgreSQL is.
# shellcheck shell=bash

# Without it, a failure inside `$(...)` would go on to the next line.
shopt -s inherit_errexit
# A password lies in the directory.
umask 077

POSTGRES_LIB=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck disable=SC2034 # for those who source it
readonly POSTGRES_LIB
readonly POSTGRES_APT_PACKAGE=postgresql

say() { printf '%s\n' "postgres: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# The call itself is wrong.
usage_error() {
    say "$* (see scripts/postgres help)"
    exit 2
}

# PostgreSQL cannot be had on this machine as it is: told apart from a server that fails, because
# tests skip the first and must not skip the second.
readonly UNAVAILABLE=69
unavailable() {
    say "$*"
    exit "$UNAVAILABLE"
}

has_server() { [[ -x $1/initdb && -x $1/postgres ]]; }

# Prints the directory of the server's programs. Debian keeps them out of PATH.
bin_dir() {
    local found
    if [[ -n ${POSTGRES_BIN:-} ]]; then
        has_server "$POSTGRES_BIN" || die "POSTGRES_BIN=$POSTGRES_BIN has no initdb and postgres: correct or unset it"
        printf '%s\n' "$POSTGRES_BIN"
        return
    fi
    if found=$(command -v initdb); then
        found=$(dirname -- "$(readlink -f -- "$found")")
        if has_server "$found"; then
            printf '%s\n' "$found"
            return
        fi
    fi
    while IFS= read -r found; do
        if has_server "$found"; then
            printf '%s\n' "$found"
            return
        fi
    done < <(compgen -G '/usr/lib/postgresql/*/bin' | sort -rV)
    unavailable "no PostgreSQL server found (initdb and postgres): on Debian: apt-get install" \
        "$POSTGRES_APT_PACKAGE (as root: scripts/postgres install), or set POSTGRES_BIN"
}

# Prints the user whose processes and files they are to be: PostgreSQL refuses root.
server_user() {
    local name
    if [[ $(id -u) != 0 ]]; then
        id -un
        return
    fi
    for name in postgres nobody; do
        if id -u "$name" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    unavailable "PostgreSQL does not run as root, and there is neither a user postgres nor nobody"
}

# as_server COMMAND...: as that user. It becomes the command, so that its process id is the
# server's.
as_server() {
    local user
    if [[ $(id -u) != 0 ]]; then exec "$@"; fi
    user=$(server_user)
    exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- "$@"
}
