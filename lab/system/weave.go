package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Weave is Weave Net without its fast datapath. On each node a router in user space, weaver,
// captures the frames of the node's bridge and sends them to the other routers in UDP
// datagrams. Weave calls this overlay sleeve. Weave 1.0 has no other.
type Weave struct{}

const (
	// weaveOverhead is the length in bytes of all headers that Weave adds on an IPv4 underlay
	// (sleeveCrypto.Overhead in Weave's router/sleeve.go):
	//   - 20: the IPv4 header
	//   - 8: the UDP header
	//   - 6: the name of the router that sends the datagram
	//   - 12: the names of the first and the last router of the frame
	//   - 2: the length of the frame
	//   - 14: the Ethernet header of the frame
	weaveOverhead = 62
	// weavePerPacket is the part of weaveOverhead that each packet has if one datagram carries several: the names of the first and the
	// last router (12) and the length (2).
	weavePerPacket = 14
	weaveRouter    = "weaver"
	weaveUplink    = "vethwe-bridge" // end on the bridge of the veth pair; weaver captures from the other end
	weaveAnswers   = time.Second     // timeout of a request to weaver
	weaveMost      = 1 << 20         // maximum length of an answer in bytes
)

var weaveProgram = program.Program{
	Name:    weaveRouter,
	Module:  "github.com/weaveworks/weave@v2.6.5+incompatible",
	Build:   "`make weaver` in Windtunnel's source (needs a C compiler and libpcap-dev)",
	Version: []string{weaveRouter, "--version"},
}

func (Weave) Name() string { return "weave" }
func (Weave) About() About {
	return About{
		Title: "Weave", Description: "containers on a Linux bridge on each node, joined by Weave Net's router in user space (sleeve)",
		// With this MTU a packet fits into one of weaver's datagrams. Weave itself sets 65535, and
		// containers then learn the value from weaver's ICMP errors.
		Overhead:  weaveOverhead,
		PerPacket: weavePerPacket,
		SetUp:     1900 * time.Millisecond, // the routers connect and discover the path MTU
	}
}
func (Weave) Needs() ([]string, []program.Program) {
	return []string{"veth", "bridge", "ifb"}, []program.Program{weaveProgram, iptablesProgram}
}

func (w Weave) Attach(n *Node) error {
	if err := addBridge(n, bridgeDevice, MTU(w, n.MTU)); err != nil {
		return err
	}
	for _, e := range n.Endpoints {
		if err := w.connect(n, e); err != nil {
			return err
		}
	}
	return w.startRouter(n)
}

// connect connects a container to the node's bridge. weaver reads its frames from a packet socket.
func (w Weave) connect(n *Node, e Endpoint) error {
	if err := connectContainer(n, e, MTU(w, n.MTU)); err != nil {
		return err
	}
	return e.Space.Offloads(EndpointDevice, userspaceOffloads)
}

// Changes implements Changer.
func (w Weave) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: joins(w.connect, removeVif)}
}

// startRouter starts weaver and waits until it has connected to all other nodes.
func (w Weave) startRouter(n *Node) error {
	home, err := n.home()
	if err != nil {
		return err
	}
	socket := filepath.Join(home, "weave.sock")
	return n.start(daemon{
		name: weaveRouter,
		argv: w.argv(n, home, socket),
		env:  append(weaveEnv(home), "CHECKPOINT_DISABLE=1"), // do not look for a newer version on the Internet
		ready: func() error {
			status, err := askWeave(socket, "/status/connections", nil)
			if err != nil {
				return err
			}
			err = weaveConnected(status, len(n.Underlay)-1, MTU(w, n.MTU))
			if err == nil || n.Index == 0 {
				return err
			}
			// Each poll requests a new attempt: weaver itself retries only after 2 s or more.
			_, failed := askWeave(socket, "/connect", url.Values{"peer": weavePeers(n)})
			return errors.Join(err, failed)
		},
	})
}

// weavePeers returns the addresses of the nodes that this node's weaver connects to: the nodes with
// a lower index. So only one node of each pair connects. If both connect at the same time, weaver
// closes one connection, and sometimes the other carries no data.
func weavePeers(n *Node) (addrs []string) {
	for _, addr := range n.Underlay[:n.Index] {
		addrs = append(addrs, addr.String())
	}
	return addrs
}

// weaveEnv returns the environment of iptables. It names a separate lock file for each node, so
// that nodes do not wait for each other.
func weaveEnv(home string) []string {
	return []string{"XTABLES_LOCKFILE=" + filepath.Join(home, "xtables.lock")}
}

func (Weave) argv(n *Node, home, socket string) []string {
	return []string{
		weaveProgram.Path(),
		"--name=" + fmt.Sprintf("02:77:65:61:76:%02x", n.Index), "--nickname=" + n.Name,
		"--host=" + n.Underlay[n.Index].String(),
		"--weave-bridge=" + bridgeDevice, "--no-fastdp",
		"--no-dns", "--docker-api=", "--no-discovery",
		"--http-addr=" + socket, "--db-prefix=" + filepath.Join(home, "weave"),
	}
}

// askWeave sends an HTTP request to weaver and returns the body of the answer. The method is POST
// if form is not nil, else GET.
func askWeave(socket, path string, form url.Values) (string, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: weaveAnswers}
	ask := func() (*http.Response, error) { return client.Get("http://weave" + path) }
	if form != nil {
		ask = func() (*http.Response, error) { return client.PostForm("http://weave"+path, form) }
	}
	answer, err := ask()
	if err != nil {
		return "", fmt.Errorf("ask weaver: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, weaveMost))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err != nil {
		return "", fmt.Errorf("ask weaver for %s: %w", path, err)
	}
	return string(text), nil
}

// weaveConnected returns an error if fewer than peers connections are established with this path
// MTU. status is weaver's answer to /status/connections.
func weaveConnected(status string, peers, mtu int) error {
	connected := 0
	for line := range strings.Lines(status) {
		fields := strings.Fields(line) // direction, address, state, overlay, peer, MTU
		if len(fields) >= 4 && fields[2] == "established" && fields[3] == "sleeve" && fields[len(fields)-1] == "mtu="+strconv.Itoa(mtu) {
			connected++
		}
	}
	if connected < peers {
		return fmt.Errorf("%d of %d other nodes are connected with a path MTU of %d; weaver lists: %s", connected, peers, mtu, strings.TrimSpace(status))
	}
	return nil
}

// Detach also removes weaver's iptables rules. weaver adds them only when it starts.
func (Weave) Detach(n *Node) error {
	var errs []error
	if home, err := n.home(); len(n.daemons) > 0 && err == nil {
		errs = append(errs, removeRules(n, weaveEnv(home)))
	}
	return errors.Join(append(errs, n.stopDaemons(), disconnectContainers(n), n.Space.Remove(weaveUplink), n.Space.Remove(bridgeDevice))...)
}

func (Weave) Devices(n *Node) []Device {
	return hops(n, vifName, bridgeHop, tunnelHop(weaveUplink))
}
