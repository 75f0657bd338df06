# The host and the lab on it, in one apply. While the host is not there, the provider's address is not known: the plan
# then judges nothing, and the apply judges everything before it touches anything.

terraform {
  required_version = ">= 1.11"
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}

variable "host" {
  description = "How the host is made, and where its daemon is then."
  type = object({
    command = optional(string)
    address = optional(string)
  })
  default  = {}
  nullable = false
}

variable "name" {
  description = "The name of the storage pool."
  type        = string
  default     = "lab"
}

module "host" {
  source  = "./host"
  command = var.host.command
  address = var.host.address
}

provider "lab" {
  address = module.host.address
}

# Read when the host is there: at apply the first time, at every plan from then on.
data "lab_capability" "host" {
  depends_on = [module.host]
}

resource "lab_storage_pool" "cow" {
  name = var.name
  size = "5GiB"

  lifecycle {
    precondition {
      condition     = data.lab_capability.host.adequate
      error_message = data.lab_capability.host.summary
    }
  }
}

output "host" {
  description = "What the host can do."
  value       = data.lab_capability.host.summary
}
