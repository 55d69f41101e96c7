# What may stand at the level of a group: how its allocations are restarted, kept through lost nodes, and stopped.
job "group" {
  group "workers" {
    count          = 2
    shutdown_delay = "1s"

    constraint {
      operator = "distinct_hosts"
      value    = "false"
    }

    meta {
      queue = "mail"
    }

    restart {
      attempts         = 3
      interval         = "5m"
      delay            = "5s"
      mode             = "fail"
      render_templates = false
    }

    reschedule {
      attempts       = 3
      interval       = "1h"
      delay          = "30s"
      delay_function = "constant"
      unlimited      = false
    }

    disconnect {
      lost_after = "10m"
      replace    = true
      reconcile  = "best_score"
    }

    ephemeral_disk {
      size    = 300
      sticky  = true
      migrate = false
    }

    task "worker" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo working on $NOMAD_META_QUEUE; exec sleep 3600"]
      }
      resources {
        cpu    = 10
        memory = 16
      }
    }
  }
}
