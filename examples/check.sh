#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
#
# Validates every example, and those in the README, each as a configuration of its own:
#
#   check.sh TERRAFORM DIRECTORY      with the provider that was built into DIRECTORY
set -euo pipefail

terraform=$1 binaries=$(readlink -f "$2")
top=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An example without required_providers asks for hashicorp/lab.
{
  echo 'provider_installation {'
  echo '  dev_overrides {'
  for host in registry.terraform.io registry.opentofu.org; do
    printf '    "%s/cowlab/lab" = "%s"\n    "%s/hashicorp/lab" = "%s"\n' "$host" "$binaries" "$host" "$binaries"
  done
  echo '  }'
  echo '  direct {}'
  echo '}'
} >"$work/cli.tfrc"
export TF_CLI_CONFIG_FILE=$work/cli.tfrc CHECKPOINT_DISABLE=1

failed=0 checked=0

# check NAME FILE...: the files together are one configuration, and directories among them its modules.
check() {
  local name=$1 dir=$work/example
  shift
  rm -rf "$dir"
  mkdir "$dir"
  cp -R "$@" "$dir"
  checked=$((checked + 1))
  if "$terraform" -chdir="$dir" get >"$work/out" 2>&1 && "$terraform" -chdir="$dir" validate -no-color >"$work/out" 2>&1; then
    echo "ok    $name"
  else
    echo "FAIL  $name"
    cat "$work/out"
    failed=$((failed + 1))
  fi
}

program=$("$terraform" version | sed -n 1p) # such as "Terraform v1.11.4"

# check_since VERSION NAME FILE... checks with programs that are new enough.
check_since() {
  local version=$1
  shift
  if [[ $(printf '%s\n' "v$version" "${program##* }" | sort --version-sort | head -n 1) == "v$version" ]]; then
    check "$@"
  else
    echo "skip  $1 (needs version $version)"
  fi
}

cd "$top"
for file in examples/provider/*.tf examples/resources/*/resource*.tf examples/data-sources/*/*.tf; do
  check "$file" "$file"
done
for file in examples/resources/*/import-by-identity.tf; do
  check_since 1.12 "$file" "$file" "$(dirname "$file")/resource.tf"
done
for file in examples/actions/*/*.tf; do
  if [[ $program == OpenTofu* ]]; then
    echo "skip  $file (OpenTofu has no actions)"
  else
    check_since 1.14 "$file" "$file" "examples/resources/$(basename "$(dirname "$file")")/resource.tf"
  fi
done
check examples/four-machine-lab examples/four-machine-lab/*.tf examples/four-machine-lab/*.service
check examples/host-and-lab examples/host-and-lab/*
check examples/modules/scenario examples/modules/scenario/*.tf
cp -R examples/modules "$work"
check examples/fan-out examples/fan-out/*.tf
for dir in examples/acceptance-loop examples/acceptance-loop/{dirty,check}; do
  check "$dir" "$dir"/*.tf
done

awk -v dir="$work" '/^```hcl$/ { n++; inside = 1; next } /^```$/ { inside = 0 } inside { print > (dir "/readme-" n ".tf") }' README.md
for file in "$work"/readme-*.tf; do
  check "README.md, $(basename "$file" .tf)" "$file"
done

"$terraform" fmt -check -diff -recursive examples || failed=$((failed + 1))

echo "$checked examples checked, $failed failed"
((failed == 0))
