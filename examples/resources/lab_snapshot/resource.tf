variable "image" {
  description = "The fingerprint of an image that the daemon has."
  type        = string
}

resource "lab_storage_pool" "cow" {
  name = "lab"
}

resource "lab_machine" "db" {
  name  = "db"
  image = var.image
  pool  = lab_storage_pool.cow.id
}

resource "lab_snapshot" "clean" {
  machine = lab_machine.db.id
  name    = "clean"
}
