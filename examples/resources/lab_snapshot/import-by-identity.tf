import {
  to       = lab_snapshot.clean
  identity = { machine = "db", name = "clean" }
}
