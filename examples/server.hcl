# One of three servers. Start it with: nomadlite agent -config server.hcl
data_dir  = "/var/lib/nomadlite"
bind_addr = "0.0.0.0"

server {
  enabled          = true
  bootstrap_expect = 3

  # The key which all servers share: 32 random bytes, base64.
  # encrypt = "..."

  server_join {
    retry_join = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
  }
}
