# An example of two services in a service mesh: "dashboard" reaches "api" through the proxies beside them, on its own
# address 127.0.0.1:9001. The nodes need Consul and bridge networks.
job "example-mesh" {
  # The service that is asked.
  group "api" {
    # Each group has a network of its own, in which its tasks and its proxy meet.
    network {
      mode = "bridge"
    }

    service {
      name = "api"
      # The port inside that network. Nothing but the proxy listens outside.
      port = "9001"

      connect {
        # A proxy runs beside the tasks of the group; an empty block takes all defaults.
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

  # The service that asks, and that is reached from outside.
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
            # What is reached through the proxy, and on which port of the own network.
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

      # The proxy tells the address of each upstream.
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
