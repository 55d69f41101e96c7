package template

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func testRenderer() *Renderer { return NewRenderer([]string{os.Args[0], Command}) }

func TestProcess(t *testing.T) {
	r := testRenderer()
	t.Setenv("AGENTS_OWN", "secret")
	resp, err := r.Render(t.Context(), &Request{Contents: `{{ env "A" }}{{ env "AGENTS_OWN" }}{{ nomadService "x" }}`, Env: []string{"A=1"}})
	if err != nil || string(resp.Output) != "1[]" || len(resp.Missing) != 1 || resp.Missing[0].Name != "x" {
		t.Errorf("%+v %v", resp, err)
	}
	if _, err := NewRenderer([]string{"/nonexistent"}).Render(t.Context(), &Request{}); err == nil || errors.Is(err, ErrBounds) {
		t.Errorf("without a binary: %v", err)
	}
}

const forever = `{{ range loop 1000000000000 }}{{ end }}`

func TestALoopingTemplateEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := testRenderer().Render(ctx, &Request{Contents: forever})
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"time":   forever,
		"memory": `{{ $s := "xxxxxxxxxxxxxxxx" }}{{ range loop 40 }}{{ $s = print $s $s }}{{ end }}`,
		"output": `{{ define "a" }}{{ range loop 1000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}{{ end }}{{ range loop 1000000 }}{{ template "a" }}{{ end }}`,
		"stack":  `{{ define "a" }}{{ executeTemplate "a" }}{{ end }}{{ template "a" }}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := testRenderer()
			if name == "time" {
				r.limit = 300 * time.Millisecond
			}
			_, err := r.Render(t.Context(), &Request{Contents: text})
			if !errors.Is(err, ErrBounds) {
				t.Fatalf("error %v", err)
			}
			if name == "time" && !strings.Contains(err.Error(), "300ms") {
				t.Errorf("error %v", err)
			}
		})
	}
}
