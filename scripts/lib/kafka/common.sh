# Sourced by every script here: messages, and where Java and Kafka's jars are.
# shellcheck shell=bash

# Without it, a failure inside `$(...)` would go on to the next line.
shopt -s inherit_errexit

KAFKA_LIB=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
readonly KAFKA_LIB
readonly KAFKA_JAVA_MIN=17
readonly KAFKA_APT_PACKAGES=(openjdk-17-jre-headless maven)

say() { printf '%s\n' "kafka: $*" >&2; }

die() {
    say "$*"
    exit 1
}

# The call itself is wrong.
usage_error() {
    say "$* (see scripts/kafka help)"
    exit 2
}

# Kafka cannot be had on this machine as it is: told apart from a broker that fails, because
# tests skip the first and must not skip the second.
readonly UNAVAILABLE=69
unavailable() {
    say "$*"
    exit "$UNAVAILABLE"
}

# Prints the java to run. Cheap on purpose: every tool start passes here.
java_bin() {
    if [[ -n ${JAVA_HOME:-} ]]; then
        [[ -x $JAVA_HOME/bin/java ]] || die "JAVA_HOME=$JAVA_HOME has no bin/java: correct or unset it"
        printf '%s\n' "$JAVA_HOME/bin/java"
        return
    fi
    command -v java || unavailable "no java found: Kafka 4.3 needs Java $KAFKA_JAVA_MIN or newer;" \
        "on Debian: apt-get install ${KAFKA_APT_PACKAGES[0]} (as root: scripts/kafka install)"
}

check_java_version() {
    local java major
    java=$(java_bin)
    major=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [[ -n $major ]] || die "$java -version prints no version: is it a Java runtime?"
    ((major >= KAFKA_JAVA_MIN)) || unavailable "$java is Java $major; Kafka 4.3 needs $KAFKA_JAVA_MIN or newer:" \
        "install ${KAFKA_APT_PACKAGES[0]} or set JAVA_HOME"
}

pom_property() { sed -n "s|.*<$1>\(.*\)</$1>.*|\1|p" "$KAFKA_LIB/pom.xml"; }

# Where the resolved jars are kept. The pom's checksum is part of the path, so a changed
# pom is resolved anew and running brokers keep the jars they were started from.
jar_cache_dir() {
    local base sum
    base=${KAFKA_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/idempotent-consumer/kafka-$(pom_property kafka.version)}
    sum=$(cksum <"$KAFKA_LIB/pom.xml")
    printf '%s\n' "$base/jars-${sum%% *}"
}

# Prints the directory of Kafka's jars; resolves them first when they are not there yet.
jars_dir() {
    if [[ -n ${KAFKA_HOME:-} ]]; then
        jars_of_home
        return
    fi
    local dir
    dir=$(jar_cache_dir)
    [[ -d $dir ]] || resolve_jars "$dir"
    printf '%s\n' "$dir"
}

jars_of_home() {
    local dir
    for dir in "$KAFKA_HOME/libs" "$KAFKA_HOME"; do
        if compgen -G "$dir/kafka-clients-*.jar" >/dev/null; then
            printf '%s\n' "$dir"
            return
        fi
    done
    die "KAFKA_HOME=$KAFKA_HOME holds no Kafka jars (neither libs/kafka-clients-*.jar nor" \
        "kafka-clients-*.jar): correct it, or unset it to have Kafka resolved by Maven"
}

# resolve_jars DIR: a directory of that name exists only complete, because it is filled
# under another name and renamed; the lock keeps two first runs from resolving twice.
resolve_jars() {
    local dir=$1 part
    command -v mvn >/dev/null || unavailable "no mvn found: Kafka's jars are resolved by Maven;" \
        "on Debian: apt-get install ${KAFKA_APT_PACKAGES[1]} (as root: scripts/kafka install)," \
        "or set KAFKA_HOME to an unpacked Kafka, or KAFKA_BOOTSTRAP to a running broker"
    mkdir -p -- "${dir%/*}"
    exec 8>"${dir%/*}/lock"
    flock -w 600 8 || die "another run has been resolving Kafka's jars for 10 minutes (lock ${dir%/*}/lock)"
    if [[ ! -d $dir ]]; then
        say "resolving Apache Kafka $(pom_property kafka.version) with Maven into $dir (55 MB, once)"
        # Left by a run that was killed; under the lock they are nobody's.
        rm -rf -- "$dir".part-*
        part=$(mktemp -d -- "$dir.part-XXXXXX")
        if ! mvn --batch-mode -Dstyle.color=never --quiet --strict-checksums --file "$KAFKA_LIB/pom.xml" \
            dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$part" 1>&2; then
            rm -rf -- "$part"
            unavailable "Maven could not resolve Kafka's jars (see above): check the network and Maven's settings"
        fi
        mv -T -- "$part" "$dir"
    fi
    exec 8>&-
}

# Prints the class path of every jar, by name: `*` would make it long only in the JVM,
# but its order is the directory's and differs between machines.
class_path() {
    local dir jars
    dir=$(jars_dir)
    jars=("$dir"/*.jar)
    local IFS=:
    printf '%s\n' "${jars[*]}"
}
