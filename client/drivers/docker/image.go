package docker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/client/driver"
)

// pull is one pull of an image, for all the tasks that wait for it.
type pull struct {
	done    chan struct{}
	err     error
	waiting int
	cancel  context.CancelFunc
}

// ensureImage makes sure that the engine has the task's image and gives its id.
func (d *Driver) ensureImage(ctx context.Context, cfg *driver.TaskConfig, c *taskConfig) (string, error) {
	if c.load != "" {
		if err := d.load(ctx, cfg, c.load); err != nil {
			return "", err
		}
	}
	name := strings.TrimPrefix(strings.TrimPrefix(c.image, "https://"), "docker://")
	id, err := d.imageID(ctx, name)
	if errdefs.IsInvalidArgument(err) || (err != nil && !idLike(name) && !named(name)) {
		return "", fmt.Errorf("image %q is no name of an image: %w: %w", name, driver.ErrUnrecoverable, err)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return "", fmt.Errorf("look for image %q: %w", name, err)
	}
	have := err == nil
	if have && (strings.HasPrefix(id, "sha256:"+strings.TrimPrefix(name, "sha256:")) || (!c.forcePull && (c.load != "" || !newest(name)))) {
		return id, nil
	}
	ref, err := reference.ParseDockerRef(name)
	if err != nil || idLike(name) {
		return "", fmt.Errorf("image %q is not on this node and is no name to pull it by: %w", name, driver.ErrUnrecoverable)
	}
	if err := d.pull(ctx, cfg, c, ref); err != nil {
		if have && !c.forcePull && ctx.Err() == nil {
			d.cfg.Logger.Warn("an image cannot be pulled anew; the one here is used", "image", name, "error", err)
			return id, nil
		}
		return "", err
	}
	if id, err = d.imageID(ctx, name); err != nil {
		return "", fmt.Errorf("look for image %q: %w", name, err)
	}
	return id, nil
}

func idLike(name string) bool { return strings.HasPrefix(name, "sha256:") }

func named(name string) bool {
	_, err := reference.ParseDockerRef(name)
	return err == nil
}

// newest says that a name is of whatever is newest, which may change at the registry.
func newest(name string) bool {
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return false
	}
	_, digested := ref.(reference.Digested)
	tagged, ok := ref.(reference.Tagged)
	return !digested && ok && tagged.Tag() == "latest"
}

func (d *Driver) imageID(ctx context.Context, name string) (string, error) {
	got, err := d.engine.ImageInspect(ctx, name)
	if err != nil {
		return "", err
	}
	return got.ID, nil
}

// load loads an archive of the task's directory.
func (d *Driver) load(ctx context.Context, cfg *driver.TaskConfig, path string) error {
	root, err := os.OpenRoot(cfg.TaskDir) // which no path and no link leads out of
	if err != nil {
		return fmt.Errorf("open task directory: %w", err)
	}
	defer root.Close()
	file, err := root.Open(strings.TrimPrefix(path, "/"))
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	defer file.Close()
	loaded, err := d.engine.ImageLoad(ctx, file)
	if err != nil {
		return fmt.Errorf("load image %s: %w", path, err)
	}
	defer loaded.Close()
	for said := json.NewDecoder(loaded); ; {
		var line struct{ Error string }
		switch err := said.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("load image %s: %w", path, err)
		case line.Error != "":
			return fmt.Errorf("load image %s: %s", path, line.Error)
		}
	}
}

// pull pulls an image, together with all who want the same one now. It ends when nobody waits for it any more.
func (d *Driver) pull(ctx context.Context, cfg *driver.TaskConfig, c *taskConfig, ref reference.Named) error {
	auth, err := d.auth(ctx, c, ref)
	if err != nil {
		return fmt.Errorf("pull image %q: %w", ref, err)
	}
	if cfg.Event != nil {
		cfg.Event("Downloading image " + reference.FamiliarString(ref))
	}
	key := ref.String() + "\n" + auth
	d.mu.Lock()
	p := d.pulls[key]
	if p == nil {
		pulling, cancel := context.WithTimeout(d.ctx, c.pullTimeout)
		p = &pull{done: make(chan struct{}), cancel: cancel}
		d.pulls[key] = p
		d.work.Go(func() {
			defer cancel()
			err := d.fetch(pulling, ref, auth)
			if errors.Is(pulling.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it took longer than %v (option image_pull_timeout)", c.pullTimeout)
			}
			d.mu.Lock()
			if d.pulls[key] == p {
				delete(d.pulls, key)
			}
			p.err = err
			d.mu.Unlock()
			close(p.done)
		})
	}
	p.waiting++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.cancel()
			if d.pulls[key] == p {
				delete(d.pulls, key)
			}
		}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.done:
	}
	switch {
	case p.err == nil:
		return nil
	case missing(p.err):
		return fmt.Errorf("pull image %q: %w: %w", ref, driver.ErrUnrecoverable, p.err)
	}
	return fmt.Errorf("pull image %q: %w", ref, p.err)
}

// missing says that the registry answered, and has no such image: asking again does not help.
func missing(err error) bool {
	text := strings.ToLower(err.Error())
	return errdefs.IsNotFound(err) || strings.Contains(text, "manifest unknown") || strings.Contains(text, "repository does not exist") ||
		strings.Contains(text, "not found: manifest")
}

func (d *Driver) fetch(ctx context.Context, ref reference.Named, auth string) error {
	answer, err := d.engine.ImagePull(ctx, ref.String(), client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	defer answer.Close()
	began, layers := time.Now(), 0
	for m, err := range answer.JSONMessages(ctx) {
		if err != nil {
			return err
		}
		if m.Error != nil {
			return m.Error
		}
		if m.Status == "Pull complete" {
			layers++
			d.cfg.Logger.Debug("layer pulled", "image", ref, "layers", layers, "after", time.Since(began))
		}
	}
	return ctx.Err()
}

// auth gives the encoded credentials for an image's registry: the task's, or else those which the node's file or helper
// has.
func (d *Driver) auth(ctx context.Context, c *taskConfig, ref reference.Named) (string, error) {
	if c.auth != nil {
		return authconfig.Encode(*c.auth)
	}
	domain := reference.Domain(ref)
	var found *registry.AuthConfig
	var err error
	if d.cfg.AuthFile != "" {
		if found, err = authFromFile(d.cfg.AuthFile, domain); err != nil {
			return "", err
		}
	}
	if found == nil && d.cfg.AuthHelper != "" {
		if found, err = authFromHelper(ctx, d.cfg.AuthHelper, domain); err != nil {
			return "", err
		}
	}
	if found == nil {
		return "", nil
	}
	return authconfig.Encode(*found)
}

// authFromFile reads a file of the engine's command line client; nil when it says nothing of the registry.
func authFromFile(path, domain string) (*registry.AuthConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	var file struct {
		Auths map[string]registry.AuthConfig
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read credentials in %s: %w", path, err)
	}
	for server, a := range file.Auths {
		name := strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
		name, _, _ = strings.Cut(name, "/")
		if name != domain && !(domain == "docker.io" && name == "index.docker.io") {
			continue
		}
		if pair, err := base64.StdEncoding.DecodeString(a.Auth); err == nil && a.Auth != "" {
			a.Username, a.Password, _ = strings.Cut(string(pair), ":")
			a.Auth = ""
		}
		a.ServerAddress = server
		return &a, nil
	}
	return nil, nil
}

// authFromHelper asks docker-credential-<helper>; nil when it knows none.
func authFromHelper(ctx context.Context, helper, domain string) (*registry.AuthConfig, error) {
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(domain)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		if strings.Contains(out.String(), "credentials not found") {
			return nil, nil
		}
		return nil, fmt.Errorf("ask credential helper %q: %w", helper, err)
	}
	var said struct{ Username, Secret string }
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return nil, fmt.Errorf("ask credential helper %q: %w", helper, err)
	}
	if said.Username == "<token>" {
		return &registry.AuthConfig{IdentityToken: said.Secret, ServerAddress: domain}, nil
	}
	return &registry.AuthConfig{Username: said.Username, Password: said.Secret, ServerAddress: domain}, nil
}
