// Command hello is a small web server for examples: it serves one page, logs each request and stops on SIGINT or
// SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	addr := os.Getenv("NOMAD_ADDR_http")
	if addr == "" {
		addr = "127.0.0.1:8000"
	}
	greeting := os.Getenv("GREETING")
	if greeting == "" {
		greeting = "Hello"
	}
	server := &http.Server{Addr: addr, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("request", r.Method, r.URL.Path)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<h1>%s from %s</h1>\n<p>allocation %s</p>\n",
				greeting, os.Getenv("NOMAD_TASK_NAME"), os.Getenv("NOMAD_ALLOC_ID"))
		})}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	fmt.Println("listening on", addr)
	select {
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	case <-ctx.Done():
	}
	fmt.Println("stopping")
	shutdown, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return server.Shutdown(shutdown)
}
