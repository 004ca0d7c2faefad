package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// Packages of programs that built compiles.
const (
	portmap = "github.com/containernetworking/plugins/plugins/meta/portmap"
	cnitool = "github.com/containernetworking/cni/cnitool"
)

// built compiles a program of a module that this module depends on, and returns its path. In a guest the program is there already.
func built(t *testing.T, pkg string) string {
	t.Helper()
	if kerneltest.In() {
		return must.Get(exec.LookPath(filepath.Base(pkg)))(t)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// says serves TCP, and tells everybody who comes one word.
func says(t *testing.T, w *workload, port uint16, word string) {
	t.Helper()
	var l net.Listener
	err := in(w.ns, func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(w.ip(4), port).String())
		return err
	})
	must.Succeed(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, word)
			c.Close()
		}
	}()
}

// heard is what is said at an address, from a namespace.
func heard(ns netns.NsHandle, at string) (word string, err error) {
	err = in(ns, func() error {
		c, err := net.DialTimeout("tcp", at, 500*time.Millisecond)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		text, err := io.ReadAll(c)
		word = string(text)
		return err
	})
	return word, err
}

// The plugin portmap comes after vrouter's: a container's port is reached at the
// node's address, from the node and from others, and the node is not reached by
// containers for all that.
func TestPortsAreMappedAfterVRouter(t *testing.T) {
	must.Long(t)
	t.Parallel()
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("iptables is not installed (Debian package: iptables)")
	}
	b := cniBed(t)
	a, c := b.nodes[0], b.nodes[1]
	must.Succeed(t, in(a.ns, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) }))
	ctx := context.Background()
	r := newRuntime(t, a, `}, {"type": "portmap", "capabilities": {"portMappings": true}, "masqAll": true`)
	r.CNIConfig = libcni.NewCNIConfigWithCacheDir(append(r.Path, filepath.Dir(built(t, portmap))), t.TempDir(), nil)
	x, y := &workload{bed: b, ns: b.namespace("x")}, b.connected("y", "red", 1)
	conf := r.container("x")
	conf.CapabilityArgs = map[string]any{"portMappings": []map[string]any{{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}}}
	// portmap works where the plugins are started: on the node.
	must.Succeed(t, in(a.ns, func() error { _, err := r.AddNetworkList(ctx, r.list, conf); return err }))
	var own netip.Addr
	for _, p := range rows[model.Port](a, "port", "list") {
		switch {
		case p.Owner == "pods/x/eth0":
			x.port = p
		case p.Attach.Host:
			own = p.IPs[0]
		}
	}
	if !own.IsValid() {
		t.Fatal("the node has no port of its own")
	}
	says(t, x, 80, "hello")
	for who, ns := range map[string]netns.NsHandle{"the node itself": a.ns, "another node": c.ns} {
		soon(t, who+" reaches the mapped port", func() error {
			word, err := heard(ns, netip.AddrPortFrom(a.v4, 8080).String())
			if err == nil && word != "hello" {
				err = fmt.Errorf("it hears %q", word)
			}
			return err
		})
	}
	// What listens on the node is not for containers, of this node or another.
	var l net.Listener
	must.Succeed(t, in(a.ns, func() (err error) { l, err = net.Listen("tcp", "0.0.0.0:9999"); return err }))
	defer l.Close()
	if _, err := heard(a.ns, netip.AddrPortFrom(own, 9999).String()); err != nil && !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("the node does not listen: %v", err)
	}
	for _, w := range []*workload{x, y} {
		if _, err := heard(w.ns, netip.AddrPortFrom(own, 9999).String()); err == nil {
			t.Errorf("container %s reaches the node", w.port.Name)
		}
		if _, err := w.command("ping", "-c", "1", "-W", "0.3", own.String()); err == nil {
			t.Errorf("container %s pings the node", w.port.Name)
		}
	}

	must.Succeed(t, in(a.ns, func() error { return r.DelNetworkList(ctx, r.list, conf) }))
	if _, err := heard(c.ns, netip.AddrPortFrom(a.v4, 8080).String()); err == nil {
		t.Error("the port is still mapped")
	}
	plain := newRuntime(t, a, "")
	must.Succeed(t, plain.GCNetworkList(ctx, plain.list, &libcni.GCArgs{}))
	soon(t, "the node leaves the network", func() error {
		if ports := rows[model.Port](a, "port", "list"); len(ports) > 0 {
			return fmt.Errorf("left: %+v", ports)
		}
		return nil
	})
}

// cnitool is the specification's own client.
func TestCNIsReferenceToolWorks(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := cniBed(t)
	a := b.nodes[0]
	const cache = "/var/lib/cni" // the tool's own, and not to be chosen
	if _, err := os.Stat(cache); os.IsNotExist(err) {
		t.Cleanup(func() { os.Remove(cache + "/results"); os.Remove(cache) })
	}
	tool := built(t, cnitool)
	r := newRuntime(t, a, "")
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "10-pods.conflist"), r.list.Bytes, 0o600))
	ns := b.namespace("x")
	run := func(verb string) (string, error) {
		cmd := exec.Command(tool, verb, "pods", "/run/netns/"+b.name+"-x")
		cmd.Env = append(os.Environ(), "NETCONFPATH="+dir, "CNI_PATH="+r.Path[0])
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, verb := range []string{"status", "add", "check"} {
		out, err := run(verb)
		if err != nil {
			t.Fatalf("CNI %s fails: %v\n%s", verb, err, out)
		}
		if verb == "add" && !strings.Contains(out, `"10.1.0.2/16"`) {
			t.Errorf("add answers %s", out)
		}
	}
	if _, err := b.handle(ns).LinkByName("eth0"); err != nil {
		t.Errorf("the container has no device: %v", err)
	}
	for range 2 {
		if out, err := run("del"); err != nil {
			t.Errorf("del: %v\n%s", err, out)
		}
	}
	if out, err := run("check"); err == nil {
		t.Errorf("check of what is gone: %s", out)
	}
	if ports := answer(a, (*api.Client).State).Ports; len(ports) > 0 {
		t.Errorf("left: %+v", ports)
	}
}
