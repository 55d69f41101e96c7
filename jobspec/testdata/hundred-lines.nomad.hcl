variable "datacenters" {
  type    = list(string)
  default = ["dc1", "dc2"]
}

variable "image_tag" {
  type        = string
  default     = "1.25"
  description = "Tag of the web server's image."
}

locals {
  image = "registry.example.test/web:${var.image_tag}"
  tags  = ["web", "public"]
}

job "shop" {
  datacenters = var.datacenters
  type        = "service"
  priority    = 60

  constraint {
    attribute = attr.kernel.name
    value     = "linux"
  }

  update {
    max_parallel     = 1
    canary           = 1
    min_healthy_time = "10s"
    healthy_deadline = "3m"
    auto_revert      = true
    auto_promote     = true
  }

  group "web" {
    count = 3

    network {
      port "http" {
        to = 8080
      }
    }

    restart {
      attempts = 3
      interval = "5m"
      delay    = "15s"
      mode     = "delay"
    }

    service {
      name     = "shop-web"
      port     = "http"
      provider = "nomad"
      tags     = concat(local.tags, ["alloc-${NOMAD_ALLOC_INDEX}"])

      check {
        type     = "http"
        path     = "/health"
        interval = "10s"
        timeout  = "2s"
      }
    }

    task "server" {
      driver = "docker"

      config {
        image = local.image
        ports = ["http"]
        args  = ["--listen", "${NOMAD_ADDR_http}", "--data", "${NOMAD_ALLOC_DIR}/data"]
      }

      env {
        LOG_LEVEL = "info"
        REGION    = "${node.region}"
      }

      template {
        data        = <<-EOT
          server {
            name = "{{ env "NOMAD_JOB_NAME" }}"
          }
          EOT
        destination = "local/server.conf"
        change_mode = "restart"
      }

      resources {
        cpu    = 500
        memory = 256
      }
    }

    task "sweeper" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }
}
