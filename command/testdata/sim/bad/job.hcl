node "n" {
  count  = 1
  cpu    = 1
  memory = 1
}

  job "x" {
    group "g" {
      cuont = 1
    }
  }
