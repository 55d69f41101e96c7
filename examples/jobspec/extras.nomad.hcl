# Identities, secrets, actions, devices and scaling.
job "extras" {
  group "app" {
    scaling {
      enabled = true
      min     = 1
      max     = 5
      policy {
        cooldown = "1m"
      }
    }

    task "app" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }

      consul {
        cluster = "default"
      }

      identity {
        name        = "upload"
        aud         = ["storage.example.test"]
        file        = true
        filepath    = "secrets/upload.jwt"
        ttl         = "1h"
        change_mode = "noop"
      }

      secret "database" {
        provider = "nomad"
        path     = "nomad/jobs/extras"
        config {
          namespace = "default"
        }
      }

      action "hello" {
        command = "/bin/echo"
        args    = ["Hello"]
      }

      scaling "cpu" {
        max = 500
        policy {
          cooldown = "1m"
        }
      }

      resources {
        cores   = 1
        memory  = 64
        secrets = 1
        device "example/gpu" {
          count = 1
          constraint {
            attribute = device.attr.memory
            operator  = ">="
            value     = "2 GiB"
          }
          affinity {
            attribute = device.model
            value     = "A1"
            weight    = 50
          }
        }
      }
    }
  }

  group "cni" {
    network {
      mode = "cni/example"
      cni {
        args = {
          network = "blue"
        }
      }
    }
    task "app" {
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
