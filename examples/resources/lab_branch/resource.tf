resource "lab_storage_pool" "cow" {
  name = "lab"
}

resource "lab_image" "debian" {
  file = { metadata = "debian-12.tar.xz", rootfs = "debian-12.squashfs" }
}

# Prepared once...
resource "lab_machine" "base" {
  name  = "base"
  image = lab_image.debian.fingerprint
  pool  = lab_storage_pool.cow.id
  setup = [{ command = ["sh", "-c", "seq 1000000 >/srv/data"] }]
}

resource "lab_snapshot" "prepared" {
  machine = lab_machine.base.id
  name    = "prepared"
}

# ...and had eight times, each a machine of its own. What is not declared is as it is on the base.
resource "lab_branch" "worker" {
  count  = 8
  name   = "worker-${count.index}"
  source = lab_snapshot.prepared.id
  memory = "256MiB"
  config = { "environment.WORKER" = tostring(count.index) }
}
