# two faults, one is told
node "n" {
  count  = 1
  cpu    = -1
  memory = 1
}
