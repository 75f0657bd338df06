resource "lab_storage_pool" "cow" {
  name = "lab"
}

# From the two files that examples/images/debian.sh builds. It is unpacked on the pool at once, so that not even the
# first machine waits for that.
resource "lab_image" "debian" {
  file = {
    metadata = "debian-12.tar.xz"
    rootfs   = "debian-12.squashfs"
  }
  aliases = ["debian-lab"]
  pools   = [lab_storage_pool.cow.id]
}

# From an image server. Where the alias points is looked up once; with follow = true, at every plan.
resource "lab_image" "ubuntu" {
  remote = {
    server = "https://cloud-images.ubuntu.com/releases"
    alias  = "24.04"
  }
}

# From another daemon, on which the image is public.
variable "certificate" {
  description = "The other daemon's certificate, as `lxc info` shows it there."
  type        = string
  default     = null
}

resource "lab_image" "shared" {
  remote = {
    server      = "https://lxd.example.com:8443"
    protocol    = "lxd"
    fingerprint = "06b86454720d36b20f94e31c6812e05ec51c1b568cf3a8abd273769d213394bb"
    certificate = var.certificate
  }
}

# Made of a machine that was prepared once. With build = false the machine goes and the image stays.
variable "build" {
  type    = bool
  default = true
}

resource "lab_machine" "golden" {
  count = var.build ? 1 : 0

  name  = "golden"
  image = lab_image.debian.fingerprint
  pool  = lab_storage_pool.cow.id
  setup = [{ command = ["sh", "-c", "apt-get update && apt-get install -y postgresql"] }]
}

resource "lab_image" "golden" {
  publish = {
    source = one(lab_machine.golden[*].id)
    stop   = true # it runs, and is stopped for a moment
  }
  public     = true # for other daemons to fetch
  properties = { description = "Debian with PostgreSQL" }
}
