terraform import lab_machine.web web
