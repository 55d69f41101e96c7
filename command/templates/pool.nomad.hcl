node_pool "example" {

  description = "Example node pool"

  # Metadata of the pool, for people and programs that read it.
  meta {
    environment = "prod"
    owner       = "sre"
  }

  # How the scheduler chooses among the nodes of this pool, where that differs from
  # the cluster's own configuration.
  # scheduler_config {
  #   scheduler_algorithm             = "spread"
  #   memory_oversubscription_enabled = true
  # }
}
