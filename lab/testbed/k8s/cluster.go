package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"windtunnel/lab/testbed/remote"
)

const (
	// callTime is the maximum time of a request to the API server.
	callTime = 10 * time.Second
	// kubectlTime is the maximum time of a call of kubectl, which may first come from a slow disk.
	kubectlTime = 30 * time.Second
	// awayTime is the time for which requests are repeated while the API server does not
	// answer, such as during its restart.
	awayTime = time.Minute
)

// cluster is a connection to the API server of a cluster. kubectl proxy sends the requests, so
// the user's contexts, credential plugins and proxies are in effect.
type cluster struct {
	access
	http  *http.Client
	base  string          // URL of the API, as http reaches it
	proxy *remote.Process // kubectl proxy
	close func()          // ends the connection
}

// dial starts kubectl proxy. It sends no request to the API server.
func dial(ctx context.Context, o Options) (*cluster, error) {
	a, err := readConfig(ctx, o)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "windtunnel-k8s-") // only the user may use the socket
	if err != nil {
		return nil, fmt.Errorf("make the directory for the socket of kubectl: %w", err)
	}
	socket := filepath.Join(folder, "api")
	proxy, err := remote.Start(append(a.kubectl, "proxy", "--unix-socket="+socket)...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	c := &cluster{access: a, proxy: proxy, base: "http://localhost", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	c.close = sync.OnceFunc(func() {
		proxy.Kill()
		<-proxy.Ended
		_ = os.RemoveAll(folder)
	})
	// It prints a line when it listens. Some programs kubectl ask the API server for its version
	// before.
	limited, cancel := context.WithTimeoutCause(ctx, callTime, &failure{Message: c.silence()})
	defer cancel()
	stop := context.AfterFunc(limited, proxy.Kill)
	_, err = proxy.Read(make([]byte, 1))
	if stop(); err != nil {
		c.close()
		err = fmt.Errorf("%w: %s", proxy.Exit, &proxy.Said)
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return nil, c.contactError(ctx, "start kubectl proxy", err)
	}
	go func() { _, _ = io.Copy(io.Discard, proxy) }()
	return c, nil
}

// failure is the error of a request. The API server, kubectl proxy or another server answered with
// the HTTP status Code; 0 if none answered.
type failure struct {
	Code            int
	Reason, Message string // of the API server; Reason is empty if it did not answer
}

func (f *failure) Error() string { return f.Message }

// is reports whether an API server answered with this HTTP status.
func is(err error, code int) bool {
	var f *failure
	return errors.As(err, &f) && f.Code == code && f.Reason != ""
}

// ask sends a request. body and reply are objects of the API in JSON; nil for none.
func (c *cluster) ask(ctx context.Context, method, path string, body, reply any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.http.Do(request)
	if err == nil {
		defer answer.Body.Close()
		text, err = io.ReadAll(answer.Body)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return &failure{Message: c.silence()}
	case err != nil:
		return &failure{Message: fmt.Sprintf("kubectl proxy does not answer: %v: %s", err, &c.proxy.Said)}
	}
	return read(answer.StatusCode, text, reply)
}

// silence says that a request had no answer in time.
func (c *cluster) silence() string {
	if c.plugin != "" {
		return fmt.Sprintf("no answer within %v from the API server, or from the credential plugin %s of the kubeconfig", callTime, c.plugin)
	}
	return fmt.Sprintf("no answer within %v", callTime)
}

// read reads the answer to a request.
func read(code int, text []byte, reply any) error {
	if code < 300 {
		if reply == nil {
			return nil
		}
		if err := json.Unmarshal(text, reply); err != nil {
			return &failure{Code: code, Message: "the answer is not JSON: " + err.Error()}
		}
		return nil
	}
	f := &failure{Code: code}
	status := struct{ Kind, Reason, Message string }{}
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		f.Reason, f.Message = status.Reason, status.Message
		return f
	}
	f.Message, _, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	if strings.HasPrefix(f.Message, "<") || f.Message == "" { // a page for people
		f.Message = "the answer is " + http.StatusText(code)
	}
	return f
}

// get asks for an object, or for a list of objects.
func get[T any](ctx context.Context, c *cluster, path string) (object T, err error) {
	err = c.ask(ctx, http.MethodGet, path, nil, &object)
	return object, err
}

// list asks for the objects of a kind.
func list[T any](ctx context.Context, c *cluster, path string) ([]T, error) {
	all, err := get[struct{ Items []T }](ctx, c, path)
	return all.Items, err
}

// create makes an object. The API server returns it complete.
func create[T any](ctx context.Context, c *cluster, path string, object any) (made T, err error) {
	err = c.ask(ctx, http.MethodPost, path, object, &made)
	return made, err
}

const (
	nodesPath      = "/api/v1/nodes"
	namespacesPath = "/api/v1/namespaces"
	reviewsPath    = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// podsPath and leasesPath are the paths of the objects in a namespace.
func podsPath(namespace string) string { return namespacesPath + "/" + namespace + "/pods" }
func leasesPath(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}
