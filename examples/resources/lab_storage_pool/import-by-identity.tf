import {
  to       = lab_storage_pool.cow
  identity = { name = "lab" }
}
