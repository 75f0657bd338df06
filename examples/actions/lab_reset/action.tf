# terraform apply -invoke=action.lab_reset.scenario
action "lab_reset" "scenario" {
  config {
    snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  }
}

# Or before a test that is run by a resource:
resource "terraform_data" "test" {
  lifecycle {
    action_trigger {
      events  = [before_create]
      actions = [action.lab_reset.scenario]
    }
  }
}
