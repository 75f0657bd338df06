terraform import lab_storage_pool.cow lab
