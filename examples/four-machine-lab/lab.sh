#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# The life of this lab, as `make lab`, `make reset` and `make destroy` run it:
#
#   lab.sh up       build the image, apply, print how long each step took
#   lab.sh reset    spoil all four machines, reset them, show both and how long it took
#   lab.sh down     destroy it, and remove what `up` wrote here
#
# TERRAFORM is the program to use, MIRROR a directory to install the provider from (terraform init -plugin-dir), and
# IMAGE a directory with another image (debian-12.tar.xz and debian-12.squashfs).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

terraform=${TERRAFORM:-terraform}
lxc=$(command -v lxc || command -v incus || echo lxc)
nodes=(node-a node-b node-c node-d)
export TF_CLI_CONFIG_FILE=/dev/null CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=1

say() { printf '\n== %s\n' "$*"; }

init() {
  rm -f .terraform.lock.hcl # it has the checksum of an earlier build of the provider
  "$terraform" init -input=false ${MIRROR:+-plugin-dir="$MIRROR"} >/dev/null
}

# apply leaves the outputs out; those that a person wants to see are shown where it is done.
apply() { "$terraform" apply -input=false -auto-approve | sed '/^Outputs:/,$d'; }

up() {
  local image
  image=${IMAGE:-$(../images/debian.sh)}
  echo "image = \"$image\"" >image.auto.tfvars
  init
  apply
  say "How long it took"
  "$terraform" output -raw table
}

# in_machine NODE COMMAND...
in_machine() { "$lxc" exec "$1" -- "${@:2}" </dev/null 2>/dev/null; }

# status prints a line for each machine: its power state, its service, whether it was spoilt, its address, and what
# another machine gets to see at http://NODE/.
status() {
  local node state service dirt address page previous=${nodes[-1]}
  printf '%-8s  %-8s  %-9s  %-5s  %-12s  %s\n' machine power service dirt address "page, as another machine sees it"
  for node in "${nodes[@]}"; do
    state=$("$lxc" list "^$node\$" -c s -f csv 2>/dev/null)
    service='' dirt='' address='' page=''
    if [[ $state == RUNNING ]]; then
      service=$(in_machine "$node" systemctl is-active hello.service) || true
      dirt=$(in_machine "$node" cat /root/dirt) || dirt=none
      address=$(in_machine "$node" ip -4 -brief address show eth0 | awk '{ sub("/.*", "", $3); print $3 }') || true
      page=$(in_machine "$previous" timeout 2 busybox wget -q -O - "http://$node/") || true
    fi
    printf '%-8s  %-8s  %-9s  %-5s  %-12s  %s\n' "$node" "$state" "${service:--}" "${dirt:--}" "${address:--}" "${page:--}"
    previous=$node
  done
}

# spoil leaves each machine in another kind of trouble.
spoil() {
  local node
  for node in "${nodes[@]}"; do
    in_machine "$node" sh -c 'echo dirt >/root/dirt && head -c 50M /dev/urandom >/root/more-dirt && sync'
  done
  in_machine node-b systemctl kill --signal=KILL hello.service
  "$lxc" stop --force node-c
  in_machine node-d rm /sbin/init
  "$lxc" stop --force node-d
  if "$lxc" start node-d 2>/dev/null; then
    echo "node-d still boots, though its init is gone" >&2
    return 1
  fi
}

reset() {
  [[ -e terraform.tfstate ]] || { echo "There is no lab to reset; make lab stands one up." >&2; exit 1; }
  init
  local clean spoilt after start stop
  clean=$(status)
  say "Spoiling: a file on all, a killed service (node-b), a stopped machine (node-c), one that cannot boot (node-d)"
  spoil
  spoilt=$(status)
  say "Resetting"
  echo "run = \"$(date --utc +%FT%T.%NZ)\"" >run.auto.tfvars
  start=$(date +%s%N)
  apply
  stop=$(date +%s%N)
  after=$(status)
  say "Before"
  echo "$spoilt"
  say "After"
  echo "$after"
  say "How long it took"
  "$terraform" output -raw table
  echo "terraform apply took $(((stop - start) / 1000000)) ms in all."
  [[ $after == "$clean" ]] || { printf '\nThe lab is not what it was before it was spoilt:\n%s\n' "$clean" >&2; exit 1; }
}

down() {
  if [[ -e terraform.tfstate ]]; then
    init
    "$terraform" destroy -input=false -auto-approve
  fi
  rm -rf .terraform .terraform.lock.hcl terraform.tfstate terraform.tfstate.backup ./*.auto.tfvars
}

case ${1:-} in
  up | reset | down) "$1" ;;
  *) sed -n '4,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
