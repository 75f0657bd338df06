import {
  to       = lab_network.net
  identity = { name = "labnet" }
}
