package client

import (
	"os"

	"github.com/nomadlite/nomadlite/client/artifact"
)

// newArtifacts is what the artifact hooks of all tasks share.
func (c *Client) newArtifacts() *artifact.Config {
	settings := artifact.DefaultSettings()
	if c.cfg.Artifacts != nil {
		settings = *c.cfg.Artifacts
	}
	cfg := &artifact.Config{Settings: settings, Logger: c.log.Named("artifact")}
	for _, name := range settings.Environment {
		if value, ok := os.LookupEnv(name); ok {
			cfg.Process.Env = append(cfg.Process.Env, name+"="+value)
		}
	}
	return cfg
}
