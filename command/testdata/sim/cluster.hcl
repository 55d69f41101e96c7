scheduler {
  preempt = ["system", "service"]
}

node_pool "gpu" {
  algorithm = "spread"
}

node "small" {
  count      = 6
  cpu        = 4000
  memory     = 4096
  datacenter = "dc${index % 2 + 1}"
  meta       = { rack = "r${index % 3}" }
}

node "gpu" {
  count     = 2
  node_pool = "gpu"
  name      = "gpu-${class}-${index}"
  cpu       = 8000
  memory    = 16384
  cores     = 8
}

job "web" {
  datacenters = ["dc1", "dc2"]
  group "web" {
    count = 6
    task "t" {
      driver = "docker"
      config {
        image = "web:1"
      }
      resources {
        cpu    = 1000
        memory = 512
      }
    }
  }
}

job "train" {
  type        = "batch"
  node_pool   = "gpu"
  priority    = 20
  group "train" {
    count = 4
    task "t" {
      driver = "exec"
      config {
        command = "/bin/train"
      }
      resources {
        cores  = 2
        memory = 4096
      }
    }
  }
}

job "agent" {
  type        = "system"
  datacenters = ["*"]
  priority    = 90
  group "agent" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/agent"
      }
      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
