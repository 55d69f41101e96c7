package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

// optional is a flag that may be left out, which is not the same as empty.
type optional struct{ text *string }

func (o *optional) String() string { return structs.Val(o.text) }

// Set takes the value.
func (o *optional) Set(text string) error { o.text = &text; return nil }

func namespaceApply() *spec {
	return &spec{name: "namespace apply", args: "<name or path>", synopsis: "Create or update a namespace", client: true,
		help: `Stores a namespace: that of a file or of standard input ("-"), or the one of that name with what the flags say. What
flags do not name stays as it is.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var description, quota optional
			var asJSON bool
			fs.Var(&description, "description", "`TEXT` that says what it is for.")
			fs.Var(&quota, "quota", "`NAME` of a quota.")
			fs.BoolVar(&asJSON, "json", false, "Read the namespace as JSON.")
			return func(ctx context.Context, c *call) error {
				ns, err := c.namespaceToApply(ctx, c.args[0], asJSON)
				if err != nil {
					return err
				}
				if description.text != nil {
					ns.Description = *description.text
				}
				if quota.text != nil {
					ns.Quota = *quota.text
				}
				if _, err := c.client.Namespaces().Register(ctx, ns, nil); err != nil {
					return fmt.Errorf("error applying namespace: %s", api.Text(err))
				}
				c.printf("Successfully applied namespace %q!\n", ns.Name)
				return nil
			}
		}}
}

// namespaceToApply reads the file of that name, when there is one, else what is stored of the namespace of that name.
func (c *call) namespaceToApply(ctx context.Context, name string, asJSON bool) (*structs.Namespace, error) {
	if info, err := os.Stat(name); name == "-" || err == nil && !info.IsDir() {
		text, err := c.readInput(name)
		if err != nil {
			return nil, err
		}
		ns, err := readNamespace(text, name, asJSON)
		if err != nil {
			return nil, fmt.Errorf("read namespace: %w", err)
		}
		return ns, nil
	}
	ns, _, err := c.client.Namespaces().Info(ctx, name, nil)
	switch {
	case api.IsNotFound(err):
		return &structs.Namespace{Name: name}, nil
	case err != nil:
		return nil, fmt.Errorf("error querying namespace: %s", api.Text(err))
	}
	return ns, nil
}

// namespaceFile is the HCL form of a namespace.
type namespaceFile struct {
	Name        string `hcl:"name"`
	Description string `hcl:"description,optional"`
	Quota       string `hcl:"quota,optional"`
	Meta        []struct {
		Rest hcl.Body `hcl:",remain"`
	} `hcl:"meta,block"`
	Capabilities *struct {
		EnabledDrivers  []string `hcl:"enabled_task_drivers,optional"`
		DisabledDrivers []string `hcl:"disabled_task_drivers,optional"`
		EnabledModes    []string `hcl:"enabled_network_modes,optional"`
		DisabledModes   []string `hcl:"disabled_network_modes,optional"`
	} `hcl:"capabilities,block"`
	Pools *struct {
		Default string   `hcl:"default,optional"`
		Allowed []string `hcl:"allowed,optional"`
		Denied  []string `hcl:"denied,optional"`
	} `hcl:"node_pool_config,block"`
}

func readNamespace(text []byte, path string, asJSON bool) (*structs.Namespace, error) {
	if asJSON {
		ns := &structs.Namespace{}
		if err := json.Unmarshal(text, ns); err != nil {
			return nil, fmt.Errorf("%s is not the JSON of a namespace: %w", path, err)
		}
		return ns, nil
	}
	file, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	var read namespaceFile
	if diags := gohcl.DecodeBody(file.Body, nil, &read); diags.HasErrors() {
		return nil, diags
	}
	ns := &structs.Namespace{Name: read.Name, Description: read.Description, Quota: read.Quota}
	for _, meta := range read.Meta {
		var err error
		if ns.Meta, err = addMeta(ns.Meta, meta.Rest); err != nil {
			return nil, err
		}
	}
	if caps := read.Capabilities; caps != nil {
		ns.Capabilities = &structs.NamespaceCapabilities{EnabledTaskDrivers: caps.EnabledDrivers, DisabledTaskDrivers: caps.DisabledDrivers,
			EnabledNetworkModes: caps.EnabledModes, DisabledNetworkModes: caps.DisabledModes}
	}
	if p := read.Pools; p != nil {
		ns.NodePoolConfiguration = &structs.NamespaceNodePoolConfiguration{Default: p.Default, Allowed: p.Allowed, Denied: p.Denied}
	}
	return ns, nil
}

// addMeta adds the attributes of a block to metadata.
func addMeta(meta map[string]string, block hcl.Body) (map[string]string, error) {
	attributes, diags := block.JustAttributes()
	if meta == nil {
		meta = map[string]string{}
	}
	for name, a := range attributes {
		var value string
		diags = append(diags, gohcl.DecodeExpression(a.Expr, nil, &value)...)
		meta[name] = value
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return meta, nil
}
