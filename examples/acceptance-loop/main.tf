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
  description = "Any text. Another one puts the machines back to their snapshots."
  type        = string
  default     = "first"
}

variable "machines" {
  description = "The machines' names."
  type        = set(string)
  default     = ["loop-a", "loop-b", "loop-c", "loop-d"]
}

provider "lab" {}

resource "lab_storage_pool" "loop" {
  name = "loop"
  size = "10GiB"
}

resource "lab_image" "debian" {
  file = {
    metadata = "${var.image}/debian-12.tar.xz"
    rootfs   = "${var.image}/debian-12.squashfs"
  }
  pools = [lab_storage_pool.loop.id]
}

resource "lab_machine" "node" {
  for_each = var.machines

  name  = each.key
  image = lab_image.debian.fingerprint
  pool  = lab_storage_pool.loop.id
  setup = [{ command = ["sh", "-c", "echo under test > /root/state"] }]
  ready = { systemd = true }
}

resource "lab_snapshot" "clean" {
  for_each = lab_machine.node

  machine = each.value.id
  name    = "clean"
}

resource "lab_reset" "scenario" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = var.run }
}

output "machines" {
  description = "The machines' names, known when they are there."
  value       = [for machine in lab_machine.node : machine.name]
}

output "usable_ms" {
  description = "How long the last reset took until all machines were usable."
  value       = lab_reset.scenario.timings == null ? null : lab_reset.scenario.timings.usable_ms
}
