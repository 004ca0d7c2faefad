package ssh

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"windtunnel/lab/host"
	"windtunnel/lab/testbed/remote"
)

const (
	// connectTime is the maximum time to connect to a host and to log in, through all jump
	// hosts.
	connectTime = 15 * time.Second
	// aliveProbes is the number of messages of ssh without an answer after which a connection ends.
	// The time is that of the host's side.
	aliveProbes = 3
	aliveTime   = host.Silence / aliveProbes
)

// connection is an SSH connection to a host: a process of ssh that has no session, and whose
// connection further processes of ssh share (ControlMaster).
type connection struct {
	*remote.Process
	share []string // command line of a process that shares the connection, without its command
}

// dial connects to the host through its jump hosts.
func (m *machine) dial(ctx context.Context) (*connection, error) {
	if err := m.checkFiles(); err != nil {
		return nil, err
	}
	socket := filepath.Join(m.folder, strconv.Itoa(m.number))
	config := socket + ".config"
	if err := os.WriteFile(config, []byte(m.config()), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration for ssh: %w", err)
	}
	_ = os.Remove(socket) // of a process of ssh that was killed
	argv := func(master string, options ...string) []string {
		return slices.Concat([]string{"ssh", "-F", config, "-S", socket, "-o", "ControlMaster=" + master}, options, m.destination())
	}
	master, err := remote.Start(argv("yes", "-N", "-o", "ControlPersist=no")...)
	if err != nil {
		return nil, err
	}
	c := &connection{master, slices.Clip(argv("no", "-T"))}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	for ticks := time.NewTicker(10 * time.Millisecond); ; {
		if _, err := os.Stat(socket); err == nil {
			return c, nil
		}
		select {
		case <-ticks.C:
			continue
		case <-master.Ended:
			return nil, m.explain(ctx, master.Said.String(), master.Exit)
		case <-ctx.Done():
			c.Kill()
			return nil, m.explain(ctx, "", context.Cause(ctx))
		}
	}
}

// destination returns the arguments of ssh that name the host and the way to it. What the hosts
// file does not say is left to the user's configuration.
func (h *Host) destination() (argv []string) {
	if h.User != "" {
		argv = append(argv, "-l", h.User)
	}
	if h.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(h.Port))
	}
	var jumps []string
	for _, text := range h.Jump {
		user, address := cutUser(text)
		if _, err := netip.ParseAddr(address); err == nil {
			address = "[" + address + "]"
		}
		if user = cmp.Or(user, h.User); user != "" {
			address = user + "@" + address
		}
		jumps = append(jumps, address)
	}
	if len(jumps) > 0 {
		argv = append(argv, "-J", strings.Join(jumps, ","))
	}
	return append(argv, strings.Trim(h.Address, "[]"))
}

// config returns a configuration file for the connection, which ssh also uses for the jump hosts.
// The first value of an option counts, so the files of the user and of the machine come last.
func (h *Host) config() string {
	lines := []string{
		"BatchMode yes", "StrictHostKeyChecking yes", "UpdateHostKeys no", "LogLevel INFO",
		fmt.Sprintf("ConnectTimeout %d", int(connectTime.Seconds())),
		fmt.Sprintf("ServerAliveInterval %d", int(aliveTime.Seconds())), fmt.Sprintf("ServerAliveCountMax %d", aliveProbes-1),
		"RemoteCommand none", "RequestTTY no", "PermitLocalCommand no", "ClearAllForwardings yes", "ForwardAgent no", "ForwardX11 no",
	}
	if h.knownHosts != "" {
		lines = append(lines, "UserKnownHostsFile "+quoted(h.knownHosts), "GlobalKnownHostsFile /dev/null")
	}
	if h.Key != "" {
		lines = append(lines, "IdentityFile "+quoted(h.Key), "IdentitiesOnly yes")
	}
	return strings.Join(append(lines, "Include ~/.ssh/config", "Include /etc/ssh/ssh_config", ""), "\n")
}

// quoted returns a path as a word of ssh's configuration.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(expanded(path)) + `"`
}

// checkFiles returns an error if a file of the hosts file cannot be read. ssh does not report
// this.
func (h *Host) checkFiles() error {
	for _, f := range []struct{ path, what, remedy string }{
		{h.knownHosts, "the known host keys", "correct the file, or set `known_hosts` in the hosts file to a file of OpenSSH's format"},
		{h.Key, "the private key", "set `key` in the hosts file to a file that you can read, or omit it to use the SSH agent and the default files"},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.ReadFile(expanded(f.path)); err != nil {
			return fmt.Errorf("read %s: %w; %s", f.what, err, f.remedy)
		}
	}
	return nil
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)

// checkDestination returns an error if ssh would not take a part of the destination as what it is.
func (h *Host) checkDestination() error {
	for _, text := range h.Jump {
		if plain, isURI := strings.CutPrefix(text, "ssh://"); isURI {
			return fmt.Errorf("jump %q begins with ssh://; write %q", text, strings.TrimSuffix(plain, "/"))
		}
		user, address := cutUser(text)
		if err := checkHostPort(address); err != nil || strings.Contains(text, "@") && !validUser.MatchString(user) {
			return fmt.Errorf("jump %q is not of the form [user@]address[:port]", text)
		}
	}
	if err := checkHostPort("[" + strings.Trim(h.Address, "[]") + "]"); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	return nil
}

// checkHostPort checks a text of the form address[:port].
func checkHostPort(text string) error {
	name, port, err := net.SplitHostPort(text)
	if err != nil {
		name, port = strings.Trim(text, "[]"), "22"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q is not a port from 1 to 65535", port)
	}
	if _, err := netip.ParseAddr(name); err != nil && !hostName.MatchString(name) {
		return fmt.Errorf("%q is neither a host name nor an IP address", name)
	}
	return nil
}

// expanded replaces "~/" at the start of a path by the user's home directory.
func expanded(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
