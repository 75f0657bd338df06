terraform {
  required_version = ">= 1.11"
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}

provider "lab" {}

# What this host can do. Reading it changes nothing.
data "lab_capability" "host" {}

resource "lab_storage_pool" "cow" {
  name = var.name
  size = "10GiB"

  lifecycle {
    precondition {
      condition     = data.lab_capability.host.adequate
      error_message = data.lab_capability.host.summary
    }
  }
}

resource "lab_network" "net" {
  name         = "${var.name}net"
  ipv4_address = var.ipv4_address
}

resource "lab_image" "debian" {
  file = {
    metadata = "${var.image}/debian-12.tar.xz"
    rootfs   = "${var.image}/debian-12.squashfs"
  }
  pools = [lab_storage_pool.cow.id] # unpacked ahead of use
}

# Each machine serves a page with its name, which the others find at http://node-a/ and so on.
resource "lab_machine" "node" {
  for_each = var.machines

  name     = "node-${each.key}"
  image    = lab_image.debian.fingerprint
  pool     = lab_storage_pool.cow.id
  cpus     = 1
  memory   = "512MiB"
  networks = { eth0 = { network = lab_network.net.id } }

  files = {
    "/srv/index.html"                   = { content = "node-${each.key}\n" }
    "/etc/systemd/system/hello.service" = { content = file("${path.module}/hello.service") }
  }
  setup = [{ command = ["systemctl", "enable", "--now", "hello.service"] }]
  ready = {
    command = ["systemctl", "is-active", "--quiet", "hello.service"]
    address = "ipv4"
  }
}

resource "lab_snapshot" "clean" {
  for_each = lab_machine.node

  machine = each.value.id
  name    = "clean"
}

# Change the trigger, and all four machines go back to their snapshots.
resource "lab_reset" "scenario" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = var.run }
}
