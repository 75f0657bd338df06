# What a test does to the machines: it changes a file, leaves one behind, and starts a process.

variable "machines" {
  type = set(string)
}

variable "round" {
  type = string
}

resource "terraform_data" "dirty" {
  for_each         = var.machines
  triggers_replace = [var.round]

  provisioner "local-exec" {
    command = "lxc exec ${each.key} -- sh -c 'echo spoilt > /root/state; touch /root/left; nohup sleep 1000 >/dev/null 2>&1 &'"
  }
}
