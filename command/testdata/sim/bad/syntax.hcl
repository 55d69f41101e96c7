node "n" {
  count = 
}
