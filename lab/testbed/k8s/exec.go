package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"windtunnel/lab/agent"
)

// session is a program that runs in a pod by exec, with a pipe to it.
type session struct {
	agent.Pipe
	drop    context.CancelFunc
	closing atomic.Bool // Close was called
	errors  *agent.Tail
	ended   chan struct{} // closed when the program has ended, or the connection is lost
	exit    error         // once it has ended
}

// exec starts a program in a pod's container, by WebSocket, or by SPDY if the API server
// knows no WebSocket. why explains the loss of the connection.
func (c *cluster) exec(namespace, pod string, argv []string, why func(error) error) (*session, error) {
	request := c.core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&core.PodExecOptions{Container: containerName, Command: argv, Stdin: true, Stdout: true, Stderr: true}, parameters())
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	in, stdin := io.Pipe()
	out, stdout := io.Pipe()
	s := &session{Pipe: agent.Pipe{ReadCloser: io.NopCloser(out), Out: stdin}, errors: &agent.Tail{}, ended: make(chan struct{})}
	var ctx context.Context
	ctx, s.drop = context.WithCancel(context.Background())
	go func() {
		defer close(s.ended)
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: stdout, Stderr: s.errors})
		// An agent that the engine did not end has lost its connection.
		if err != nil || !s.closing.Load() {
			s.exit = why(err)
		}
		stdout.CloseWithError(s.exit) // nil: io.EOF
		in.Close()
	}()
	return s, nil
}

// Close ends the program: it reads the end of its input.
func (s *session) Close() error {
	s.closing.Store(true)
	return s.Pipe.Close()
}

// end waits until the program has ended after Close, or drops the connection when ctx
// ends. The program then ends soon by itself.
func (s *session) end(ctx context.Context) error {
	defer s.drop()
	select {
	case <-s.ended:
	case <-ctx.Done():
		return errors.New("the windtunnel program in the pod did not end in time")
	}
	if s.exit != nil {
		return fmt.Errorf("the windtunnel program in the pod failed: %w: %s", s.exit, s.errors)
	}
	return nil
}
