#!/usr/bin/env bash
exec "$(dirname -- "$(readlink -f -- "$0")")/../lib/kafka/run-class" org.apache.kafka.tools.GetOffsetShell "$@"
