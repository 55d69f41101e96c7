# An example jobspec. A job is a set of groups, a group is a set of tasks which run together on one node.
# Run it with:  nomadlite job run example.nomad.hcl
job "example" {
  # service: runs until it is stopped. batch: runs until it has ended well.
  type = "service"

  # Which datacenters may run it; "*" is all of them.
  datacenters = ["*"]

  # How a new version replaces the old one.
  update {
    max_parallel     = 1
    min_healthy_time = "10s"
    healthy_deadline = "3m"
  }

  group "web" {
    # How many instances of the group run.
    count = 1

    # Ports of the group. An empty block asks for a dynamic port; "static = 8080" asks for that very one.
    network {
      port "http" {}
    }

    # What happens on the same node when a task fails: up to 2 restarts within 30 minutes ...
    restart {
      attempts = 2
      interval = "30m"
      delay    = "15s"
      mode     = "fail"
    }

    # ... and after that, on another node.
    reschedule {
      delay          = "30s"
      delay_function = "exponential"
      max_delay      = "1h"
      unlimited      = true
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo listening on $NOMAD_ADDR_http; exec sleep 3600"]
      }

      # Sent first when the task is stopped; SIGKILL follows after kill_timeout.
      kill_signal  = "SIGINT"
      kill_timeout = "5s"

      # Output is kept in files, rotated by size.
      logs {
        max_files     = 10
        max_file_size = 10
      }

      resources {
        cpu    = 100 # MHz
        memory = 64  # MiB
      }
    }
  }
}
