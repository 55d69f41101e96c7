variable "count" {
  default = 9
}

job "big" {
  datacenters = ["dc1", "dc2"]
  priority    = 80
  constraint {
    attribute = "${meta.rack}"
    operator  = "!="
    value     = "r2"
  }
  group "big" {
    count = var.count
    task "t" {
      driver = "docker"
      config {
        image = "big:1"
      }
      resources {
        cpu    = 2500
        memory = 3000
      }
    }
  }
}
