# What may stand at the level of the job. The task needs nothing but /bin/sleep.
job "job" {
  name        = "job"
  region      = "global"
  namespace   = "default"
  node_pool   = "default"
  datacenters = ["*"]
  type        = "service"
  priority    = 60

  meta {
    owner = "team-a"
  }

  ui {
    description = "Shows what a job can say."
    link {
      label = "Handbook"
      url   = "https://example.test/handbook"
    }
  }

  constraint {
    attribute = attr.kernel.name
    value     = "linux"
  }

  affinity {
    attribute = node.datacenter
    value     = "dc1"
    weight    = 50
  }

  spread {
    attribute = node.datacenter
    weight    = 100
    target "dc1" {
      percent = 70
    }
    target "dc2" {
      percent = 30
    }
  }

  update {
    max_parallel      = 1
    health_check      = "task_states"
    min_healthy_time  = "5s"
    healthy_deadline  = "2m"
    progress_deadline = "5m"
    auto_revert       = true
    canary            = 1
    auto_promote      = true
  }

  reschedule {
    delay          = "10s"
    delay_function = "exponential"
    max_delay      = "10m"
    unlimited      = true
  }

  migrate {
    max_parallel     = 1
    health_check     = "task_states"
    min_healthy_time = "5s"
    healthy_deadline = "2m"
  }

  group "sleepers" {
    count = 3
    task "sleep" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
      resources {
        cpu    = 10
        memory = 16
      }
    }
  }
}
