# Gateways of a service mesh. Their proxies would be the only tasks of these groups and cannot be run yet: refused.
job "gateways" {
  group "ingress" {
    network {
      mode = "bridge"
      port "inbound" {
        static = 18443
        to     = 8443
      }
    }
    service {
      name = "ingress"
      port = "8443"
      connect {
        gateway {
          proxy {
            connect_timeout = "5s"
            envoy_gateway_bind_addresses "http" {
              address = "0.0.0.0"
              port    = 8443
            }
            config {
              protocol = "http"
            }
          }
          ingress {
            tls {
              enabled         = true
              tls_min_version = "TLSv1_2"
              sds {
                cluster_name  = "certificates"
                cert_resource = "example"
              }
            }
            listener {
              port     = 8443
              protocol = "http"
              service {
                name  = "api"
                hosts = ["api.example.test"]
                tls {
                  sds {
                    cluster_name  = "certificates"
                    cert_resource = "api"
                  }
                }
                request_headers {
                  add {
                    x-from = "ingress"
                  }
                  set {
                    x-kind = "request"
                  }
                  remove = ["x-debug"]
                }
                response_headers {
                  remove = ["server"]
                }
              }
            }
          }
        }
      }
    }
  }

  group "terminating" {
    network {
      mode = "bridge"
    }
    service {
      name = "terminating"
      port = "9443"
      connect {
        gateway {
          terminating {
            service {
              name    = "legacy"
              ca_file = "/etc/certificates/ca.pem"
              sni     = "legacy.example.test"
            }
          }
        }
      }
    }
  }

  group "mesh" {
    network {
      mode = "bridge"
      port "mesh" {}
    }
    service {
      name = "mesh"
      port = "mesh"
      connect {
        gateway {
          mesh {}
        }
      }
    }
  }
}
