# Variables, locals, functions, for expressions and dynamic blocks. Another set of workers:
#   job run -var 'queues={"mail":4}' language.nomad.hcl
variable "queues" {
  type        = map(number)
  description = "Queues with the number of their workers."
  default     = { mail = 1, print = 2 }

  validation {
    condition     = length(var.queues) > 0
    error_message = "At least one queue is needed."
  }
}

variables {
  greeting = "Hello"
}

locals {
  command = ["/bin/sh", "-c", "echo ${var.greeting} from $QUEUE; exec sleep 3600"]
  total   = length(flatten([for name, n in var.queues : range(n)]))
}

job "language" {
  meta = {
    total  = local.total
    queues = join(",", sort(keys(var.queues)))
  }

  dynamic "group" {
    for_each = var.queues
    iterator = queue
    labels   = ["queue-${queue.key}"]

    content {
      count = queue.value

      task "worker" {
        driver = "raw_exec"
        config {
          command = local.command[0]
          args    = slice(local.command, 1, length(local.command))
        }
        env {
          QUEUE = upper(queue.key)
          NODE  = node.unique.name
        }
        resources {
          cpu    = 10
          memory = 16
        }
      }
    }
  }
}
