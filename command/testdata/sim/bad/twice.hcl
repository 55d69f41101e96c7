node "n" {
  count  = 2
  name   = "the one"
  cpu    = 1
  memory = 1
}
