package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	sshagent "golang.org/x/crypto/ssh/agent"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"windtunnel/internal/phrase"
	"windtunnel/lab/host"
)

// connectTime is the maximum time to connect to a host and to log in, through all jump
// hosts.
const connectTime = 15 * time.Second

// lostTime is the time without an acknowledgement after which a connection ends. It is that
// of the host's side.
const lostTime = host.Silence

// connection is an SSH connection to a host.
type connection struct {
	*ssh.Client
	first net.Conn // to the host, or to the first jump host
}

// Close ends the connection at once. Closing an SSH session or a client behind a jump host
// sends messages, which can wait forever if the network is cut.
func (c *connection) Close() error {
	if c.first == nil {
		return nil
	}
	return c.first.Close()
}

// until closes the connection when ctx ends. The function that it returns ends this, and
// replaces the error of a closed connection by the cause of ctx.
func (c *connection) until(ctx context.Context, err *error) func() {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func() {
		stop()
		if *err != nil && ctx.Err() != nil {
			*err = context.Cause(ctx)
		}
	}
}

// dial connects to the host through its jump hosts.
func (h *Host) dial(ctx context.Context) (*connection, error) {
	stops, err := h.route()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("no answer within %v", connectTime))
	defer cancel()
	keys, err := h.keys(ctx)
	if err != nil {
		return nil, err
	}
	known, err := h.knownKeys()
	if err != nil {
		return nil, err
	}
	c := &connection{}
	for _, s := range stops {
		next, err := s.dial(ctx, c, keys, known)
		if err != nil {
			c.Close()
			return nil, err
		}
		if before := c.Client; before != nil {
			go func() { // a connection through a jump host ends with it, and the other way round
				_ = next.Wait()
				before.Close()
			}()
		}
		c.Client = next
	}
	return c, nil
}

// dial connects to the stop through a connection. With an empty connection, it connects
// directly and makes this the connection's first part.
func (s stop) dial(ctx context.Context, through *connection, keys *keys, known *knownhosts.HostKeyDB) (*ssh.Client, error) {
	conn, err := s.connect(ctx, through.Client)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w; check the address, the port, that sshd runs, and firewalls", s.address, err)
	}
	if through.first == nil {
		through.first = conn
	}
	config := &ssh.ClientConfig{
		User: s.user, Auth: keys.methods(), HostKeyCallback: known.HostKeyCallback(), HostKeyAlgorithms: known.HostKeyAlgorithms(s.address),
	}
	stopped := context.AfterFunc(ctx, func() { through.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, s.address, config)
	if !stopped() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, s.explain(err, keys)
	}
	return ssh.NewClient(c, channels, requests), nil
}

func (s stop) connect(ctx context.Context, through *ssh.Client) (net.Conn, error) {
	if through != nil {
		return through.DialContext(ctx, "tcp", s.address)
	}
	return (&net.Dialer{Control: endWhenCut}).DialContext(ctx, "tcp", s.address)
}

// endWhenCut makes a TCP connection end if the other end does not acknowledge data for
// lostTime. The kernel's default is about 15 minutes (tcp_retries2).
func endWhenCut(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostTime.Milliseconds()))
	})
	return errors.Join(failed, err)
}

// explain returns the error of a login with its remedy.
func (s stop) explain(err error, keys *keys) error {
	host, port, _ := net.SplitHostPort(s.address)
	var changed *xknownhosts.KeyError
	switch {
	case errors.As(err, &changed) && len(changed.Want) > 0:
		file := changed.Want[0].Filename
		remove := phrase.Shell([]string{"ssh-keygen", "-f", file, "-R", knownhosts.Normalize(s.address)})
		return fmt.Errorf("the host key of %s is not the key in %s: another machine may answer there; if the host was installed again, remove the old key with `%s` and log in once with ssh", s.address, file, remove)
	case knownhosts.IsHostUnknown(err):
		return fmt.Errorf("the host key of %s is not known; log in once with `ssh -p %s %s@%s` and check the key, or add the output of `ssh-keyscan -p %s %s` to the known_hosts file", s.address, port, s.user, host, port, host)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Errorf("%s does not accept user %s with %s; add the public key to ~%s/.ssh/authorized_keys there, or set `key` and `user` in the hosts file", s.address, s.user, keys, s.user)
	}
	return fmt.Errorf("log in to %s as %s: %w", s.address, s.user, err)
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)

// withPort adds a port to an address without one.
func withPort(address string, port int) (string, error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		host, p = strings.Trim(address, "[]"), strconv.Itoa(port)
	}
	if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%q is no port from 1 to 65535", p)
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostName.MatchString(host) {
		return "", fmt.Errorf("%q is no host name and no IP address", host)
	}
	return net.JoinHostPort(host, p), nil
}

// knownKeys reads the known_hosts files.
func (h *Host) knownKeys() (*knownhosts.HostKeyDB, error) {
	files := []string{h.knownHosts}
	if h.knownHosts == "" {
		files = []string{"~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}
		files = slices.DeleteFunc(files, func(f string) bool {
			_, err := os.Stat(expanded(f))
			return errors.Is(err, os.ErrNotExist)
		})
	}
	for i, f := range files {
		files[i] = expanded(f)
	}
	known, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("read the known host keys: %w; correct the file, or set `known_hosts` in the hosts file to a file of OpenSSH's format", err)
	}
	return known, nil
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

// keys has the private keys for a login.
type keys struct {
	signers []ssh.Signer
	from    []string // the files and the agent
}

// keys reads the key file of the host. Without one, it asks the SSH agent and reads the
// default files. The agent's keys can be used until ctx ends.
func (h *Host) keys(ctx context.Context) (*keys, error) {
	k := &keys{}
	if h.Key != "" {
		return k, k.read(h.Key)
	}
	if err := k.ask(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		// A default file may be absent, or its passphrase may be known only to the agent.
		_ = k.read("~/.ssh/" + name)
	}
	if len(k.signers) == 0 {
		return nil, errors.New("there is no private key: set `key` in the hosts file, start an SSH agent with a key (ssh-add), or make one with ssh-keygen")
	}
	return k, nil
}

// ask adds the keys of the SSH agent, if one runs.
func (k *keys) ask(ctx context.Context) error {
	path := os.Getenv("SSH_AUTH_SOCK")
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	signers, err := sshagent.NewClient(conn).Signers()
	if ctx.Err() != nil {
		return fmt.Errorf("ask the SSH agent at %s for its keys: %w", path, context.Cause(ctx))
	}
	if err != nil || len(signers) == 0 {
		return nil
	}
	k.signers = append(k.signers, signers...)
	k.from = append(k.from, "the keys of the SSH agent")
	return nil
}

func (k *keys) read(path string) error {
	text, err := os.ReadFile(expanded(path))
	if err != nil {
		return fmt.Errorf("read the private key: %w; set `key` in the hosts file to a file that you can read, or omit it to use the SSH agent and the default files", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if missing := new(ssh.PassphraseMissingError); errors.As(err, &missing) {
		return fmt.Errorf("the private key %s has a passphrase; add it to an SSH agent with `ssh-add %s`, and omit `key`", path, path)
	}
	if err != nil {
		return fmt.Errorf("read the private key %s: %w; set `key` in the hosts file to the private key, which is the file without .pub", path, err)
	}
	k.signers, k.from = append(k.signers, signer), append(k.from, path)
	return nil
}

func (k *keys) methods() []ssh.AuthMethod { return []ssh.AuthMethod{ssh.PublicKeys(k.signers...)} }

func (k *keys) String() string { return strings.Join(k.from, ", ") }
