# A token for the registration of a service, which nothing makes yet: refused.
job "service-identity" {
  group "api" {
    network {
      port "http" {}
    }
    service {
      name = "api"
      port = "http"
      identity {
        aud = ["consul.io"]
        ttl = "1h"
      }
    }
    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }
}
