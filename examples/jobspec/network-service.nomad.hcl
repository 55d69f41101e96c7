# A dynamic and a static port, and a service in the registry of the cluster. Look at it with: service info web
job "network-service" {
  group "web" {
    network {
      mode = "host"
      port "http" {}
      port "admin" {
        static = 18080
      }
    }

    service {
      name         = "web"
      provider     = "nomad"
      port         = "http"
      tags         = ["v1", "alloc-${NOMAD_ALLOC_INDEX}"]
      canary_tags  = ["canary"]
      address_mode = "auto"

      check {
        name     = "alive"
        type     = "http"
        path     = "/"
        method   = "GET"
        interval = "10s"
        timeout  = "2s"
        header {
          Accept = ["text/plain"]
        }
        check_restart {
          limit           = 3
          grace           = "30s"
          ignore_warnings = false
        }
      }
    }

    task "server" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo would listen on $NOMAD_ADDR_http; exec sleep 3600"]
      }

      service {
        name     = "web-admin"
        provider = "nomad"
        port     = "admin"
      }

      resources {
        cpu    = 20
        memory = 32
      }
    }
  }
}
