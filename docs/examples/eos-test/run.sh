#!/usr/bin/env bash
# Starts a broker, runs the test against it, stops it, audits its log.
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
audit="${AUDIT:-$here/../../..}"
python="${PYTHON:-python3}"
work="${WORK:-$here/build}"
mkdir -p "$work"

jars="${KAFKA_JARS:-}"
if [[ -z "$jars" ]]; then
    jars="$work/jars"
    [[ -d "$jars" ]] || mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$jars"
fi
java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
kafka=("$java" -Xmx256m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*")

free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port="$(free_port)"
controller="$(free_port)"
rm -rf "$work/broker-logs"
{
    cat "$here/server.properties"
    echo "log.dirs=$work/broker-logs"
    echo "listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller"
    echo "advertised.listeners=PLAINTEXT://127.0.0.1:$port"
    echo "controller.quorum.voters=1@127.0.0.1:$controller"
} >"$work/server.properties"
"${kafka[@]}" kafka.tools.StorageTool format -t "$("${kafka[@]}" kafka.tools.StorageTool random-uuid)" \
    -c "$work/server.properties" >"$work/broker.txt"
"${kafka[@]}" kafka.Kafka "$work/server.properties" >>"$work/broker.txt" 2>&1 &
broker=$!
trap 'kill "$broker" 2>/dev/null || true' EXIT

for ((second = 0; second < 60; second++)); do
    "$python" -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)' "$port" 2>/dev/null && break
    kill -0 "$broker" 2>/dev/null || { cat "$work/broker.txt" >&2; exit 1; }
    sleep 1
done

tested=0
(cd "$here" && BOOTSTRAP="127.0.0.1:$port" "$python" -m pytest -p no:cacheprovider test_orders.py) || tested=$?

# What is absent in the log of a broker that was stopped is absent; of a running one it might come yet.
kill "$broker"
wait "$broker" || true

gate=0
"$audit/spark-submit.sh" --input "$work/broker-logs" --output "$work/audit" --conf "$here/audit.yaml" || gate=$?
cat "$work"/audit/runs/*/summary.md
((tested == 0)) && exit "$gate"
exit "$tested"
