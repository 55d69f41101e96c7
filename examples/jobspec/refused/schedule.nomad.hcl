# Tasks that run only at some times of the day are refused.
job "schedule" {
  task "app" {
    driver = "raw_exec"
    schedule {
      cron {
        start    = "0 9 * * 1-5"
        end      = "0 17 * * 1-5"
        timezone = "Europe/Berlin"
      }
    }
    config {
      command = "/bin/true"
    }
  }
}
