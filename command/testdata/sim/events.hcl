node "n" {
  count  = 4
  cpu    = 1000
  memory = 1000
  meta   = { rack = "r${index % 2}" }
}

event "a job comes" {
  job "canary" {
    group "g" {
      count = 4
      update {
        canary = 1
      }
      task "t" {
        driver = "docker"
        env    = { VERSION = "1" }
        config {
          image = "x"
        }
        resources {
          cpu    = 400
          memory = 100
        }
      }
    }
  }
}

event "half of it goes, and comes back" {
  drain     = ["rack=r0"]
  add_nodes = { n = 1 }
}

event "a launcher and a new version" {
  job "canary" {
    group "g" {
      count = 4
      update {
        canary = 1
      }
      task "t" {
        driver = "docker"
        env    = { VERSION = "2" }
        config {
          image = "x"
        }
        resources {
          cpu    = 400
          memory = 100
        }
      }
    }
  }
  job "cron" {
    type = "batch"
    periodic {
      crons = ["@daily"]
    }
    group "g" {
      task "t" {
        driver = "docker"
        config {
          image = "x"
        }
      }
    }
  }
}
