# Vault is not enabled, so that a task cannot ask it for a token.
job "vault" {
  task "app" {
    driver = "raw_exec"
    vault {
      role        = "app"
      cluster     = "default"
      env         = true
      change_mode = "restart"
    }
    config {
      command = "/bin/true"
    }
  }
}
