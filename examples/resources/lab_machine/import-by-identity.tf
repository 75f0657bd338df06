import {
  to       = lab_machine.web
  identity = { name = "web" }
}
