# Machines from one image, or branches off one snapshot; a clean snapshot of each; and a reset that puts all of them back
# to theirs at once.

terraform {
  required_version = ">= 1.11"
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}

resource "lab_machine" "node" {
  for_each = var.image == null ? {} : var.machines

  name     = each.key
  image    = var.image.fingerprint
  pool     = var.image.pool
  cpus     = var.cpus
  memory   = var.memory
  networks = var.networks
  files    = each.value.files
  setup    = each.value.setup
  ready    = var.ready
}

# What is not given is as it is on the snapshot's machine.
resource "lab_branch" "node" {
  for_each = var.snapshot == null ? {} : var.machines

  name     = each.key
  source   = var.snapshot.id
  cpus     = var.cpus
  memory   = var.memory
  networks = var.networks
  files    = each.value.files
  setup    = each.value.setup
  ready    = var.ready
}

locals {
  machines = merge(lab_machine.node, lab_branch.node)
}

resource "lab_snapshot" "clean" {
  for_each = var.machines

  machine = local.machines[each.key].id
  name    = "clean"
}

resource "lab_reset" "scenario" {
  snapshots = { for name, snapshot in lab_snapshot.clean : name => snapshot.id }
  triggers  = { run = var.run }
}
