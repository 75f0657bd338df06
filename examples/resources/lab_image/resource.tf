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
