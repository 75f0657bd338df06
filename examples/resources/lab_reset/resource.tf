variable "image" {
  description = "The fingerprint of an image that the daemon has."
  type        = string
}

variable "run" {
  description = "Another value puts the machines back."
  type        = string
  default     = "1"
}

resource "lab_storage_pool" "cow" {
  name = "lab"
}

resource "lab_machine" "node" {
  for_each = toset(["a", "b"])

  name  = "node-${each.key}"
  image = var.image
  pool  = lab_storage_pool.cow.id
}

resource "lab_snapshot" "clean" {
  for_each = lab_machine.node

  machine = each.value.id
  name    = "clean"
}

# terraform apply -var run=2 puts both machines back, side by side.
resource "lab_reset" "scenario" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = var.run }
}
