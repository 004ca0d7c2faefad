package k8s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/rest"

	"windtunnel/internal/stopsignal"
)

// CredentialsCommand is the hidden command that runs the credential plugin of a kubeconfig
// (users.exec). client-go runs a plugin without a time limit, and leaves it running when the
// program ends.
const CredentialsCommand = "credentials"

// Credentials runs a plugin, prints its output and returns its exit status. It ends the plugin
// after callTime, at a signal, and when the parent process ends.
func Credentials(argv []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), stopsignal.List()...)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	runtime.LockOSThread() // the kernel sends the signals at the end of the thread that started a process
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "windtunnel: have the credential plugin end with this program:", err)
		return 1
	}
	var out bytes.Buffer
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, &out, os.Stderr
	c.WaitDelay = time.Second // a child of the plugin can keep the output open
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !term.IsTerminal(int(os.Stdin.Fd())) { // only the terminal's process group can read from it
		c.SysProcAttr.Setpgid = true
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	}
	err := c.Run()
	if _, failed := out.WriteTo(os.Stdout); failed != nil {
		err = failed
	}
	if err == nil {
		return 0
	}
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "windtunnel: start the credential plugin:", err)
	} else if code := c.ProcessState.ExitCode(); code > 0 {
		return code
	}
	return 1
}

// limitPlugin makes CredentialsCommand run the credential plugin, if there is one. limit changes
// the client of the config.
func limitPlugin(config *rest.Config) (limit func(*http.Client), err error) {
	if config.ExecProvider == nil {
		return func(*http.Client) {}, nil
	}
	limited := config.ExecProvider.DeepCopy()
	plugin := limited.Command
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to run the credential plugin: %w", err)
	}
	if _, err := exec.LookPath(plugin); err == nil { // else client-go's error says how to install it
		limited.Command, limited.Args = self, append([]string{CredentialsCommand, plugin}, limited.Args...)
	}
	config.ExecProvider = limited
	return func(c *http.Client) { c.Transport = prompt{c.Transport, plugin, self} }, nil
}

// prompt ends each request with its context, also while the credential plugin runs.
type prompt struct {
	http.RoundTripper
	plugin, self string
}

func (p prompt) RoundTrip(r *http.Request) (*http.Response, error) {
	var begun atomic.Bool // the request has its credentials
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GetConn: func(string) { begun.Store(true) }}))
	type answer struct {
		*http.Response
		error
	}
	ended := make(chan answer, 1)
	go func() {
		response, err := p.RoundTripper.RoundTrip(r)
		ended <- answer{response, err}
	}()
	select {
	case a := <-ended:
		if a.error != nil && !begun.Load() {
			a.error = errors.New(strings.Replace(a.error.Error(), p.self, p.plugin, 1)) // client-go names the program that it started
		}
		return a.Response, a.error
	case <-r.Context().Done():
	}
	if begun.Load() {
		a := <-ended
		return a.Response, a.error
	}
	go func() {
		if a := <-ended; a.Response != nil {
			a.Body.Close()
		}
	}()
	return nil, fmt.Errorf("getting credentials: the plugin %s of the kubeconfig did not answer: %w", p.plugin, context.Cause(r.Context()))
}
