# Files that a task gets before it starts: downloads and rendered templates.
job "files" {
  group "web" {
    task "server" {
      driver = "raw_exec"

      artifact {
        source      = "https://example.test/site.tar.gz"
        destination = "local/site"
        mode        = "dir"
        chown       = false
        options {
          checksum = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }
        headers {
          User-Agent = "example"
        }
      }

      template {
        destination     = "local/server.conf"
        perms           = "0640"
        change_mode     = "script"
        splay           = "5s"
        left_delimiter  = "[["
        right_delimiter = "]]"
        data            = <<-EOT
          name = "[[ env "NOMAD_JOB_NAME" ]]"
          EOT
        change_script {
          command       = "/bin/sh"
          args          = ["-c", "kill -HUP 1"]
          timeout       = "10s"
          fail_on_error = false
        }
        wait {
          min = "5s"
          max = "30s"
        }
      }

      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }
}
