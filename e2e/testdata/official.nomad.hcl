job "official" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo got USR1' USR1; echo ready; while :; do sleep 600 & wait; done"]
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
