scheduler {
  preempt = ["all"]
}
