node "n" {
  count  = 1
  cpu    = 1
  memory = 1
  meta   = { rack = "r${number}" }
}
