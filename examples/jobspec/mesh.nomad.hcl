# A service with a sidecar proxy in a service mesh.
job "mesh" {
  group "api" {
    network {
      mode     = "bridge"
      hostname = "api"
      dns {
        servers  = ["192.0.2.53"]
        searches = ["example.test"]
        options  = ["ndots:2"]
      }
      port "metrics" {
        to = 9102
      }
    }

    consul {
      namespace = "default"
    }

    service {
      name = "api"
      port = "9001"

      meta {
        version = "1"
      }
      canary_meta {
        version = "2"
      }
      tagged_addresses {
        lan = "192.0.2.10"
      }
      weights {
        passing = 3
        warning = 1
      }

      connect {
        sidecar_service {
          tags                      = ["proxy"]
          disable_default_tcp_check = true
          meta {
            kind = "proxy"
          }
          proxy {
            local_service_port = 9001
            config {
              protocol = "http"
            }
            upstreams {
              destination_name = "count"
              local_bind_port  = 8080
              mesh_gateway {
                mode = "local"
              }
              config {
                connect_timeout_ms = 2000
              }
            }
            expose {
              path {
                path            = "/metrics"
                protocol        = "http"
                local_path_port = 9102
                listener_port   = "metrics"
              }
            }
          }
        }
        sidecar_task {
          shutdown_delay = "5s"
          kill_timeout   = "10s"
          env {
            LEVEL = "info"
          }
          meta {
            kind = "proxy"
          }
          logs {
            max_files     = 2
            max_file_size = 5
          }
          resources {
            cpu    = 50
            memory = 64
          }
        }
      }
    }

    task "api" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }

  group "transparent" {
    network {
      mode = "bridge"
    }
    service {
      name = "transparent"
      port = "9002"
      connect {
        sidecar_service {
          proxy {
            transparent_proxy {
              outbound_port          = 15001
              exclude_inbound_ports  = ["8080"]
              exclude_outbound_ports = [443]
              exclude_outbound_cidrs = ["192.0.2.0/24"]
              exclude_uids           = ["1000"]
              no_dns                 = false
              uid                    = "101"
            }
          }
        }
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
