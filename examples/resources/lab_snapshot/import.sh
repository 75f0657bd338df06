terraform import lab_snapshot.clean db/clean
