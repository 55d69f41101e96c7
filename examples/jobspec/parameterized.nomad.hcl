# A batch job that is launched by a dispatch, which brings metadata and a payload.
job "parameterized" {
  type = "batch"

  parameterized {
    payload       = "required"
    meta_required = ["customer"]
    meta_optional = ["language"]
  }

  task "print" {
    driver = "raw_exec"
    dispatch_payload {
      file = "order.txt"
    }
    config {
      command = "/bin/cat"
      args    = ["${NOMAD_TASK_DIR}/order.txt"]
    }
    resources {
      cpu    = 10
      memory = 16
    }
  }
}
