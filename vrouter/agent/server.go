package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// server serves the API on a unix socket, and optionally metrics on a TCP port.
type server struct {
	http, metrics *http.Server
}

// Limits of a request.
const (
	maxBody    = model.MaxFileBytes
	headerTime = 10 * time.Second
	bodyTime   = 60 * time.Second
)

// listen opens the socket, which only root can use, and serves the API. end stops
// the agent.
func (a *agent) listen(end func()) (*server, error) {
	socket, err := listenUnix(a.config.Socket)
	if err == nil {
		a.socket, err = os.Lstat(a.config.Socket)
	}
	if err != nil {
		return nil, fmt.Errorf("serve the API of node %s: %w", a.config.Node, err)
	}
	s := &server{http: newHTTP(a.routes(end), a.log)}
	if a.config.Metrics != "" {
		if err := s.listenMetrics(a); err != nil {
			socket.Close()
			return nil, errors.Join(err, a.removeSocket())
		}
	}
	go s.http.Serve(socket)
	return s, nil
}

func newHTTP(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// listenMetrics serves metrics over TCP. The API is available only on the unix socket.
func (s *server) listenMetrics(a *agent) error {
	l, err := net.Listen("tcp", a.config.Metrics)
	if err != nil {
		return fmt.Errorf("serve metrics: %w; choose another host:port under metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metricsHandler())
	s.metrics = newHTTP(mux, a.log)
	go s.metrics.Serve(l)
	return nil
}

// close stops the servers after answering the requests in flight. It does not wait: the result is closed at the end.
func (s *server) close() <-chan struct{} {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		for _, h := range []*http.Server{s.http, s.metrics} {
			if h != nil && h.Shutdown(ctx) != nil {
				h.Close()
			}
		}
	}()
	return closed
}

// listenUnix listens on a socket that has mode 0600 from the start: the file takes
// the mode of the unbound socket (unix_bind_bsd in net/unix).
func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := removeDeadSocket(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if err2 := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); err2 != nil {
			return err2
		}
		return err
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err == nil {
		l.(*net.UnixListener).SetUnlinkOnClose(false) // on close, the path may be the socket of another agent
	}
	return l, err
}

// errListening is the error for a socket path on which a program already listens.
var errListening = errors.New("another program listens on this socket; stop the program, or set another path in the key socket of the node's configuration")

// removeDeadSocket deletes the socket file of a killed agent. It returns an error if the path is another kind of file,
// or if a program listens on the socket.
func removeDeadSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("create the socket %s: the path exists and is not a socket; choose another path, or delete the file", path)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) { // EPROTOTYPE: a socket for datagrams; EAGAIN: the program accepts no connections
		return fmt.Errorf("create the socket %s: %w", path, errListening)
	}
	return os.Remove(path)
}

// removeSocket deletes the socket file that this agent made. It keeps the file of another program at the same path.
func (a *agent) removeSocket() error {
	if now, err := os.Lstat(a.config.Socket); err != nil || !os.SameFile(now, a.socket) {
		return nil
	}
	return os.Remove(a.config.Socket)
}

// routes are the routes of package api.
func (a *agent) routes(end func()) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/status", answer(func(*http.Request) (any, error) { return a.status(a.snapshot.Load()), nil }))
	mux.Handle("GET /v1/state", answer(a.handleState))
	mux.Handle("PUT /v1/state", answer(a.handlePutState))
	mux.Handle("POST /v1/ports", answer(a.handleAddPort))
	mux.Handle("DELETE /v1/ports/{name}", answer(a.handleDeletePort))
	a.objectRoutes(mux)
	a.bgpRoutes(mux)
	for name, rows := range a.tables() {
		mux.Handle("GET /v1/"+name, answer(a.reading(func(r *http.Request) (any, error) {
			vrf, err := vrfOf(r)
			if err != nil {
				return nil, err
			}
			return rows(a.snapshot.Load(), vrf)
		})))
	}
	mux.Handle("POST /v1/trace", answer(a.reading(a.handleTrace)))
	mux.Handle("GET /v1/doctor", answer(a.reading(func(*http.Request) (any, error) { return a.doctor(a.snapshot.Load()), nil })))
	mux.Handle("POST /v1/shutdown", answer(func(r *http.Request) (any, error) { return a.handleShutdown(r, end) }))
	mux.Handle("GET /metrics", a.metricsHandler())
	mux.Handle("/", answer(func(r *http.Request) (any, error) {
		return nil, refuse(http.StatusNotFound, "the API has no %s %s", r.Method, r.URL.Path)
	}))
	return mux
}

// reading wraps a handler that reads maps. The maps stay open until it returns.
func (a *agent) reading(handle func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		a.gate.RLock()
		defer a.gate.RUnlock()
		if err := a.mayChange(); err != nil {
			return nil, err
		}
		return handle(r)
	}
}

// answer writes what a handler returns, or its error, as JSON.
func answer(handle func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := handle(r)
		status := http.StatusOK
		if err != nil {
			status, body = statusOf(err), map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
	})
}

// read decodes a request's body.
func read[T any](r *http.Request) (T, error) {
	var body T
	err := follow.Decode(model.LimitValues(r.Body), &body)
	var large *http.MaxBytesError
	var many *model.TooManyError
	switch {
	case errors.As(err, &large):
		return body, refuse(http.StatusBadRequest, "read the request: its body has more than %d MB", maxBody>>20)
	case errors.As(err, &many):
		return body, refuse(http.StatusBadRequest, "read the request: %w", many)
	}
	if err != nil {
		return body, refuse(http.StatusBadRequest, "read the request: %w", err)
	}
	return body, nil
}

// vrfOf returns the VRF that a request selects; 0: all VRFs.
func vrfOf(r *http.Request) (uint32, error) {
	text := r.URL.Query().Get("vrf")
	if text == "" {
		return 0, nil
	}
	vrf, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "vrf=%s is not the number of a VRF; use a number from 0, 0 for all VRFs", text)
	}
	return uint32(vrf), nil
}

// handleState returns the fleet's state, or its known part. Until the store has been read, it
// returns this node's desired state.
func (a *agent) handleState(r *http.Request) (any, error) {
	var state model.State
	if a.follower.Health().Read {
		need := fleet.Need{All: r.URL.Query().Get("known") != "true"}
		err := a.lookAt(r.Context(), need, func(v *fleet.View) { state = v.State() })
		return state.WithDefaults(), err
	}
	if want := a.snapshot.Load().want; want != nil {
		return want.Whole(), nil
	}
	return state, nil
}

func (a *agent) handlePutState(r *http.Request) (any, error) {
	state, err := read[model.State](r)
	if err != nil {
		return nil, err
	}
	return a.putState(r.Context(), state)
}

func (a *agent) handleAddPort(r *http.Request) (any, error) {
	request, err := read[model.PortRequest](r)
	if err != nil {
		return nil, err
	}
	return a.addPort(r.Context(), request)
}

func (a *agent) handleDeletePort(r *http.Request) (any, error) {
	return a.deletePort(r.Context(), r.PathValue("name"))
}

// handleShutdown stops the agent after the answer.
func (a *agent) handleShutdown(r *http.Request, end func()) (any, error) {
	request, err := read[api.ShutdownRequest](r)
	if err != nil {
		return nil, err
	}
	if request.Node != "" && request.Node != a.config.Node {
		return nil, refuse(http.StatusConflict, "the agent that listens on %s runs node %s; stop the agent of node %s, set another socket in its configuration, and retry", a.config.Socket, a.config.Node, request.Node)
	}
	if request.Remove {
		if err := a.mayRemove(request.WithStore); err != nil {
			return nil, err
		}
		if err := a.follower.Ask(r.Context(), a.takeDown); err != nil {
			return nil, err
		}
	}
	end()
	return struct{}{}, nil
}

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

// refuseAs adds a status to an error, unless it has one or is a table's limit.
func refuseAs(status int, err error) error {
	var has *refusal
	if err == nil || errors.As(err, &has) || reconcile.IsLimit(err) {
		return err
	}
	return &refusal{status, err}
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var r *refusal
	var u *reconcile.UnfitError
	switch {
	case errors.As(err, &r):
		return r.status
	case errors.As(err, &u):
		return http.StatusBadRequest
	case reconcile.IsLimit(err):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}
