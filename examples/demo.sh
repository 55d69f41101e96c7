#!/usr/bin/env bash
# Shows the main path on a dev agent: run a real job, see its page, its state and its logs, stop it. Each step must
# work, or the script ends with an error.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/bin/nomadlite
dir=$(mktemp -d)
agent=
cleanup() {
  status=$?
  trap - EXIT
  if [ -n "$agent" ] && kill -0 "$agent" 2>/dev/null; then
    kill -INT "$agent"
    wait "$agent" || true
  fi
  if [ "$status" -ne 0 ]; then
    echo "The demo failed. The agent's log ends with:"
    tail -n 40 "$dir/agent.log" || true
  fi
  rm -rf "$dir"
  exit "$status"
}
trap cleanup EXIT

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
run() { printf '$ nomadlite %s\n' "$*"; "$bin" "$@"; }

# fetch prints the page at HOST PORT.
fetch() {
  exec 3<>"/dev/tcp/$1/$2" || return 1
  printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" >&3
  sed '1,/^\r*$/d' <&3
  exec 3>&-
}

# await runs a command until it succeeds, 10 s at most.
await() {
  for _ in $(seq 100); do
    if "$@" 2>/dev/null; then return 0; fi
    kill -0 "$agent" 2>/dev/null || { echo "the agent ended"; return 1; }
    sleep 0.1
  done
  echo "gave up waiting for: $*"
  return 1
}
node_is_ready() { [ "$("$bin" node status -t '{{range .}}{{.Status}}{{end}}')" = ready ]; }
alloc_is() { [ "$("$bin" alloc status -t '{{.ClientStatus}}' "$alloc")" = "$1" ]; }
log_has() { "$bin" alloc logs "$alloc" | grep -q "$1"; }
page_answers() { fetch "$host" "$port" >"$dir/page" && grep -q 'Hello, world, from server' "$dir/page"; }

# Ports other than the default ones, so that the demo runs beside an agent.
cat >"$dir/demo.hcl" <<CONFIG
ports {
  http = 14646
  rpc  = 14647
  serf = 14648
}
CONFIG
export NOMAD_ADDR=http://127.0.0.1:14646

say "Starting a dev agent"
"$bin" agent -dev -config "$dir/demo.hcl" >"$dir/agent.log" 2>&1 &
agent=$!
await node_is_ready
run node status

say "Running examples/hello.nomad.hcl"
run job run -var "hello=$PWD/bin/hello" -var "greeting=Hello, world," examples/hello.nomad.hcl

alloc=$("$bin" job allocs -t '{{range .}}{{.ID}}{{end}}' hello)
await alloc_is running
address=$("$bin" alloc status -t '{{range .AllocatedResources.Shared.Ports}}{{.HostIP}} {{.Value}}{{end}}' "$alloc")
read -r host port <<<"$address"

say "Fetching its page from http://$host:$port/"
await page_answers
cat "$dir/page"

say "The job"
run job status hello

say "The allocation"
run alloc status "${alloc:0:8}"

say "Its logs"
await log_has 'request GET /'
run alloc logs "${alloc:0:8}"

say "Stopping it; its group's shutdown_delay of 20 s is skipped"
begin=$(date +%s)
run job stop -no-shutdown-delay hello
await alloc_is complete
took=$(($(date +%s) - begin))
[ "$took" -lt 10 ] || { echo "the stop took $took s"; exit 1; }
run job status -short hello

say "Done"
