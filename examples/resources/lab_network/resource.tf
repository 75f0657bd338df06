# Machines on it find each other by name, and reach beyond the host.
resource "lab_network" "net" {
  name         = "labnet"
  ipv4_address = "10.99.0.1/24"
}

# One without a way out.
resource "lab_network" "closed" {
  name         = "labclosed"
  ipv4_address = "10.99.1.1/24"
  nat          = false
  dns_domain   = "closed.example"
}
