package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// ServeOptions of Serve.
type ServeOptions struct {
	Options
	Name string // of the driver, and of the socket
	Dir  string // folder of Docker's plugin sockets
}

// Serve serves Docker until ctx ends. It listens on the socket that systemd
// passes, else on a new socket that only root can open.
func Serve(ctx context.Context, o ServeOptions, serving func(socket string)) error {
	p, err := New(o.Options)
	if err != nil {
		return err
	}
	l, err := listen(o)
	if err != nil {
		return err
	}
	serving(l.Addr().String())
	collecting, end := context.WithCancel(ctx)
	defer end()
	go p.collect(collecting)
	server := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: agentTimeout}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.Background(), agentTimeout)
		defer cancel()
		return server.Shutdown(ending)
	}
}

func listen(o ServeOptions) (net.Listener, error) {
	given, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("use the socket from systemd: %w", err)
	}
	if len(given) > 0 {
		return given[0], nil
	}
	if filepath.Base(o.Name) != o.Name || o.Name == "." {
		return nil, fmt.Errorf("--name %q is not valid: it must be a file name", o.Name)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, o.Name+".sock")
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("listen on %s: another plugin uses it; stop that plugin, or choose another --name", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	old := unix.Umask(0o177)
	defer unix.Umask(old)
	return net.Listen("unix", path)
}
