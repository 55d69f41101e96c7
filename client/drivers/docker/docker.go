package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/nomadlite/nomadlite/client/driver"
	"github.com/nomadlite/nomadlite/internal/codec"
)

// Name is what jobs call the driver.
const Name = "docker"

const handleVersion = 1

// Config of the driver.
type Config struct {
	Plugin
	// StateDir is where it is kept how far each container's output has been read.
	StateDir string
	// CoreMHz gives what one core of the node counts as; nil or 0 leaves ticks out of the figures.
	CoreMHz func() float64
	Logger  hclog.Logger
}

// Driver implements driver.Driver.
type Driver struct {
	cfg    Config
	engine *client.Client
	ctx    context.Context // of what watches containers; it ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	tasks map[string]*task
	pulls map[string]*pull
	usage map[string]sample
}

var (
	_ driver.Driver = (*Driver)(nil)
	_ driver.Finder = (*Driver)(nil)
	_ driver.Execer = (*Driver)(nil)
)

// handle is the driver's own part of a driver.Handle.
type handle struct {
	Container string
}

// New makes a driver. It asks the engine nothing yet: that may come later than the agent.
func New(cfg Config) (*Driver, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	options := []client.Opt{client.FromEnv}
	if cfg.Endpoint != "" {
		options = []client.Opt{client.WithHost(cfg.Endpoint)}
	}
	engine, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("make client of the engine: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Driver{cfg: cfg, engine: engine, ctx: ctx, cancel: cancel, tasks: map[string]*task{}, pulls: map[string]*pull{},
		usage: map[string]sample{}}, nil
}

// Close ends what watches the containers; they run on.
func (d *Driver) Close() error {
	d.cancel()
	d.work.Wait()
	return d.engine.Close()
}

// Name gives docker.
func (d *Driver) Name() string { return Name }

// Capabilities says that tasks see the file system of an image.
func (d *Driver) Capabilities() driver.Capabilities {
	return driver.Capabilities{SendSignals: true, Exec: true, FSIsolation: driver.FSImage}
}

// Fingerprint asks the engine for its version.
func (d *Driver) Fingerprint(ctx context.Context) driver.Health {
	v, err := d.engine.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return driver.Health{Description: "the engine does not answer: " + err.Error()}
	}
	attributes := map[string]string{"driver.docker": "1", "driver.docker.version": v.Version}
	if d.cfg.AllowPrivileged {
		attributes["driver.docker.privileged.enabled"] = "true"
	}
	if d.cfg.Volumes {
		attributes["driver.docker.volumes.enabled"] = "true"
	}
	return driver.Health{Detected: true, Healthy: true, Description: "Healthy", Attributes: attributes}
}

// Validate checks a config block; all faults at once.
func (d *Driver) Validate(config map[string]any) error {
	_, err := d.cfg.parseConfig(config)
	return err
}

// Start makes and starts the task's container.
func (d *Driver) Start(ctx context.Context, cfg *driver.TaskConfig) (*driver.Handle, error) {
	c, err := d.cfg.parseConfig(cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("start task: %w: %w", driver.ErrUnrecoverable, err)
	}
	if h, err := d.Find(ctx, cfg.ID); !errors.Is(err, driver.ErrTaskNotFound) {
		return h, err
	}
	image, err := d.ensureImage(ctx, cfg, c)
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	options, err := d.cfg.createOptions(cfg, c, image, d.share())
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	created, err := d.engine.ContainerCreate(ctx, options)
	if errdefs.IsConflict(err) { // an earlier attempt still has the name
		options.Name += "-" + cfg.ID[strings.LastIndex(cfg.ID, "/")+1:]
		created, err = d.engine.ContainerCreate(ctx, options)
	}
	if err != nil {
		return nil, fmt.Errorf("start task: create container: %w", err)
	}
	if _, err := d.engine.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		// ctx may be what ended the start, and the container must not stay all the same.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("start task: start container: %w", err), d.remove(undo, created.ID))
	}
	t, err := d.adopt(ctx, cfg.ID, created.ID)
	if err != nil {
		return nil, fmt.Errorf("start task: %w", err)
	}
	return t.handle()
}

// share says how many cores a number of MHz is on this node; nil when its cores are not measured.
func (d *Driver) share() func(mhz int64) float64 {
	if d.cfg.CoreMHz == nil || d.cfg.CoreMHz() <= 0 {
		return nil
	}
	core := d.cfg.CoreMHz()
	return func(mhz int64) float64 { return float64(mhz) / core }
}

// undoLimit bounds how long a container that could not be started is waited for to go.
const undoLimit = 10 * time.Second

func (t *task) handle() (*driver.Handle, error) {
	state, err := codec.Marshal(handle{Container: t.container})
	if err != nil {
		return nil, fmt.Errorf("encode handle: %w", err)
	}
	return &driver.Handle{Driver: Name, TaskID: t.id, Version: handleVersion, State: state}, nil
}

// Find takes over the container whose label is the task's id. One that was made and never started is removed.
func (d *Driver) Find(ctx context.Context, taskID string) (*driver.Handle, error) {
	t, err := d.task(ctx, taskID)
	if err != nil {
		return nil, fmt.Errorf("find task: %w", err)
	}
	return t.handle()
}

// Recover takes over the container that a handle names.
func (d *Driver) Recover(ctx context.Context, h *driver.Handle) error {
	if h == nil || h.Driver != Name {
		return fmt.Errorf("recover task: the handle is not of docker: %w", driver.ErrTaskNotFound)
	}
	var own handle
	if err := codec.Unmarshal(h.State, &own); err != nil {
		return fmt.Errorf("recover task: decode handle: %w: %w", driver.ErrTaskNotFound, err)
	}
	if _, err := d.adopt(ctx, h.TaskID, own.Container); err != nil {
		return fmt.Errorf("recover task: %w", err)
	}
	return nil
}

// task gives a task that is watched, or begins to watch the one that the engine has by this id.
func (d *Driver) task(ctx context.Context, taskID string) (*task, error) {
	d.mu.Lock()
	t := d.tasks[taskID]
	d.mu.Unlock()
	if t != nil {
		return t, nil
	}
	filter := client.Filters{}.Add("label", labelTask+"="+taskID)
	found, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return nil, fmt.Errorf("look for container: %w", err)
	}
	for _, c := range found.Items {
		if c.State == "created" {
			if err := d.remove(ctx, c.ID); err != nil {
				return nil, err
			}
			continue
		}
		return d.adopt(ctx, taskID, c.ID)
	}
	return nil, fmt.Errorf("there is no container of task %q: %w", taskID, driver.ErrTaskNotFound)
}

// remove removes a container with its anonymous volumes, running or not.
func (d *Driver) remove(ctx context.Context, container string) error {
	_, err := d.engine.ContainerRemove(ctx, container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove container: %w", err)
	}
	return nil
}

// Wait blocks until the task has ended, and its output is in the files, or ctx is done.
func (d *Driver) Wait(ctx context.Context, taskID string) (*driver.ExitResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := d.task(ctx, taskID)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.done:
		return t.exit, nil
	case <-d.ctx.Done():
		return nil, errors.New("wait for task: the agent ends")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Stop asks the container's first process to end and kills the container after timeout. Should the agent end meanwhile,
// the next one goes on with it.
func (d *Driver) Stop(ctx context.Context, taskID, signal string, timeout time.Duration) error {
	if _, err := driver.ParseSignal(signal); err != nil {
		return fmt.Errorf("stop task: %w", err)
	}
	t, err := d.task(ctx, taskID)
	if err != nil {
		return fmt.Errorf("stop task: %w", err)
	}
	if timeout > 0 {
		if err := d.kill(ctx, t, signal); err != nil {
			return err
		}
	}
	patience := time.NewTimer(timeout)
	defer patience.Stop()
	for {
		select {
		case <-t.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-d.ctx.Done():
			return errors.New("stop task: the agent ends")
		case <-patience.C:
			if err := d.kill(ctx, t, "SIGKILL"); err != nil {
				return err
			}
		}
	}
}

// kill sends a signal to the container's first process; that it has ended already is no error.
func (d *Driver) kill(ctx context.Context, t *task, signal string) error {
	sig, err := driver.ParseSignal(signal)
	if err != nil {
		return fmt.Errorf("signal task: %w", err)
	}
	_, err = d.engine.ContainerKill(ctx, t.container, client.ContainerKillOptions{Signal: fmt.Sprint(int(sig))})
	if err != nil && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) {
		return fmt.Errorf("signal container: %w", err)
	}
	return nil
}

// Signal sends a signal to the container's first process.
func (d *Driver) Signal(ctx context.Context, taskID, signal string) error {
	t, err := d.task(ctx, taskID)
	if err != nil {
		return fmt.Errorf("signal task: %w", err)
	}
	return d.kill(ctx, t, signal)
}

// Destroy removes the container; with force a running one is killed first.
func (d *Driver) Destroy(ctx context.Context, taskID string, force bool) error {
	t, err := d.task(ctx, taskID)
	if err != nil {
		return fmt.Errorf("destroy task: %w", err)
	}
	if !force {
		select {
		case <-t.done:
		default:
			return errors.New("destroy task: it still runs")
		}
	}
	if err := d.remove(ctx, t.container); err != nil {
		return fmt.Errorf("destroy task: %w", err)
	}
	t.cancel()
	select { // nothing writes its logs or its position any more
	case <-t.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := os.Remove(d.positionPath(t.container)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("destroy task: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, taskID)
	delete(d.usage, taskID)
	return nil
}

func (d *Driver) positionPath(container string) string {
	return filepath.Join(d.cfg.StateDir, container+".position")
}

// Inspect describes the container. PIDs has its first process, in the host's numbers.
func (d *Driver) Inspect(ctx context.Context, taskID string) (*driver.TaskStatus, error) {
	t, err := d.task(ctx, taskID)
	if err != nil {
		return nil, fmt.Errorf("inspect task: %w", err)
	}
	got, err := d.engine.ContainerInspect(ctx, t.container, client.ContainerInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("inspect task: %w", contractError(err))
	}
	s := &driver.TaskStatus{ID: taskID, StartedAt: moment(got.Container.State.StartedAt)}
	if got.Container.State.Running {
		s.Running, s.PIDs = true, []int{got.Container.State.Pid}
		return s, nil
	}
	s.Exit = exitResult(got.Container.State)
	return s, nil
}

func contractError(err error) error {
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w", driver.ErrTaskNotFound, err)
	}
	return err
}

func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
