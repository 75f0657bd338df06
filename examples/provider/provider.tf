terraform {
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}

# The daemon on this host.
provider "lab" {}

# One on another host, in a project of its own.
provider "lab" {
  alias = "remote"

  address            = "https://lxd.example.com:8443"
  project            = "lab"
  client_certificate = file("client.crt")
  client_key         = file("client.key")
  server_fingerprint = "f3a1f24e6c4f2a0b0f5e1d6c7b8a9e0d1c2b3a4f5e6d7c8b9a0f1e2d3c4b5a69"
}
