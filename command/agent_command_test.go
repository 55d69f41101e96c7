package command

import (
	"flag"
	"io"
	"testing"
)

func TestAgentFlagsRefuseWhatTheyCannotRead(t *testing.T) {
	parse := func(args ...string) (*agentFlags, error) {
		f := &agentFlags{}
		fs := flag.NewFlagSet("agent", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		f.declare(fs)
		return f, fs.Parse(args)
	}
	for _, bad := range []string{"-bootstrap-expect=3x", "-bootstrap-expect=", "-server=yes", "-client=2", "-log-json=no"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	f, err := parse("-server", "-client=false", "-bootstrap-expect=3")
	if err != nil {
		t.Fatal(err)
	}
	if f.server.Enabled == nil || !*f.server.Enabled || f.client.Enabled == nil || *f.client.Enabled ||
		f.server.BootstrapExpect == nil || *f.server.BootstrapExpect != 3 || f.server.RaftProtocol != nil {
		t.Errorf("read server %v, client %v, bootstrap-expect %v", f.server.Enabled, f.client.Enabled, f.server.BootstrapExpect)
	}
}
