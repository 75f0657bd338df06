# Facts only: nothing on the host changes, and a degraded host is reported, not an error.
data "lab_capability" "host" {}

# What is inadequate, why, and what to do about it.
output "host" {
  value = data.lab_capability.host.summary
}

resource "lab_storage_pool" "cow" {
  name = "lab"

  lifecycle {
    precondition {
      condition     = data.lab_capability.host.adequate
      error_message = data.lab_capability.host.summary
    }
  }
}

# A pool that somebody else made, proved by a probe that cleans up after itself, and a container that runs a command.
data "lab_capability" "proved" {
  pool  = "default"
  prove = ["copy_on_write", "containers"]
}
