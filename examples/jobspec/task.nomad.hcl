# What may stand at the level of a task, and tasks that run before, beside and after another.
job "task" {
  type = "batch"

  group "report" {
    task "prepare" {
      driver = "raw_exec"
      lifecycle {
        hook    = "prestart"
        sidecar = false
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "date > ${NOMAD_ALLOC_DIR}/data/begun"]
      }
      resources {
        cpu    = 10
        memory = 16
      }
    }

    task "make" {
      driver         = "raw_exec"
      leader         = true
      kill_timeout   = "10s"
      kill_signal    = "SIGTERM"
      shutdown_delay = "0s"

      config {
        command = "/bin/sh"
        args    = ["-c", "cat ${NOMAD_ALLOC_DIR}/data/begun; echo $GREETING"]
      }

      env {
        GREETING = "Hello from ${NOMAD_TASK_NAME} of ${NOMAD_JOB_NAME}"
      }

      meta {
        kind = "report"
      }

      logs {
        max_files     = 3
        max_file_size = 5
        disabled      = false
      }

      restart {
        attempts = 1
        mode     = "fail"
      }

      resources {
        cpu        = 50
        memory     = 32
        memory_max = 64
      }
    }

    task "clean" {
      driver = "raw_exec"
      lifecycle {
        hook = "poststop"
      }
      config {
        command = "/bin/rm"
        args    = ["-f", "${NOMAD_ALLOC_DIR}/data/begun"]
      }
      resources {
        cpu    = 10
        memory = 16
      }
    }
  }
}
