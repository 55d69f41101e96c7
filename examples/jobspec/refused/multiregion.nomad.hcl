# Deployments over several regions are refused.
job "multiregion" {
  multiregion {
    strategy {
      max_parallel = 1
      on_failure   = "fail_all"
    }
    region "west" {
      count       = 2
      datacenters = ["west-1"]
      node_pool   = "default"
      meta {
        where = "west"
      }
    }
  }
  task "app" {
    driver = "raw_exec"
    config {
      command = "/bin/true"
    }
  }
}
