package client

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/client/drivers/docker"
	"github.com/nomadlite/nomadlite/client/drivers/mock"
	"github.com/nomadlite/nomadlite/client/drivers/rawexec"
	"github.com/nomadlite/nomadlite/structs"
)

// registry makes the node's drivers as configured. raw_exec and mock_driver have to be enabled; a dev agent has both.
// docker is there unless it is disabled, and the node has it while an engine answers.
func (c *Client) registry() (*driver.Registry, error) {
	var list []driver.Driver
	if c.driverEnabled(rawexec.Name) {
		d, err := c.rawExec()
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	if c.driverEnabled(mock.Name) {
		list = append(list, mock.New(c.log))
	}
	if c.driverEnabled(docker.Name) {
		d, err := c.docker()
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return driver.NewRegistry(list...)
}

func (c *Client) driverEnabled(name string) bool {
	opts := c.cfg.Options
	if allow := csv(opts["driver.allowlist"]); len(allow) > 0 && !slices.Contains(allow, name) {
		return false
	}
	if slices.Contains(csv(opts["driver.denylist"]), name) {
		return false
	}
	if d, ok := c.cfg.Drivers[name]; ok && d.Enabled != nil {
		return *d.Enabled
	}
	switch opts["driver."+name+".enable"] {
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	return c.cfg.DevMode || name == docker.Name
}

func csv(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// rawExec reads plugin "raw_exec"; a key it does not know is an error.
func (c *Client) rawExec() (driver.Driver, error) {
	cfg := rawexec.Config{Supervisor: c.supervisor, CoreMHz: c.coreMHz, Logger: c.log}
	var errs structs.Errors
	for key, value := range c.cfg.Drivers[rawexec.Name].Options {
		var err error
		switch key {
		case "denied_host_uids":
			cfg.DeniedUIDs, err = rawexec.ParseIDRanges(fmt.Sprint(value))
		case "denied_host_gids":
			cfg.DeniedGIDs, err = rawexec.ParseIDRanges(fmt.Sprint(value))
		case "denied_envvars":
			cfg.DeniedEnv, err = stringsOption(value)
		case "no_cgroups":
			cfg.NoCgroups, err = strconv.ParseBool(fmt.Sprint(value))
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			errs.Addf("plugin %q: %w", rawexec.Name, err)
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return rawexec.New(cfg), nil
}

// docker reads plugin "docker".
func (c *Client) docker() (driver.Driver, error) {
	plugin, err := docker.ParsePlugin(c.cfg.Drivers[docker.Name].Options)
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", docker.Name, err)
	}
	state := filepath.Join(c.cfg.StateDir, docker.Name)
	d, err := docker.New(docker.Config{Plugin: plugin, StateDir: state, CoreMHz: c.coreMHz, Logger: c.log})
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", docker.Name, err)
	}
	return d, nil
}

// closeDrivers ends what drivers do for tasks that run on.
func (c *Client) closeDrivers() error {
	if c.drivers == nil {
		return nil
	}
	var faults []error
	for _, name := range c.drivers.Names() {
		d, _ := c.drivers.Get(name)
		if closer, ok := d.(io.Closer); ok {
			faults = append(faults, closer.Close())
		}
	}
	return errors.Join(faults...)
}

// stringsOption reads a list of strings.
func stringsOption(value any) ([]string, error) {
	if list, ok := value.([]string); ok {
		return list, nil
	}
	list, ok := value.([]any)
	var out []string
	for _, item := range list {
		s, isString := item.(string)
		ok = ok && isString
		out = append(out, s)
	}
	if !ok {
		return nil, fmt.Errorf("a list of strings is wanted, not %v", value)
	}
	return out, nil
}

// coreMHz is what one core counts as.
func (c *Client) coreMHz() float64 {
	node := c.Node()
	if node == nil || node.NodeResources == nil || node.NodeResources.Cpu.TotalCpuCores == 0 {
		return 0
	}
	return float64(node.NodeResources.Cpu.CpuShares) / float64(node.NodeResources.Cpu.TotalCpuCores)
}
