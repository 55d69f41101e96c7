# A task that ends. What fails is tried again at once, then elsewhere.
job "batch" {
  type = "batch"

  group "count" {
    max_run_duration = "10m"

    restart {
      attempts = 2
      interval = "1h"
      delay    = "1s"
      mode     = "fail"
    }

    task "count" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "for n in 1 2 3; do echo $n; done"]
      }
      resources {
        cpu    = 10
        memory = 16
      }
    }
  }
}
