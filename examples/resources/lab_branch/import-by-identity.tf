import {
  to       = lab_branch.experiment
  identity = { name = "experiment" }
}
