package system

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/program"
)

// etcd is the store of a system's control plane. It has one member, on the first
// node, which all nodes reach over the underlay. The lab uses etcd's HTTP gateway,
// so it needs no client library.
type etcd struct {
	url    string
	client *http.Client
}

var etcdProgram = program.Program{
	Name:    "etcd",
	Version: []string{"etcd", "--version"},
	Least:   "3.4", // the gateway's paths begin with /v3
}

const (
	etcdPort     = 2379
	etcdPeerPort = 2380 // etcd listens here for other members, although there are none
	etcdAnswers  = time.Second
	etcdMost     = 1 << 20 // bytes of an answer
)

// etcdOf returns a client of the lab's etcd that connects from the node's namespace.
func etcdOf(n *Node) etcd {
	dial := func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		err = n.Space.Do(func() error {
			c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return err
		})
		return c, err
	}
	// The proxies of the user's environment must not apply to the underlay.
	transport := &http.Transport{DialContext: dial, Proxy: nil, DisableKeepAlives: true}
	return etcd{etcdURL(n.Underlay[0], etcdPort), &http.Client{Transport: transport, Timeout: etcdAnswers}}
}

func etcdURL(a netip.Addr, port uint16) string {
	return "http://" + netip.AddrPortFrom(a, port).String()
}

// noProxy has environment variables with which gRPC and HTTP clients use no proxy. A
// proxy of the user cannot reach the underlay.
var noProxy = []string{"NO_PROXY=*", "no_proxy=*"}

// startEtcd starts etcd on this node and waits until it answers.
func startEtcd(n *Node) error {
	home, err := n.home()
	if err != nil {
		return err
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	serve, peer := etcdURL(n.Underlay[n.Index], etcdPort), etcdURL(loopback, etcdPeerPort)
	env := slices.Clone(noProxy)
	if runtime.GOARCH != "amd64" {
		env = append(env, "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH) // without it etcd 3.4 refuses other architectures
	}
	store := etcdOf(n)
	return n.start(daemon{
		name: "etcd",
		argv: []string{etcdProgram.Path(), "--name", "lab",
			"--data-dir", filepath.Join(home, "etcd"),
			"--listen-client-urls", serve + "," + etcdURL(loopback, etcdPort), "--advertise-client-urls", serve,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "lab=" + peer,
			"--logger", "zap", "--log-outputs", "stderr", "--log-level", "warn"},
		env:   env,
		ready: store.healthy,
	})
}

func (e etcd) healthy() error {
	answer, err := e.ask(http.MethodGet, "/health", nil)
	if err != nil {
		return err
	}
	return parseEtcdHealth(answer)
}

// put stores a value.
func (e etcd) put(key, value string) error {
	if _, err := e.call("put", map[string]string{"key": encode64(key), "value": encode64(value)}); err != nil {
		return fmt.Errorf("put %s into etcd: %w", key, err)
	}
	return nil
}

func (e etcd) remove(key string) error {
	if _, err := e.call("deleterange", map[string]string{"key": encode64(key)}); err != nil {
		return fmt.Errorf("delete %s from etcd: %w", key, err)
	}
	return nil
}

// call calls a method of the key-value service and returns its answer.
func (e etcd) call(method string, args map[string]string) ([]byte, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	return e.ask(http.MethodPost, "/v3/kv/"+method, body)
}

// await waits until a key has a value, and returns it.
func (e etcd) await(key string) (string, error) {
	for deadline := time.Now().Add(daemonReady); ; time.Sleep(daemonAsk) {
		value, err := e.get(key)
		if err == nil {
			return value, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("wait for %s in the etcd of the first node, %s: %w", key, e.url, err)
		}
	}
}

func (e etcd) get(key string) (string, error) {
	answer, err := e.call("range", map[string]string{"key": encode64(key)})
	if err != nil {
		return "", err
	}
	return parseEtcdRange(answer)
}

func encode64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// ask sends a request and returns the answer's body. A status other than 200 is an
// error with the server's text.
func (e etcd) ask(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, e.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, etcdMost))
	if err != nil {
		return nil, fmt.Errorf("read etcd's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd returned %s: %s", resp.Status, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// parseEtcdHealth reads the answer of /health (etcd, api/etcdhttp/health.go).
func parseEtcdHealth(answer []byte) error {
	var h struct{ Health, Reason string }
	if err := json.Unmarshal(answer, &h); err != nil {
		return fmt.Errorf("parse etcd's health: %w", err)
	}
	if h.Health != "true" {
		return fmt.Errorf("etcd is not healthy: health %q %s", h.Health, h.Reason)
	}
	return nil
}

// errNoValue says that the key does not exist.
var errNoValue = errors.New("the key has no value yet")

// parseEtcdRange reads the answer of /v3/kv/range for one key (RangeResponse,
// etcdserverpb/rpc.proto, in the gateway's JSON: bytes are base64).
func parseEtcdRange(answer []byte) (string, error) {
	var r struct{ Kvs []struct{ Value []byte } }
	if err := json.Unmarshal(answer, &r); err != nil {
		return "", fmt.Errorf("read etcd's answer: %w", err)
	}
	if len(r.Kvs) == 0 {
		return "", errNoValue
	}
	return string(r.Kvs[0].Value), nil
}
