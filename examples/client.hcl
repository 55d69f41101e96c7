# A machine that runs tasks. Start it with: nomadlite agent -config client.hcl
data_dir  = "/var/lib/nomadlite"
bind_addr = "0.0.0.0"

client {
  enabled = true
  servers = ["10.0.0.1:4647", "10.0.0.2:4647", "10.0.0.3:4647"]
}

# raw_exec runs programs without isolation; it must be asked for.
plugin "raw_exec" {
  config {
    enabled = true
  }
}
