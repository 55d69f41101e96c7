# One allocation on each node, node after node when the job changes.
job "system" {
  type        = "system"
  datacenters = ["*"]

  update {
    max_parallel = 1
    stagger      = "10s"
  }

  group "agent" {
    task "agent" {
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
