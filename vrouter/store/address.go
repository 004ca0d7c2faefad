package store

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// Address says where a store is.
//
//	file                              in the agent's state directory
//	embedded                          etcd inside the agent, in its state directory
//	etcd://HOST:PORT[,HOST:PORT…][/PREFIX]        over TLS, the servers verified
//	etcd+insecure://HOST:PORT…                    over plain TCP
type Address struct {
	Kind           Kind
	Endpoints      []string // URLs of the cluster's members
	Prefix         string   // of all keys; default /vrouter
	User, Password string
}

// Kind of a store.
type Kind string

// The kinds of stores.
const (
	KindFile     Kind = "file"
	KindEmbedded Kind = "embedded"
	KindEtcd     Kind = "etcd"
)

// DefaultPrefix is where a fleet's keys are in an etcd that others use too.
const DefaultPrefix = "/vrouter"

const (
	schemeTLS      = "etcd"
	schemeInsecure = "etcd+insecure"
	etcdPort       = "2379"
)

// ParseAddress reads what people write. Empty is a file.
func ParseAddress(text string) (Address, error) {
	switch text {
	case "", string(KindFile):
		return Address{Kind: KindFile}, nil
	case string(KindEmbedded):
		return Address{Kind: KindEmbedded, Prefix: DefaultPrefix}, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != schemeTLS && scheme != schemeInsecure {
		return Address{}, fmt.Errorf("store %q is not known; write file, embedded, or etcd://HOST:PORT,HOST:PORT", text)
	}
	a := Address{Kind: KindEtcd, Prefix: DefaultPrefix}
	if user, behind, has := strings.Cut(rest, "@"); has {
		name, password, _ := strings.Cut(user, ":")
		var err error
		if a.User, err = url.PathUnescape(name); err == nil {
			a.Password, err = url.PathUnescape(password)
		}
		if err != nil {
			return Address{}, fmt.Errorf("store %s://…@…: user and password: %w; write special characters as %%40 and such", scheme, err)
		}
		rest = behind
	}
	hosts, prefix, has := strings.Cut(rest, "/")
	if has && prefix != "" {
		a.Prefix = "/" + strings.Trim(prefix, "/")
	}
	transport := "https://"
	if scheme == schemeInsecure {
		transport = "http://"
	}
	for _, host := range strings.Split(hosts, ",") {
		withPort, err := hostPort(host)
		if err != nil {
			return Address{}, fmt.Errorf("store %s://%s: %w", scheme, hosts, err)
		}
		a.Endpoints = append(a.Endpoints, transport+withPort)
	}
	return a, nil
}

// hostPort fills in etcd's port where none is given.
func hostPort(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("a member has no address; write HOST:PORT, parted by commas")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), etcdPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", fmt.Errorf("member %q: %w; write HOST:PORT, and an IPv6 address in brackets", text, err)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("member %q: port %q is no number from 1 to 65535", text, port)
	}
	return net.JoinHostPort(host, port), nil
}

// insecure tells whether the members are spoken to in plain text.
func (a Address) insecure() bool {
	return len(a.Endpoints) > 0 && strings.HasPrefix(a.Endpoints[0], "http://")
}

// String is the address without a password.
func (a Address) String() string {
	if a.Kind != KindEtcd {
		return string(a.Kind)
	}
	scheme, hosts := schemeTLS, make([]string, 0, len(a.Endpoints))
	if a.insecure() {
		scheme = schemeInsecure
	}
	for _, e := range a.Endpoints {
		_, host, _ := strings.Cut(e, "://")
		hosts = append(hosts, host)
	}
	text := scheme + "://" + strings.Join(hosts, ",")
	if a.Prefix != DefaultPrefix {
		text += a.Prefix
	}
	return text
}

// TLS are files of an etcd client. Without a CA the system's are trusted;
// servers are verified always.
type TLS struct {
	CA   string `yaml:"ca"`   // certificates that the servers' are signed by
	Cert string `yaml:"cert"` // this client's
	Key  string `yaml:"key"`
}

// IsZero tells whether nothing is given.
func (t TLS) IsZero() bool { return t == TLS{} }

// config is what a connection needs; nil for plain text.
func (t TLS) config(a Address) (*tls.Config, error) {
	if a.insecure() {
		if !t.IsZero() {
			return nil, fmt.Errorf("store %s is plain text, and TLS files are given; write etcd:// for TLS, or leave the files out", a)
		}
		return nil, nil
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, fmt.Errorf("store %s: a certificate and its key belong together; give both", a)
	}
	c, err := transport.TLSInfo{CertFile: t.Cert, KeyFile: t.Key, TrustedCAFile: t.CA}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("store %s: TLS files: %w", a, err)
	}
	return c, nil
}
