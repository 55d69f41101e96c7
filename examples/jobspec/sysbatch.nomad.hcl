# Once on each node, until it has ended there.
job "sysbatch" {
  type = "sysbatch"

  task "uname" {
    driver = "raw_exec"
    config {
      command = "/bin/uname"
      args    = ["-a"]
    }
    resources {
      cpu    = 10
      memory = 16
    }
  }
}
