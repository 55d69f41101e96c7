# Volumes of nodes and of storage plugins, mounted into tasks; and a task that is such a plugin.
job "volumes" {
  group "database" {
    volume "data" {
      type            = "csi"
      source          = "database"
      read_only       = false
      access_mode     = "single-node-writer"
      attachment_mode = "file-system"
      per_alloc       = true
      mount_options {
        fs_type     = "ext4"
        mount_flags = ["noatime"]
      }
    }

    volume "certificates" {
      type      = "host"
      source    = "certificates"
      read_only = true
    }

    task "database" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
      volume_mount {
        volume           = "data"
        destination      = "/var/lib/database"
        propagation_mode = "private"
      }
      volume_mount {
        volume      = "certificates"
        destination = "/etc/certificates"
        read_only   = true
      }
    }
  }

  group "plugin" {
    task "plugin" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
      csi_plugin {
        id             = "example"
        type           = "node"
        mount_dir      = "/csi"
        health_timeout = "30s"
      }
    }
  }
}
