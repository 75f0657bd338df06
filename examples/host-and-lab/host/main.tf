# Makes this machine a host for labs, and says where its daemon is.

variable "command" {
  description = "What makes the host capable, for a shell. It runs once, as the user who applies."
  type        = string
  default     = "sudo terraform-provider-lab bootstrap"
  nullable    = false
}

variable "address" {
  description = "Where the daemon is then."
  type        = string
  default     = "unix:///var/lib/lxd/unix.socket"
  nullable    = false
}

resource "terraform_data" "host" {
  input = var.address

  provisioner "local-exec" {
    command = var.command
  }
}

# Not known before the host is made: until then nothing of the lab can be judged.
output "address" {
  value = terraform_data.host.output
}
