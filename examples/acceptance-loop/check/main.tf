# What must hold after a reset: the file is as it was, nothing was left behind, and the process is gone.

variable "machines" {
  type = set(string)
}

variable "round" {
  type = string
}

resource "terraform_data" "check" {
  for_each         = var.machines
  triggers_replace = [var.round]

  provisioner "local-exec" {
    command = "lxc exec ${each.key} -- sh -c 'grep -qx \"under test\" /root/state && test ! -e /root/left && ! grep -qs sleep /proc/[0-9]*/comm'"
  }
}
