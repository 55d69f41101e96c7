# Placement by NUMA nodes is refused.
job "numa" {
  task "app" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
    resources {
      cores = 2
      numa {
        affinity = "require"
      }
    }
  }
}
