package store

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Address is the address of a store.
//
//	file                              in the agent's state directory
//	embedded                          etcd inside the agent, in its state directory
//	etcd://HOST:PORT[,HOST:PORT…][/PREFIX]        over TLS with verified servers
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

// defaultPrefix is the prefix of a fleet's keys in a shared etcd.
const defaultPrefix = "/vrouter"

const (
	schemeTLS      = "etcd"
	schemeInsecure = "etcd+insecure"
	etcdPort       = "2379"
)

// ParseAddress parses the text of an address. The empty text is a file.
func ParseAddress(text string) (Address, error) {
	switch text {
	case "", string(KindFile):
		return Address{Kind: KindFile}, nil
	case string(KindEmbedded):
		return Address{Kind: KindEmbedded, Prefix: defaultPrefix}, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != schemeTLS && scheme != schemeInsecure {
		return Address{}, fmt.Errorf("unknown store %q; write file, embedded, or etcd://HOST:PORT,HOST:PORT", text)
	}
	a := Address{Kind: KindEtcd, Prefix: defaultPrefix}
	if user, behind, has := strings.Cut(rest, "@"); has {
		name, password, _ := strings.Cut(user, ":")
		var err error
		if a.User, err = url.PathUnescape(name); err == nil {
			a.Password, err = url.PathUnescape(password)
		}
		if err != nil {
			return Address{}, fmt.Errorf("store %s://…@…: user and password: %w; percent-encode special characters, such as @ as %%40", scheme, err)
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

// hostPort adds etcd's port to an address without one.
func hostPort(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("the list of etcd members has an empty entry; write HOST:PORT,HOST:PORT")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), etcdPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", fmt.Errorf("member %q: %w; write HOST:PORT, and an IPv6 address in brackets", text, err)
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("member %q: port %q is not a number from 1 to 65535", text, port)
	}
	return net.JoinHostPort(host, port), nil
}

// insecure reports whether the members are reached without TLS.
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
	if a.Prefix != defaultPrefix {
		text += a.Prefix
	}
	return text
}

// TLS are the files of an etcd client. Without a CA the system's CAs are trusted.
// Servers are always verified.
type TLS struct {
	CA   string `yaml:"ca"`   // CA certificates of the servers
	Cert string `yaml:"cert"` // of this client
	Key  string `yaml:"key"`
}

// IsZero reports whether no file is set.
func (t TLS) IsZero() bool { return t == TLS{} }

// config returns the TLS configuration of a connection; nil: no TLS.
func (t TLS) config(a Address) (*tls.Config, error) {
	if a.insecure() {
		if !t.IsZero() {
			return nil, fmt.Errorf("store %s is not encrypted, but TLS files are set; write etcd:// for TLS, or remove the files", a)
		}
		return nil, nil
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, fmt.Errorf("store %s: only one of certificate and key is set; set both", a)
	}
	c, err := clientv3.NewClientConfig(&clientv3.ConfigSpec{Secure: &clientv3.SecureConfig{Cert: t.Cert, Key: t.Key, Cacert: t.CA}}, nil)
	if err != nil {
		return nil, fmt.Errorf("store %s: TLS files: %w", a, err)
	}
	return c.TLS, nil
}
