package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	checkPort = "8080"
	probeTime = 6 * time.Second
	dnsScheme = "dns:" // of a target that is a name to resolve
)

// ServeProbes answers connections with the name of the pod, until ctx ends.
func ServeProbes(ctx context.Context) error {
	l, err := net.Listen("tcp", ":"+checkPort)
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); l.Close() }()
	name, err := os.Hostname()
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			_, _ = io.WriteString(c, name) // a client that went away needs no answer
			c.Close()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Probe connects to all targets at the same time, and writes the errors by target as JSON. The
// error of a target that answers is "".
func Probe(ctx context.Context, out io.Writer, targets []string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	results := map[string]string{}
	var lock sync.Mutex
	var wait sync.WaitGroup
	for _, t := range targets {
		wait.Go(func() {
			text := ""
			err := probe(ctx, t)
			// kube-proxy refuses connections to a new service until it knows the endpoints.
			for errors.Is(err, syscall.ECONNREFUSED) && pause(ctx) {
				err = probe(ctx, t)
			}
			if err != nil {
				text = err.Error()
			}
			lock.Lock()
			defer lock.Unlock()
			results[t] = text
		})
	}
	wait.Wait()
	return json.NewEncoder(out).Encode(results)
}

func probe(ctx context.Context, target string) error {
	if len(target) > len(dnsScheme) && target[:len(dnsScheme)] == dnsScheme {
		_, err := net.DefaultResolver.LookupHost(ctx, target[len(dnsScheme):])
		return err
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer c.Close()
	_, port, _ := net.SplitHostPort(target)
	if port != checkPort {
		return nil // connected
	}
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if name, err := io.ReadAll(c); err != nil || len(name) == 0 {
		return fmt.Errorf("connected, but no answer came: %w", err)
	}
	return nil
}
