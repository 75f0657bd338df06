#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Stands the branches up, runs their jobs at once, collects the results, and puts the branches back:
#
#   fan-out.sh [DIRECTORY]     to put the results in, one file for each branch (default ./results); the lab is destroyed at the end
#
# TERRAFORM is the program to use, MIRROR a directory to install the provider from, IMAGE a directory with the image.
set -euo pipefail

mkdir -p "${1:-results}"
results=$(readlink -f "${1:-results}")
cd "$(dirname "${BASH_SOURCE[0]}")"

terraform=${TERRAFORM:-terraform}
export TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
TF_VAR_image=${IMAGE:-$(../images/debian.sh)}
export TF_VAR_image

clean_up() {
  "$terraform" destroy -input=false -auto-approve >/dev/null || echo "the lab could not be destroyed" >&2
  rm -rf .terraform .terraform.lock.hcl terraform.tfstate terraform.tfstate.backup
}
"$terraform" init -input=false ${MIRROR:+-plugin-dir="$MIRROR"} >/dev/null
trap clean_up EXIT
"$terraform" apply -input=false -auto-approve >/dev/null
"$terraform" output -raw table
mapfile -t branches < <("$terraform" output -json branches | tr -d '[]" \n' | tr , '\n')

# Each job runs on data of its own, which is the others' as well until somebody writes to it.
pids=()
for branch in "${branches[@]}"; do
  lxc exec "$branch" -- /root/job </dev/null &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
for branch in "${branches[@]}"; do
  lxc file pull "$branch/root/result" "$results/$branch"
  printf '%-14s%s\n' "$branch" "$(<"$results/$branch")"
done

# Ready for other jobs: nothing of these is left in the branches.
"$terraform" apply -input=false -auto-approve -var run=second >/dev/null
for branch in "${branches[@]}"; do
  lxc exec "$branch" -- test ! -e /root/result </dev/null
done
