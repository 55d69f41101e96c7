job "example-mesh" {
  group "api" {
    network {
      mode = "bridge"
    }

    service {
      name = "api"
      port = "9001"

      connect {
        sidecar_service {}
      }
    }

    task "server" {
      driver = "docker"

      config {
        image = "busybox:1"
        args  = ["httpd", "-f", "-p", "9001", "-h", "/local"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }

  group "dashboard" {
    network {
      mode = "bridge"

      port "http" {
        to = 9002
      }
    }

    service {
      name = "dashboard"
      port = "http"

      connect {
        sidecar_service {
          proxy {
            upstreams {
              destination_name = "api"
              local_bind_port  = 9001
            }
          }
        }
      }
    }

    task "server" {
      driver = "docker"

      env {
        API_URL = "http://${NOMAD_UPSTREAM_ADDR_api}"
      }

      config {
        image = "busybox:1"
        args  = ["httpd", "-f", "-p", "9002", "-h", "/local"]
        ports = ["http"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
