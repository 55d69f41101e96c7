package jobspec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadlite/nomadlite/jobspec"
)

// features are what the language has and this version does not do, or not on every node: who uses one is told its name
// by a fault (refused) or a warning.
var features = []struct {
	name             string
	job, group, task string
	refused          bool
	word             string
}{
	{name: "multiregion", job: "multiregion {\n region \"a\" {}\n}", refused: true, word: "multiregion"},
	{name: "bridge network", group: "network {\n mode = \"bridge\"\n}", word: `network mode "bridge"`},
	{name: "cni network", group: "network {\n mode = \"cni/x\"\n}", word: `network mode "cni/x"`},
	{name: "host volume", group: "volume \"v\" {\n type = \"host\"\n source = \"s\"\n}", word: `volume "v"`},
	{name: "csi volume", group: "volume \"v\" {\n type = \"csi\"\n source = \"s\"\n access_mode = \"single-node-writer\"\n" +
		" attachment_mode = \"file-system\"\n}", word: `volume "v"`},
	{name: "volume_mount", group: "volume \"v\" {\n type = \"host\"\n source = \"s\"\n}",
		task: "volume_mount {\n volume = \"v\"\n destination = \"/v\"\n}", word: "volume_mount"},
	{name: "csi plugin", task: "csi_plugin {\n id = \"p\"\n type = \"node\"\n mount_dir = \"/csi\"\n}", word: "csi_plugin"},
	{name: "sidecar", group: "network {\n mode = \"bridge\"\n}\nservice {\n name = \"s\"\n port = \"80\"\n connect {\n  sidecar_service {}\n }\n}",
		word: "connect"},
	{name: "native connect", group: "service {\n name = \"s\"\n task = \"t\"\n connect {\n  native = true\n }\n}", word: "connect"},
	{name: "gateway", group: "network {\n mode = \"bridge\"\n}\nservice {\n name = \"s\"\n connect {\n  gateway {\n   mesh {}\n  }\n }\n}",
		refused: true, word: "gateway"},
	{name: "dns", group: "network {\n dns {\n  servers = [\"192.0.2.1\"]\n }\n}", word: "dns"},
	{name: "hostname", group: "network {\n hostname = \"h\"\n}", word: "hostname"},
	{name: "cni", group: "network {\n cni {\n  args = { a = \"b\" }\n }\n}", word: "cni args"},
	{name: "shared port", group: "network {\n port \"p\" {\n  static = 80\n  ignore_collision = true\n }\n}", word: "ignore_collision"},
	{name: "moved data", group: "ephemeral_disk {\n migrate = true\n}", word: "migrate of ephemeral_disk"},
	{name: "disk", task: "resources {\n disk = 10\n}", word: "disk of resources"},
	{name: "iops", task: "resources {\n iops = 10\n}", word: "iops"},
	{name: "vault_grace", task: "template {\n data = \"x\"\n destination = \"local/x\"\n vault_grace = \"1m\"\n}", word: "vault_grace"},
	{name: "consul provider", group: "service {\n name = \"s\"\n}", word: "Consul"},
	{name: "service identity", task: "service {\n name = \"s\"\n identity {\n  aud = [\"consul.io\"]\n }\n}", refused: true, word: "identity"},
	{name: "group consul", group: "consul {}", word: "consul"},
	{name: "task consul", task: "consul {}", word: "consul"},
	{name: "vault", task: "vault {\n role = \"r\"\n}", refused: true, word: "ault"},
	{name: "device", task: "resources {\n device \"gpu\" {}\n}", word: "device"},
	{name: "numa", task: "resources {\n cores = 1\n numa {\n  affinity = \"require\"\n }\n}", refused: true, word: "numa"},
	{name: "schedule", task: "schedule {\n cron {\n  start = \"0 9 * * *\"\n  end = \"0 17 * * *\"\n }\n}", refused: true, word: "schedule"},
	{name: "secret", task: "secret \"s\" {\n provider = \"nomad\"\n path = \"p\"\n}", word: "secret"},
	{name: "identity in the environment", task: "identity {\n env = true\n}", word: "identity"},
	{name: "identity by name", task: "identity {\n name = \"x\"\n aud = [\"y\"]\n}", word: "identity"},
	{name: "mbits", task: "resources {\n network {\n  mbits = 10\n }\n}", word: "mbits"},
}

// TestNothingIsDroppedWithoutAWord: each feature that is not done yet gives a fault or a warning which names it.
func TestNothingIsDroppedWithoutAWord(t *testing.T) {
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			body := fmt.Sprintf("job \"x\" {\n%s\ngroup \"g\" {\n%s\ntask \"t\" {\ndriver = \"raw_exec\"\nconfig {\n command = \"/bin/true\"\n}\n%s\n}\n}\n}\n",
				f.job, f.group, f.task)
			result, err := jobspec.Parse(jobspec.Config{Body: []byte(body)})
			if err != nil {
				t.Fatal(err)
			}
			job := result.Job
			job.Canonicalize()
			err = job.Validate()
			switch {
			case f.refused && (err == nil || !strings.Contains(err.Error(), f.word)):
				t.Fatalf("got %v, want a fault about %s", err, f.word)
			case f.refused:
				return
			case err != nil:
				t.Fatalf("refused: %v", err)
			}
			for _, w := range append(job.Warnings(), job.Unsupported()...) {
				if strings.Contains(w, f.word) {
					return
				}
			}
			t.Errorf("no warning about %s in %q", f.word, append(job.Warnings(), job.Unsupported()...))
		})
	}
}
