output "addresses" {
  description = "Where each machine is."
  value       = { for machine in lab_machine.node : machine.name => machine.ipv4_address }
}

output "timings" {
  description = "How long each step took, in milliseconds."
  value = {
    pool      = lab_storage_pool.cow.timings
    image     = lab_image.debian.timings
    machines  = { for key, machine in lab_machine.node : key => machine.timings }
    snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.timings }
    reset     = lab_reset.scenario.timings
    resets    = lab_reset.scenario.machines
  }
}

locals {
  # One line for each machine; a step that has not been taken yet has a dash.
  steps = [
    for key, machine in lab_machine.node : [
      machine.name,
      machine.timings.create_ms,
      machine.timings.launch_ms,
      machine.timings.usable_ms,
      machine.timings.setup_ms,
      lab_snapshot.clean[key].timings.snapshot_ms,
      try(lab_reset.scenario.machines[key].restore_ms, null),
      try(lab_reset.scenario.machines[key].usable_ms, null),
    ]
  ]
}

output "table" {
  description = "The machines' timings as a table, for terraform output -raw table."
  value = join("\n", concat(
    [
      "                 new machine                           reset",
      "machine     created  launched    usable     setup  snapshot  restored    usable   (ms)",
    ],
    [for row in local.steps : format("%-9s%10s%10s%10s%10s%10s%10s%10s", [for cell in row : cell == null ? "-" : tostring(cell)]...)],
    [
      "",
      format("Pool created in %s ms and proved in %s ms; image obtained in %s ms.", [
        for ms in [lab_storage_pool.cow.timings.create_ms, lab_storage_pool.cow.timings.verify_ms, lab_image.debian.timings.obtain_ms] :
        ms == null ? "-" : tostring(ms)
      ]...),
      try("All machines restored after ${lab_reset.scenario.timings.restore_ms} ms, and usable after ${lab_reset.scenario.timings.usable_ms} ms.", "Not reset yet."),
      "",
    ],
  ))
}
