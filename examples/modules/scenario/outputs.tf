output "machines" {
  description = "The machines by name, known when they are usable and have their clean snapshots."
  value       = { for name, machine in local.machines : name => { id = machine.id, ipv4_address = machine.ipv4_address } }
  depends_on  = [lab_snapshot.clean]
}

output "snapshots" {
  description = "The ids of the clean snapshots, by machine."
  value       = { for name, snapshot in lab_snapshot.clean : name => snapshot.id }
}

output "timings" {
  description = "How long each step took, in milliseconds."
  value = {
    machines  = { for name, machine in local.machines : name => machine.timings }
    snapshots = { for name, snapshot in lab_snapshot.clean : name => snapshot.timings }
    reset     = lab_reset.scenario.timings
    resets    = lab_reset.scenario.machines
  }
}
