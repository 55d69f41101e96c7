# A batch job that is launched by the clock.
job "periodic" {
  type = "batch"

  periodic {
    crons            = ["0 3 * * *", "0 15 * * *"]
    time_zone        = "Europe/Berlin"
    prohibit_overlap = true
    enabled          = true
  }

  task "tidy" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
    resources {
      cpu    = 10
      memory = 16
    }
  }
}
