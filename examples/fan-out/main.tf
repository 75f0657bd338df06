# One machine is prepared, and eight branches of it do a different job each on what was prepared, at once. fan-out.sh runs
# the jobs and collects the results.

terraform {
  required_version = ">= 1.11"
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}

variable "image" {
  description = "The directory that holds the Debian image: what ../images/debian.sh prints."
  type        = string
}

variable "run" {
  description = "Any text. Another one puts the branches back to where they were before their jobs."
  type        = string
  default     = "first"
}

variable "jobs" {
  description = "What to run in each branch, by its name: a shell command, which has the prepared data on standard input."
  type        = map(string)
  default = {
    fan-bytes    = "wc -c"
    fan-lines    = "wc -l"
    fan-largest  = "sort -n | tail -n 1"
    fan-sum      = "awk '{ sum += $1 } END { printf \"%.0f\\n\", sum }'"
    fan-odd      = "grep -c '[13579]$'"
    fan-md5      = "md5sum"
    fan-sha256   = "sha256sum"
    fan-squeezed = "gzip | wc -c"
  }
}

provider "lab" {}

resource "lab_storage_pool" "fan" {
  name = "fan"
  size = "10GiB"
}

resource "lab_image" "debian" {
  file = {
    metadata = "${var.image}/debian-12.tar.xz"
    rootfs   = "${var.image}/debian-12.squashfs"
  }
}

# This takes time, and is done once.
resource "lab_machine" "base" {
  name   = "fan-base"
  image  = lab_image.debian.fingerprint
  pool   = lab_storage_pool.fan.id
  memory = "256MiB"
  setup  = [{ command = ["sh", "-c", "seq 1000000 > /root/data"] }]
  ready  = { command = ["test", "-s", "/root/data"] }
}

resource "lab_snapshot" "prepared" {
  machine = lab_machine.base.id
  name    = "prepared"
}

module "branches" {
  source = "../modules/scenario"

  snapshot = { id = lab_snapshot.prepared.id }
  run      = var.run
  machines = {
    for name, job in var.jobs : name => {
      files = { "/root/job" = { content = "#!/bin/sh\n{ ${job}; } < /root/data > /root/result\n", mode = "0755" } }
    }
  }
}

output "branches" {
  description = "The names of the branches, known when they can be used."
  value       = keys(module.branches.machines)
}

output "table" {
  description = "How long each branch took, for terraform output -raw table."
  value = join("\n", concat(
    ["branch          branched  launched    usable  snapshot   (ms)"],
    [for name, timings in module.branches.timings.machines :
      format("%-14s%10d%10d%10d%10d", name, timings.branch_ms, timings.launch_ms, timings.usable_ms, module.branches.timings.snapshots[name].snapshot_ms)
    ],
    ["", "Preparing the base took ${lab_machine.base.timings.usable_ms} ms.", ""],
  ))
}
