package k8s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// flow is a program in the network namespace of a pod that sends requests over TCP to a server.
type flow struct {
	name   string
	kept   bool // one connection; else each request has a new one
	target string
	end    func()

	began time.Time
	total int

	mu      sync.Mutex
	sent    int
	failed  []string
	slowest time.Duration
}

const (
	requestEvery = 5 * time.Millisecond
	requestLimit = 5 * time.Second     // on a quiet machine of two CPUs the slowest request took 0.42 s
	minRate      = 20                  // requests a second, as an average
	echoPort     = "8081"              // of pods and services
	servicePort  = "8082"              // of pods, for services
	httpPort     = "8083"              // of pods that answer HTTP requests with their name
	echoVariable = "VROUTER_TEST_ECHO" // makes the test binary an echo server
)

// serveEcho makes this process an echo and HTTP server, if it is one of a pod. Services have a port of the pod that no pod
// connects to itself: two connections from the same port of a client to the same port of a pod clash.
func serveEcho() {
	if os.Getenv(echoVariable) == "" {
		return
	}
	for _, port := range []string{echoPort, servicePort} {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err == nil {
					go func() { defer c.Close(); _, _ = io.Copy(c, c) }() // the client reports errors
				}
			}
		}()
	}
	err := http.ListenAndServe(":"+httpPort, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		_, _ = io.WriteString(w, name) // the client reports errors
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// echoManifest has a pod on a node that runs the echo server, and its service. The service keeps the pod while
// Kubernetes takes the node for lost, as it does when the API server was away for 40 s.
func (k *installation) echoManifest(n *testcluster.Node, name string) string {
	self := must.Get(os.Executable())(k.T)
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: %[3]q, command: [/test], env: [{name: %[4]s, value: "1"}], resources: {requests: {cpu: 500m}}, volumeMounts: [{name: test, mountPath: /test}]}
  volumes: [{name: test, hostPath: {path: %[5]q, type: File}}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, publishNotReadyAddresses: true, ports: [{port: %[6]s, targetPort: %[7]s}]}
---
`, name, n.Name, testcluster.SandboxImage, echoVariable, self, echoPort, servicePort)
}

// echo starts an echo server on a node, and returns the addresses of its pod and its service.
func (k *installation) echo(n *testcluster.Node, name string) (pod, service string) {
	k.kubectl(k.echoManifest(n, name), "apply", "-f", "-")
	k.kubectl("", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=90s")
	return k.kubectl("", "get", "pod", name, "-o", "jsonpath={.status.podIP}"), k.kubectl("", "get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
}

// flow starts requests from a pod, until the end of the test, not of a step. It returns after the first answer.
func (k *installation) flow(n *testcluster.Node, from, target string, kept bool) *flow {
	k.T.Helper()
	f := &flow{name: from + " to " + target, kept: kept, target: net.JoinHostPort(target, echoPort), began: time.Now()}
	if kept {
		f.name += " by one connection"
	}
	ns := must.Get(netns.GetFromPath(n.Root + k.space(n, from)))(k.T)
	ctx, end := context.WithCancel(context.Background())
	ended, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		runtime.LockOSThread()                                                         // never unlocked: the thread ends with the goroutine
		err := errors.Join(netns.Set(ns), unix.Setpriority(unix.PRIO_PROCESS, 0, -10)) // pods that start use all CPUs
		ns.Close()
		failed <- err
		if err == nil {
			f.run(ctx)
		}
	}()
	must.Succeed(k.T, <-failed)
	f.end = func() { end(); <-ended }
	k.T.Cleanup(f.end)
	k.Await(f.name+": the first answer", func() bool {
		sent, _, _ := f.take()
		return sent > 0
	})
	return f
}

func (f *flow) run(ctx context.Context) {
	tick := time.NewTicker(requestEvery)
	defer tick.Stop()
	var c net.Conn
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		var err error
		if c == nil {
			c, err = (&net.Dialer{Timeout: requestLimit}).DialContext(ctx, "tcp", f.target)
		}
		if err == nil {
			err = request(c, fmt.Sprintf("request %016d of %v", n, c.LocalAddr()))
		}
		if c != nil && (err != nil || !f.kept) {
			c.Close()
			c = nil
		}
		if ctx.Err() == nil {
			f.note(began, err)
		}
		<-tick.C
	}
	if c != nil {
		c.Close()
	}
}

func request(c net.Conn, text string) error {
	if err := c.SetDeadline(time.Now().Add(requestLimit)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if !bytes.Equal(answer, []byte(text)) {
		return fmt.Errorf("the answer is %q, want %q", answer, text)
	}
	return nil
}

func (f *flow) note(began time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	f.slowest = max(f.slowest, time.Since(began))
	if err != nil {
		f.failed = append(f.failed, fmt.Sprintf("%s: %v", began.Format(time.TimeOnly), err))
	}
}

// take returns what happened since the last call.
func (f *flow) take() (sent int, failed []string, slowest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent, failed, slowest = f.sent, f.failed, f.slowest
	f.total += sent
	f.sent, f.failed, f.slowest = 0, nil, 0
	return sent, failed, slowest
}

// under runs a step of the test while the flows send requests, of which none may fail.
func (k *installation) under(flows []*flow, name string, step func(t *testing.T)) {
	for _, f := range flows {
		f.take()
	}
	began := time.Now()
	k.Step(name, func(t *testing.T) {
		defer func() {
			took := time.Since(began)
			for _, f := range flows {
				sent, failed, slowest := f.take()
				t.Logf("%s: %d requests in %v, %d failed, the slowest took %v", f.name, sent, took.Round(time.Second), len(failed), slowest.Round(time.Millisecond))
				if len(failed) > 0 {
					t.Errorf("%s: requests failed:\n%s", f.name, strings.Join(failed[:min(len(failed), 10)], "\n"))
				}
			}
		}()
		step(t)
	})
}

// stop ends a flow. Its rate must have been high enough.
func (f *flow) stop(t *testing.T) {
	f.take()
	if rate := float64(f.total) / time.Since(f.began).Seconds(); rate < minRate {
		t.Errorf("%s: %.0f requests a second, want at least %d", f.name, rate, minRate)
	}
	f.end()
}
