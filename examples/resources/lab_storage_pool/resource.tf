data "lab_capability" "host" {}

# A btrfs pool in a loop file, on a host that can hold it.
resource "lab_storage_pool" "cow" {
  name = "lab"
  size = "20GiB"

  lifecycle {
    precondition {
      condition     = data.lab_capability.host.adequate
      error_message = data.lab_capability.host.summary
    }
  }
}

# What the probe of the new pool measured.
output "verification" {
  value = lab_storage_pool.cow.verification
}
