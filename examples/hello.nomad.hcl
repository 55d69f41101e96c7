# A web server run by raw_exec on a dynamic port. `make demo` runs it from start to stop.

variable "hello" {
  type        = string
  description = "Path of the hello program, built by `make build`."
}

variable "greeting" {
  type    = string
  default = "Hello"
}

job "hello" {
  type = "service"

  group "web" {
    count          = 1
    shutdown_delay = "20s"

    network {
      port "http" {}
    }

    task "server" {
      driver = "raw_exec"

      config {
        command = var.hello
      }

      env {
        GREETING = var.greeting
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
