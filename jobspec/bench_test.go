package jobspec_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nomadlite/nomadlite/jobspec"
)

// groups is a jobspec of n groups such as people write them: a network, a service with a check, a task with a config,
// an environment, a template and resources.
func groups(n int) []byte {
	var b strings.Builder
	b.WriteString("variable \"image\" {\n  type    = string\n  default = \"web:1\"\n}\njob \"large\" {\n  datacenters = [\"dc1\"]\n")
	for i := range n {
		fmt.Fprintf(&b, `  group "group-%d" {
    count = 2
    network {
      port "http" { to = 8080 }
    }
    service {
      name     = "web-%d"
      port     = "http"
      provider = "nomad"
      tags     = ["a", "b-${NOMAD_ALLOC_INDEX}"]
      check {
        type     = "http"
        path     = "/health"
        interval = "10s"
        timeout  = "2s"
      }
    }
    task "web" {
      driver = "docker"
      config {
        image = var.image
        ports = ["http"]
        args  = ["-listen", "${NOMAD_ADDR_http}", "-n", format("%%03d", %d)]
      }
      env {
        LEVEL = upper("info")
      }
      template {
        data        = <<-EOT
          addr = {{ env "NOMAD_ADDR_http" }}
          EOT
        destination = "local/web.conf"
      }
      resources {
        cpu    = 200
        memory = 128
      }
    }
  }
`, i, i, i)
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

func hundredLines(b testing.TB) []byte {
	body, err := os.ReadFile("testdata/hundred-lines.nomad.hcl")
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func parse(b testing.TB, body []byte) {
	if _, err := jobspec.Parse(jobspec.Config{Path: "x.nomad.hcl", Body: body, AllowFS: true}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHundredLines has a goal of 2 ms.
func BenchmarkHundredLines(b *testing.B) {
	body := hundredLines(b)
	for b.Loop() {
		parse(b, body)
	}
}

// BenchmarkTwoHundredGroups has a goal of 100 ms.
func BenchmarkTwoHundredGroups(b *testing.B) {
	body := groups(200)
	for b.Loop() {
		parse(b, body)
	}
}

// TestParsingIsFastEnough holds the two to their goals, times a factor for busy machines and the race detector.
func TestParsingIsFastEnough(t *testing.T) {
	const factor = 20
	for name, c := range map[string]struct {
		body []byte
		goal time.Duration
	}{
		"100 lines":  {hundredLines(t), 2 * time.Millisecond},
		"200 groups": {groups(200), 100 * time.Millisecond},
	} {
		best := time.Hour
		for range 3 {
			begun := time.Now()
			parse(t, c.body)
			best = min(best, time.Since(begun))
		}
		if best > factor*c.goal {
			t.Errorf("%s took %s, the goal is %s", name, best, c.goal)
		}
	}
}
