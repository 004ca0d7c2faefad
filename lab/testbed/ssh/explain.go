package ssh

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/testbed/remote"
)

// The messages of OpenSSH 9. A host is an address, or [address]:port if the port is not 22.
var (
	unknownKey  = regexp.MustCompile(`No \S+ host key is known for (\S+) and`)
	changedKey  = regexp.MustCompile(`Offending \S+ key in (.+?):\d+.*Host key for (\S+) has changed`)
	refusedUser = regexp.MustCompile(`(\S+)@(\S+): Permission denied`)
	unreachable = regexp.MustCompile(`connect to host (\S+) port (\d+): ([^|]*[^| ])`)
)

// explain returns the error of a login, at the host or at a jump host, with its remedy. said is
// what ssh wrote to the standard error.
func (h *Host) explain(ctx context.Context, said string, err error) error {
	if m := changedKey.FindStringSubmatch(said); m != nil {
		name, port := hostOf(m[2])
		remove := phrase.Shell([]string{"ssh-keygen", "-f", m[1], "-R", m[2]})
		return fmt.Errorf("the host key of %s is not the key in %s: another machine may answer there; if the host was installed again, remove the old key with `%s` and log in once with ssh", net.JoinHostPort(name, port), m[1], remove)
	}
	if m := unknownKey.FindStringSubmatch(said); m != nil {
		name, port := hostOf(m[1])
		return fmt.Errorf("the host key of %s is not known; log in once with `ssh -p %s %s` and check the key, or add the output of `ssh-keyscan -p %[2]s %[4]s` to the known_hosts file", net.JoinHostPort(name, port), port, h.userAt(name)+name, name)
	}
	if m := refusedUser.FindStringSubmatch(said); m != nil {
		return h.explainRefusal(ctx, m[1], m[2])
	}
	if m := unreachable.FindStringSubmatch(said); m != nil {
		return fmt.Errorf("connect to %s: %s; check the address, the port, that sshd runs, and firewalls", net.JoinHostPort(m[1], m[2]), m[3])
	}
	if said != "" {
		err = fmt.Errorf("%s (%w)", said, err)
	}
	return fmt.Errorf("log in to %s: %w", h.userAt(h.Address)+h.Address, err)
}

// explainRefusal returns the reason why sshd does not accept a user.
func (h *Host) explainRefusal(ctx context.Context, user, address string) error {
	keys := "the keys of the SSH agent and of ~/.ssh"
	if h.Key != "" {
		keys = h.Key
		_, said, err := remote.Run(ctx, nil, "ssh-keygen", "-y", "-P", "", "-f", expanded(h.Key))
		if strings.Contains(said, "passphrase") {
			return fmt.Errorf("the private key %s has a passphrase; add it to an SSH agent with `ssh-add %[1]s`", h.Key)
		}
		if err != nil {
			return fmt.Errorf("read the private key %s: %s (%w); set `key` in the hosts file to the private key, which is the file without .pub", h.Key, said, err)
		}
	}
	return fmt.Errorf("%s does not accept user %s with %s; add the public key to ~%s/.ssh/authorized_keys there, or set `key` and `user` in the hosts file", address, user, keys, user)
}

// hostOf splits the name of a host in a message of ssh.
func hostOf(text string) (name, port string) {
	if name, port, err := net.SplitHostPort(text); err == nil {
		return name, port
	}
	return text, "22"
}

// userAt returns the login user at the host or at one of its jump hosts, with "@"; "" if the hosts
// file has none.
func (h *Host) userAt(address string) string {
	user := h.User
	for _, text := range h.Jump {
		if u, name := cutUser(text); u != "" && strings.HasPrefix(strings.TrimPrefix(name, "["), address) {
			user = u
		}
	}
	if user == "" {
		return ""
	}
	return user + "@"
}
