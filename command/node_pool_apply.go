package command

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/nomadlite/nomadlite/api"
	"github.com/nomadlite/nomadlite/structs"
)

func nodePoolApply() *spec {
	return &spec{name: "node pool apply", args: "<path>", synopsis: "Create or update a node pool", client: true,
		help:    `Reads a node pool and stores it. The path "-" is standard input.`,
		minArgs: 1, maxArgs: 1,
		prepare: func(fs *flag.FlagSet) func(context.Context, *call) error {
			var asJSON bool
			fs.BoolVar(&asJSON, "json", false, "Read the node pool as JSON.")
			return func(ctx context.Context, c *call) error {
				text, err := c.readInput(c.args[0])
				if err != nil {
					return err
				}
				pool, err := readPool(text, c.args[0], asJSON)
				if err != nil {
					return fmt.Errorf("read node pool: %w", err)
				}
				if _, err := c.client.NodePools().Register(ctx, pool, nil); err != nil {
					return fmt.Errorf("error applying node pool: %s", api.Text(err))
				}
				c.printf("Successfully applied node pool %q!\n", pool.Name)
				return nil
			}
		}}
}

func readPool(text []byte, path string, asJSON bool) (*structs.NodePool, error) {
	if !asJSON {
		return parsePool(text, path)
	}
	pool := &structs.NodePool{}
	if err := json.Unmarshal(text, pool); err != nil {
		return nil, fmt.Errorf("%s is not the JSON of a node pool: %w", path, err)
	}
	return pool, nil
}

// maxInput is the size of a file which a command reads whole.
const maxInput = 1 << 20

// readInput reads a file, or standard input for "-".
func (c *call) readInput(path string) ([]byte, error) {
	in := c.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxInput {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxInput)
	}
	return text, nil
}

// poolFile is the HCL form of a node pool.
type poolFile struct {
	Pools []struct {
		Name        string  `hcl:"name,label"`
		Description string  `hcl:"description,optional"`
		TTL         *string `hcl:"node_identity_ttl,optional"`
		Meta        []struct {
			Rest hcl.Body `hcl:",remain"`
		} `hcl:"meta,block"`
		Scheduler *struct {
			Algorithm       string `hcl:"scheduler_algorithm,optional"`
			Oversubscribing *bool  `hcl:"memory_oversubscription_enabled,optional"`
		} `hcl:"scheduler_config,block"`
	} `hcl:"node_pool,block"`
}

// parsePool reads the one node pool of a file.
func parsePool(text []byte, path string) (*structs.NodePool, error) {
	file, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	var read poolFile
	if diags := gohcl.DecodeBody(file.Body, nil, &read); diags.HasErrors() {
		return nil, diags
	}
	if len(read.Pools) != 1 {
		return nil, fmt.Errorf("%s must have one block node_pool, it has %d", path, len(read.Pools))
	}
	given := read.Pools[0]
	pool := &structs.NodePool{Name: given.Name, Description: given.Description}
	if given.TTL != nil {
		ttl, err := time.ParseDuration(*given.TTL)
		if err != nil {
			return nil, fmt.Errorf("node_identity_ttl needs a duration such as 24h, got %q", *given.TTL)
		}
		pool.NodeIdentityTTL = ttl
	}
	for _, meta := range given.Meta {
		var err error
		if pool.Meta, err = addMeta(pool.Meta, meta.Rest); err != nil {
			return nil, err
		}
	}
	if s := given.Scheduler; s != nil {
		pool.SchedulerConfiguration = &structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: s.Algorithm,
			MemoryOversubscriptionEnabled: s.Oversubscribing}
	}
	return pool, nil
}
