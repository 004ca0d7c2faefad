package system

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// wireGuardNodes are the nodes of a testbed, without a testbed.
func wireGuardNodes(testbed string) []*Node {
	peers := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}
	var nodes []*Node
	for i := range peers {
		nodes = append(nodes, &Node{Index: i, Name: testbed + "-" + string(rune('a'+i)), Underlay: peers})
	}
	return nodes
}

func TestEveryNodeKnowsTheOthersPublicKeysWithoutAsking(t *testing.T) {
	private := regexp.MustCompile(`PrivateKey = (\S+)`)
	public := regexp.MustCompile(`PublicKey = (\S+)`)
	nodes := wireGuardNodes("wt-run1")
	keys := map[string]bool{}
	for i, n := range nodes {
		text := must.Get(wireGuardConfig(n))(t)
		own := private.FindStringSubmatch(text)[1]
		if raw, err := base64.StdEncoding.DecodeString(own); err != nil || len(raw) != 32 || raw[0]&7 != 0 || raw[31]&0xc0 != 0x40 {
			t.Errorf("node %d: private key %s (%v) is no clamped one of 32 bytes", i, own, err)
		}
		keys[own] = true
		var want []string
		for j := range nodes {
			if j == i {
				continue
			}
			key := must.Get(wireGuardKey(nodes[j], j))(t) // the key that node j makes for itself
			want = append(want, base64.StdEncoding.EncodeToString(key.PublicKey().Bytes()))
		}
		var got []string
		for _, m := range public.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("node %d has the peers %v, want %v", i, got, want)
		}
	}
	other := must.Get(wireGuardConfig(wireGuardNodes("wt-run2")[0]))(t)
	keys[private.FindStringSubmatch(other)[1]] = true
	must.Equal(t, 4, len(keys))
}

func TestAPeerIsAllowedItsOwnSubnetsOnly(t *testing.T) {
	text := must.Get(wireGuardConfig(wireGuardNodes("wt-run1")[1]))(t)
	for _, want := range []string{
		"ListenPort = 51820\n",
		"Endpoint = 192.0.2.1:51820\nAllowedIPs = 10.31.0.0/20, fd31:c::/112\n",
		"Endpoint = 192.0.2.3:51820\nAllowedIPs = 10.31.32.0/20, fd31:c::2:0/112\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
	if strings.Contains(text, "192.0.2.2:") {
		t.Errorf("%s\nhas the node itself as a peer", text)
	}
}

func TestTheMTULeavesRoomForWireGuardsHeaders(t *testing.T) {
	must.Equal(t, 1440, MTU(WireGuard{}, 1500))
}

func needWireGuard(t *testing.T) {
	t.Helper()
	for _, p := range programsOf(WireGuard{}) {
		if _, err := exec.LookPath(p.Name); err != nil {
			t.Skipf("%s is not installed; get it with: %s", p.Name, p.Remedy())
		}
	}
}

// What wg shows is what was derived, and the kernel's own socket and device
// names of the host stay out of it.
func TestTheDeviceHasTheDerivedKeysAndItsSocketInTheNodesHome(t *testing.T) {
	needWireGuard(t)
	n := loneNode(t)
	must.Succeed(t, attach(t, WireGuard{}, n))
	var shown string
	must.Succeed(t, n.Space.Do(func() (err error) {
		argv, err := wireGuardApart(n, "wg", "show", wireGuardDevice, "dump")
		if err == nil {
			shown, err = n.command(argv...)
		}
		return err
	}))
	own := must.Get(wireGuardKey(n, 0))(t)
	peer := must.Get(wireGuardKey(n, 1))(t)
	for _, want := range []string{
		base64.StdEncoding.EncodeToString(own.Bytes()) + "\t" + base64.StdEncoding.EncodeToString(own.PublicKey().Bytes()) + "\t51820",
		base64.StdEncoding.EncodeToString(peer.PublicKey().Bytes()) + "\t(none)\t192.0.2.2:51820\t10.31.16.0/20,fd31:c::1:0/112",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("wg shows %q, want %q in it", shown, want)
		}
	}
	if kernelWireGuard() {
		return
	}
	must.Equal(t, "wireguard-go", n.Space.Settings().Others[wireGuardRuns])
	home := must.Get(n.home())(t)
	if _, err := os.Stat(wireGuardSocket(home)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/var/run/wireguard/" + wireGuardDevice + ".sock"); err == nil {
		t.Error("the socket is in the host's /var/run")
	}
}

// A socket that is bound and does not listen yet refuses connections.
func TestAWireGuardGoThatStartsKeepsItsSocket(t *testing.T) {
	home := t.TempDir()
	at := wireGuardSocket(home)
	must.Succeed(t, os.MkdirAll(filepath.Dir(at), 0o700))
	fd := must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))(t)
	defer unix.Close(fd)
	must.Succeed(t, unix.Bind(fd, &unix.SockaddrUnix{Name: at}))
	if err := wireGuardListens(home); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("before listen: %v, want a refused connection", err)
	}
	if _, err := os.Stat(at); err != nil {
		t.Errorf("the question deleted the socket: %v", err)
	}
	must.Succeed(t, unix.Listen(fd, 1))
	must.Succeed(t, wireGuardListens(home))
}

func TestWireGuardThatCannotStartHasAReason(t *testing.T) {
	needWireGuard(t)
	t.Run("port in use", func(t *testing.T) {
		n := loneNode(t)
		listen(t, n, wireGuardPort)
		must.Fail(t, attach(t, WireGuard{}, n), "UDP port 51820", "address already in use")
	})
	t.Run("device name taken", func(t *testing.T) {
		n := loneNode(t)
		take(t, n.Space, wireGuardDevice)
		must.Fail(t, attach(t, WireGuard{}, n), "wg0", "file exists")
	})
	t.Run("wireguard-go that fails", func(t *testing.T) {
		if kernelWireGuard() {
			t.Skip("this kernel's own serves")
		}
		n := loneNode(t)
		dir := t.TempDir()
		script := "#!/bin/sh\necho no entropy left >&2\nexit 7\n"
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "wireguard-go"), []byte(script), 0o755))
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		must.Fail(t, attach(t, WireGuard{}, n), "wireguard-go ended at once (exit status 7)", "no entropy left")
	})
}
