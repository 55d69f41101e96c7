# A described cluster for `nomadlite operator sim examples/sim/racks.hcl`. See docs/scheduling.md.

scheduler {
  algorithm = "binpack"
  preempt   = ["system", "service"]
}

# Expressions may use index, the number of the node in its class.
node "small" {
  count      = 12
  cpu        = 4000 # MHz
  memory     = 8192 # MB
  disk       = 51200
  datacenter = "dc${index % 2 + 1}"
  meta       = { rack = "r${index % 4}" }
}

node "big" {
  count      = 3
  cpu        = 16000
  memory     = 65536
  cores      = 16
  meta       = { rack = "r${index % 4}" }
  attributes = { "cpu.arch" = "arm64" }
  drivers    = ["docker", "exec"]
}

# Jobspecs by path run from the beginning, and so do jobs that are described here.
run = ["api.nomad.hcl"]

job "reports" {
  type        = "batch"
  datacenters = ["dc*"]
  priority    = 30
  group "reports" {
    count = 16
    task "work" {
      driver = "docker"
      config {
        image = "reports:1"
      }
      resources {
        cpu    = 2000
        memory = 2048
      }
    }
  }
}

event "rack r1 burns" {
  lose = ["rack=r1"]
}

event "twice the traffic" {
  scale = { "api" = 24 }
}
