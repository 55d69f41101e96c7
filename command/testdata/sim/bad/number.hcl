node "n" {
  count = "many"
  cpu = 1
  memory = 1
}
