job "api" {
  datacenters = ["dc*"]
  priority    = 60
  spread {
    attribute = "${meta.rack}"
  }
  group "api" {
    count = 12
    network {
      port "http" {}
    }
    task "serve" {
      driver = "exec"
      config {
        command = "/usr/local/bin/api"
      }
      resources {
        cpu    = 1500
        memory = 1024
      }
    }
  }
}
