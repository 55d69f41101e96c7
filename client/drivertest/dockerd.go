package drivertest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Dockerd is a container engine of a test package's own: data, state and socket lie in one directory, and it makes
// neither a bridge nor firewall rules on the host.
type Dockerd struct {
	Socket string // path of the API's unix socket
	cmd    *exec.Cmd
}

// DockerdMissing says why no engine can run here; "" when one can.
func DockerdMissing() string {
	if os.Geteuid() != 0 {
		return "dockerd needs root"
	}
	for _, program := range []string{"dockerd", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	return ""
}

// StartDockerd starts an engine in dir and returns once it answers. One that was stopped there before is continued.
func StartDockerd(ctx context.Context, dir string) (*Dockerd, error) {
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "ready"), Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for the engine's readiness: %w", err)
	}
	defer os.Remove(filepath.Join(dir, "ready"))
	defer ready.Close()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the engine's log: %w", err)
	}
	defer log.Close()
	d := &Dockerd{Socket: filepath.Join(dir, "sock")}
	d.cmd = exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"-p", filepath.Join(dir, "pid"), "-H", "unix://"+d.Socket, "--iptables=false", "--bridge=none")
	d.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "ready"))
	d.cmd.Stdout, d.cmd.Stderr = log, log // a file, since the engine's children write there too, even after it is gone
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start dockerd: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for buf := make([]byte, 4096); ; {
		n, err := ready.Read(buf)
		if err != nil {
			_ = d.Stop()
			return nil, fmt.Errorf("wait for dockerd (see its log in %s): %w", dir, err)
		}
		if strings.Contains(string(buf[:n]), "READY=1") {
			return d, nil
		}
	}
}

// Stop ends the engine in good order: its containers end with it.
func (d *Dockerd) Stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop dockerd: %w", err)
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("stop dockerd: %w", err)
	}
	return nil
}

// ImportBusybox makes an image of the host's static busybox, with sh beside it.
func (d *Dockerd) ImportBusybox(ctx context.Context, repo, tag string) error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w", err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read busybox: %w", err)
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	for _, name := range []string{"bin/busybox", "bin/sh"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
			return fmt.Errorf("pack image: %w", err)
		}
		if _, err := w.Write(program); err != nil {
			return fmt.Errorf("pack image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	return d.post(ctx, "/images/create?fromSrc=-&repo="+repo+"&tag="+tag, &image)
}

func (d *Dockerd) post(ctx context.Context, path string, body *bytes.Buffer) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://docker"+path, body)
	if err != nil {
		return fmt.Errorf("ask dockerd: %w", err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("ask dockerd: %w", err)
	}
	defer resp.Body.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(resp.Body); err != nil {
		return fmt.Errorf("read dockerd's answer: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices || strings.Contains(said.String(), `"error"`) {
		return fmt.Errorf("ask dockerd for %s: %s: %s", path, resp.Status, said.String())
	}
	return nil
}
