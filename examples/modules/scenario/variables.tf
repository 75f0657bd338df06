variable "machines" {
  description = "The machines, by their names, each with the files that it gets and the commands that prepare it."
  type = map(object({
    files = optional(map(object({ content = string, mode = optional(string) })))
    setup = optional(list(object({ command = list(string) })))
  }))
}

variable "image" {
  description = "What to make machines from: an image's fingerprint, and the pool to put them on. Either this or a snapshot."
  type        = object({ fingerprint = string, pool = string })
  default     = null

  validation {
    condition     = (var.image == null) != (var.snapshot == null)
    error_message = "Give either an image or a snapshot."
  }
}

# An object, so that it is known that there is a snapshot before it is known which.
variable "snapshot" {
  description = "What to branch off: the id of a snapshot. Either this or an image."
  type        = object({ id = string })
  default     = null
}

variable "run" {
  description = "Any text. Another one puts the machines back to their clean snapshots."
  type        = string
  default     = "first"
}

variable "cpus" {
  description = "How many processors each machine may use. Default: no limit, or as the snapshot's machine."
  type        = number
  default     = null
}

variable "memory" {
  description = "How much memory each machine may use, such as 512MiB. Default: no limit, or as the snapshot's machine."
  type        = string
  default     = null
}

variable "networks" {
  description = "The machines' network interfaces, by name. Default: none, or as the snapshot's machine."
  type        = map(object({ network = string }))
  default     = null
}

variable "ready" {
  description = "When a machine counts as usable. Default: when a command runs on it, or as the snapshot's machine."
  type = object({
    command    = optional(list(string))
    systemd    = optional(bool)
    cloud_init = optional(bool)
    address    = optional(string)
    tcp_port   = optional(number)
  })
  default = null
}
