variable "image" {
  description = "The directory that holds the Debian image: what ../images/debian.sh prints."
  type        = string
}

variable "run" {
  description = "Any text. Another one puts the machines back to their snapshots."
  type        = string
  default     = "first"
}

variable "machines" {
  description = "The machines, by the last part of their names."
  type        = set(string)
  default     = ["a", "b", "c", "d"]
}

variable "name" {
  description = "The name of the storage pool, and the first part of the network's."
  type        = string
  default     = "lab"
}

variable "ipv4_address" {
  description = "The bridge's address on the machines' network."
  type        = string
  default     = "10.99.0.1/24"
}
