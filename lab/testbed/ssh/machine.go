package ssh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/host"
	"windtunnel/lab/testbed/remote"
)

// machine is a host with the connection to it and to the lab's service there.
type machine struct {
	Host
	number  int    // in the hosts file, from 0
	folder  string // for the files of the connection
	program *program
	survey  *host.Survey

	mu      sync.Mutex
	client  *connection   // nil while there is no connection
	service *host.Client  // nil while there is no connection
	agent   *remote.Agent // of the last service
	path    string        // of the program on the host
	whole   bool          // the service takes the lock of the whole machine
	held    bool          // the run has taken the lock before
}

// suffix ends the names of the host's namespaces. The first 26 hosts have a letter. A host
// keeps its namespace whatever its role in a testbed is. No suffix begins with another one,
// because namespaces are removed by the beginning of their names.
func (m *machine) suffix() string {
	if m.number < 26 {
		return string(rune('a' + m.number))
	}
	return fmt.Sprintf("%04d", m.number)
}

// connect connects to the host and starts the lab's service there, unless this was
// done before and the connection stands.
func (m *machine) connect(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.service != nil && m.service.Ping(ctx) == nil {
		return nil
	}
	m.drop()
	if err := m.open(ctx); err != nil {
		m.drop()
		return fmt.Errorf("host %s: %w", m.Name, err)
	}
	return nil
}

func (m *machine) open(ctx context.Context) (err error) {
	if m.client, err = m.dial(ctx); err != nil {
		return err
	}
	copying, cancel := context.WithTimeoutCause(ctx, copyTime, fmt.Errorf("the host did not finish this within %v", copyTime))
	defer cancel()
	if m.path, err = m.program.install(copying, m.client, m.Directory); err != nil {
		return err
	}
	a, err := m.startAgent(ctx, host.Command)
	if err != nil {
		return err // Layout reads m.agent also while there is no connection
	}
	m.service, m.agent = &host.Client{Client: a.Client}, a
	if m.held { // this is a new connection within a run
		return m.hold(ctx)
	}
	return nil
}

const (
	copyTime  = 2 * time.Minute
	startTime = 5 * time.Second
)

// hold takes the lock again and removes the remains of the lost service. That service
// still has the lock for a short time.
func (m *machine) hold(ctx context.Context) error {
	for deadline := time.Now().Add(host.Silence + startTime); ; {
		err := m.service.Hold(ctx, host.HoldArgs{Machine: m.whole})
		if err == nil {
			_, err = m.service.Clean(ctx)
			return err
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// startAgent starts the windtunnel program on the host with arguments that make it
// serve calls on its standard input and output.
func (m *machine) startAgent(ctx context.Context, args ...string) (*remote.Agent, error) {
	argv := append([]string{m.path}, args...)
	if m.Sudo {
		argv = append([]string{"sudo", "-n", "--"}, argv...)
	}
	p, err := m.client.start(phrase.Shell(argv) + ` "$SSH_CONNECTION"`) // sshd sets the variable, and sudo removes it
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	a, said, err := p.Agent(ctx, m.Name, p, startTime)
	if err != nil {
		return nil, explainStart(said, m.User, m.path, err)
	}
	return a, nil
}

// explainStart returns the reason why a program did not start, with its remedy. said is
// what it and the shell wrote to the standard error.
func explainStart(said, user, path string, err error) error {
	switch {
	case strings.Contains(said, "sudo:") && strings.Contains(said, "not found"), strings.Contains(said, "sudo: No such file"):
		return errors.New("sudo is not installed; install it, or log in as root and omit `sudo`")
	case strings.Contains(said, "sudo:") && strings.Contains(said, "password"), strings.Contains(said, "may not run sudo"), strings.Contains(said, "not in the sudoers"), strings.Contains(said, "not allowed to execute"):
		return fmt.Errorf("user %s may not use sudo without a password; add a line to /etc/sudoers.d there, such as `%s ALL=(root) NOPASSWD: ALL`, or log in as root (%s)", user, user, said)
	case strings.Contains(said, "ermission denied"):
		return fmt.Errorf("the program %s may not run there: its file system forbids programs (noexec); set `directory` in the hosts file (%s)", path, said)
	case said == "":
		return fmt.Errorf("start the agent: %w", err)
	}
	return fmt.Errorf("start the agent: %w: %s", err, said)
}

// drop ends the connection. The caller holds mu.
func (m *machine) drop() {
	if m.client != nil {
		m.client.Kill()
		m.client = nil
	}
	if m.service != nil {
		m.service.Close()
		m.service = nil
	}
}

// close ends the service, which removes its nodes, and then the connection.
func (m *machine) close(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.service == nil {
		return nil
	}
	defer m.drop()
	m.service = nil
	if _, err := m.agent.End(ctx); err != nil { // a lost service ends by itself
		return fmt.Errorf("host %s: %w", m.Name, err)
	}
	return nil
}
