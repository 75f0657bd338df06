#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Spoils, resets and checks the machines, round after round, and prints how long a cycle takes: median and p95.
#
#   loop.sh [ROUNDS]     of each way to apply (default 20); the lab is stood up first and destroyed at the end
#
# Three ways to apply are compared: the plain one; -refresh=false, which trusts the state and saves the reading of every
# object; and -target on the reset besides, which saves the planning of what the reset does not need.
# For these four machines both save less than one round differs from the next (medians of 5.5, 5.7 and 5.7 s on a busy host
# of two processors, of which the reset itself takes 3.9 s): a plan reads them all with one request.
# TERRAFORM is the program to use, MIRROR a directory to install the provider from, IMAGE a directory with the image.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

terraform=${TERRAFORM:-terraform}
rounds=${1:-20}
export TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
TF_VAR_image=${IMAGE:-$(../images/debian.sh)}
export TF_VAR_image

clean_up() {
  "$terraform" destroy -input=false -auto-approve >/dev/null || echo "the lab could not be destroyed" >&2
  rm -rf .terraform .terraform.lock.hcl terraform.tfstate terraform.tfstate.backup "$times"
}
times=$(mktemp -d)
"$terraform" init -input=false ${MIRROR:+-plugin-dir="$MIRROR"} >/dev/null
trap clean_up EXIT
"$terraform" apply -input=false -auto-approve >/dev/null
machines=(loop-a loop-b loop-c loop-d)

# on_all SCRIPT: runs a shell script on all machines at once.
on_all() {
  local machine pids=() failed=0
  for machine in "${machines[@]}"; do
    lxc exec "$machine" -- sh -c "$1" </dev/null &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}

# cycle WAY ROUND ARGUMENT...: one round, and its times in milliseconds.
cycle() {
  local way=$1 round=$2 start spoilt reset checked
  shift 2
  start=$(date +%s%N)
  on_all 'echo spoilt > /root/state; touch /root/left; head -c 10M /dev/urandom > /root/data; sync'
  spoilt=$(date +%s%N)
  "$terraform" apply -input=false -auto-approve -var "run=$way-$round" "$@" >/dev/null
  reset=$(date +%s%N)
  on_all 'grep -qx "under test" /root/state && test ! -e /root/left && test ! -e /root/data'
  checked=$(date +%s%N)
  echo "$(((checked - start) / 1000000)) $(((reset - spoilt) / 1000000)) $("$terraform" output -raw usable_ms)" >>"$times/$way"
}

# quantile PERCENT COLUMN FILE
quantile() { awk -v c="$2" '{ print $c }' "$3" | sort -n | awk -v p="$1" '{ a[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print a[i < 1 ? 1 : i] }'; }

for round in $(seq "$rounds"); do
  cycle plain "$round"
  cycle no-refresh "$round" -refresh=false
  cycle target "$round" -refresh=false -target=lab_reset.scenario
done

printf '%-12s %16s %16s %16s   (ms: median / p95 of %s rounds)\n' apply "whole cycle" "terraform apply" "reset itself" "$rounds"
for way in plain no-refresh target; do
  printf '%-12s' "$way"
  for column in 1 2 3; do printf ' %7s / %6s' "$(quantile 50 "$column" "$times/$way")" "$(quantile 95 "$column" "$times/$way")"; done
  echo
done
