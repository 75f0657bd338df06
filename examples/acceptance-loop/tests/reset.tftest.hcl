# Each round spoils the machines, resets them, and checks that they are what they were. Run it with `terraform test`.

run "stand_up" {
  assert {
    condition     = output.usable_ms == null
    error_message = "Standing the scenario up must rewind nothing."
  }
}

run "spoil_1" {
  module {
    source = "./dirty"
  }
  variables {
    machines = run.stand_up.machines
    round    = "1"
  }
}

run "reset_1" {
  variables {
    run = "1"
  }
  assert {
    condition     = output.usable_ms > 0
    error_message = "A changed trigger must reset the scenario."
  }
}

run "check_1" {
  module {
    source = "./check"
  }
  variables {
    machines = run.stand_up.machines
    round    = "1"
  }
}

run "spoil_2" {
  module {
    source = "./dirty"
  }
  variables {
    machines = run.stand_up.machines
    round    = "2"
  }
}

run "reset_2" {
  variables {
    run = "2"
  }
  assert {
    condition     = output.usable_ms > 0
    error_message = "A changed trigger must reset the scenario."
  }
}

run "check_2" {
  module {
    source = "./check"
  }
  variables {
    machines = run.stand_up.machines
    round    = "2"
  }
}

run "spoil_3" {
  module {
    source = "./dirty"
  }
  variables {
    machines = run.stand_up.machines
    round    = "3"
  }
}

run "reset_3" {
  variables {
    run = "3"
  }
  assert {
    condition     = output.usable_ms > 0
    error_message = "A changed trigger must reset the scenario."
  }
}

run "check_3" {
  module {
    source = "./check"
  }
  variables {
    machines = run.stand_up.machines
    round    = "3"
  }
}
