package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// cniRuntime is a container runtime's side of CNI: libcni, with the plugin's
// program where it looks for plugins.
type cniRuntime struct {
	*libcni.CNIConfig
	list *libcni.NetworkConfigList
	bed  *bed
}

// newRuntime has the plugin for one node's containers. extra is put into the
// plugin's configuration.
func newRuntime(t *testing.T, n *node, extra string) *cniRuntime {
	t.Helper()
	bin := t.TempDir()
	// A link, because a new copy cannot be executed (ETXTBSY) while a child process that another test has just
	// forked still has it open for writing.
	must.Succeed(t, os.Symlink(program, filepath.Join(bin, "vrouter")))
	text := fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "pods", "plugins": [{"type": "vrouter", "network": "red", "socket": %q, "capabilities": {"ips": true, "mac": true, "bandwidth": true, "portMappings": true}%s}]}`, n.config["socket"], extra)
	list, err := libcni.ConfListFromBytes([]byte(text))
	must.Succeed(t, err)
	return &cniRuntime{libcni.NewCNIConfigWithCacheDir([]string{bin}, t.TempDir(), nil), list, n.bed}
}

func (r *cniRuntime) container(id string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: id, NetNS: "/run/netns/" + r.bed.name + "-" + id, IfName: "eth0"}
}

// add makes a container, and returns it as a workload.
func (r *cniRuntime) add(t *testing.T, id string) *workload {
	t.Helper()
	w := &workload{bed: r.bed, ns: r.bed.namespace(id)}
	w.port.IPs = addresses(r.mustAdd(t, id)...)
	w.port.Name, w.port.Attach.Netns = id, r.bed.name+"-"+id
	return w
}

func (r *cniRuntime) mustAdd(t *testing.T, id string) (ips []string) {
	t.Helper()
	result, err := r.AddNetworkList(context.Background(), r.list, r.container(id))
	must.Succeed(t, err)
	got, err := types100.NewResultFromResult(result)
	must.Succeed(t, err)
	if len(got.Interfaces) != 2 || got.Interfaces[1].Name != "eth0" || got.Interfaces[1].Mac == "" || len(got.IPs) != 2 || len(got.Routes) != 2 {
		t.Errorf("result %+v", got)
	}
	for _, ip := range got.IPs {
		ips = append(ips, ip.Address.IP.String())
	}
	return ips
}

// cniBed is two nodes with one network.
func cniBed(t *testing.T) *bed {
	t.Helper()
	b := fleetBed(t, "10s")
	b.nodes[0].run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64")
	return b
}

func TestCNIGivesContainersOfTwoNodesANetwork(t *testing.T) {
	t.Parallel()
	b := cniBed(t)
	ctx := context.Background()
	first, second := newRuntime(t, b.nodes[0], ""), newRuntime(t, b.nodes[1], "")
	if err := first.GetStatusNetworkList(ctx, first.list); err != nil {
		t.Errorf("STATUS: %v", err)
	}
	x, y := first.add(t, "x"), second.add(t, "y")
	for _, version := range []int{4, 6} {
		soon(t, "the containers reach each other", func() error { return transfer(x, y, version, 1<<20) })
	}
	if err := first.CheckNetworkList(ctx, first.list, first.container("x")); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	conf := second.container("limited")
	b.namespace("limited")
	conf.CapabilityArgs = map[string]any{"bandwidth": map[string]int{"ingressRate": 40e6, "ingressBurst": 1 << 20, "egressRate": 20e6, "egressBurst": 1 << 20}}
	if _, err := second.AddNetworkList(ctx, second.list, conf); err != nil {
		t.Errorf("ADD with a bandwidth: %v", err)
	}
	if p := rows[model.Port](b.nodes[1], "port", "list"); !slices.ContainsFunc(p, func(p model.Port) bool {
		return p.Owner == "pods/limited/eth0" && p.Bandwidth == model.Bandwidth{Ingress: 40e6, Egress: 20e6}
	}) {
		t.Errorf("its port is not limited: %+v", p)
	}
	must.Succeed(t, second.DelNetworkList(ctx, second.list, conf))
	b.namespace("pod")
	conf = second.container("pod")
	conf.Args = [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "web"}, {"K8S_POD_NAME", "web-0"}, {"K8S_POD_UID", "5c1b"}}
	if _, err := second.AddNetworkList(ctx, second.list, conf); err != nil {
		t.Errorf("ADD for a pod: %v", err)
	}
	if p := rows[model.Port](b.nodes[1], "port", "list"); !slices.ContainsFunc(p, func(p model.Port) bool {
		return p.Pod() == model.Pod{Namespace: "web", Name: "web-0", UID: "5c1b"}
	}) {
		t.Errorf("no port has the pod: %+v", p)
	}
	if table := b.nodes[1].run("port", "list"); !strings.Contains(table, " web/web-0 ") {
		t.Errorf("the table of ports does not name the pod:\n%s", table)
	}
	must.Succeed(t, second.DelNetworkList(ctx, second.list, conf))
	if again := first.mustAdd(t, "x"); again[0] != x.port.IPs[0].String() {
		t.Errorf("ADD again gave %v", again)
	}
	b.nodes[0].run("port", "delete", one[[]model.Port](b.nodes[0], "port", "list")[0].Name)
	must.Fail(t, first.CheckNetworkList(ctx, first.list, first.container("x")), "there is no port")
	for range 2 { // the second time there is nothing to do
		if err := first.DelNetworkList(ctx, first.list, first.container("x")); err != nil {
			t.Errorf("DEL: %v", err)
		}
	}
	if ports := answer(b.nodes[0], (*api.Client).State).Ports; len(ports) != 1 || ports[0].Owner != "pods/y/eth0" {
		t.Errorf("left: %+v", ports)
	}
}

func TestCNIGarbageIsCollected(t *testing.T) {
	t.Parallel()
	b := cniBed(t)
	ctx := context.Background()
	r := newRuntime(t, b.nodes[0], "")
	other := newRuntime(t, b.nodes[1], "")
	r.add(t, "stays")
	r.add(t, "lost")
	other.add(t, "elsewhere")
	err := r.GCNetworkList(ctx, r.list, &libcni.GCArgs{ValidAttachments: []types.GCAttachment{{ContainerID: "stays", IfName: "eth0"}}})
	must.Succeed(t, err)
	var owners []string
	soon(t, "the garbage goes", func() error {
		owners = nil
		for _, p := range answer(b.nodes[0], (*api.Client).State).Ports {
			owners = append(owners, p.Owner)
		}
		slices.Sort(owners)
		if !slices.Equal(owners, []string{"pods/elsewhere/eth0", "pods/stays/eth0"}) {
			return fmt.Errorf("left: %v", owners)
		}
		return nil
	})
}

// A configuration or an environment that cannot work says why, with the
// specification's codes.
func TestErrorsOfCNIHaveTheReason(t *testing.T) {
	t.Parallel()
	b := cniBed(t)
	ctx := context.Background()
	b.namespace("x")
	b.namespace("taken")
	b.nodes[1].run("port", "add", "--name", "taken", "--network", "red", "--ip", "10.1.0.9", "--netns", b.name+"-taken")
	for _, c := range []struct {
		what, extra, want string
		code              uint
	}{
		{"a network that is not there", `, "network": "rad"`, `there is no network "rad"; did you mean "red"?`, 100},
		{"an address manager", `, "ipam": {"type": "host-local"}`, "remove ipam", types.ErrInvalidNetworkConfig},
		{"ranges that are none", `, "ranges": ["10.1"]`, "is not a range of addresses", types.ErrInvalidNetworkConfig},
		{"an address that another port has", `, "args": {"cni": {"ips": ["10.1.0.9"]}}`, "10.1.0.9", 101},
		{"no agent", `, "socket": "/run/no-such.sock"`, "no agent listens on", types.ErrTryAgainLater},
	} {
		r := newRuntime(t, b.nodes[0], c.extra)
		_, err := r.AddNetworkList(ctx, r.list, r.container("x"))
		var typed *types.Error
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that contains %q", c.what, err, c.want)
		} else if !errors.As(err, &typed) || typed.Code != c.code {
			t.Errorf("%s: code %+v", c.what, typed)
		}
	}
	for change, want := range map[*libcni.RuntimeConf]string{
		{ContainerID: "x", NetNS: "/proc/self/ns/net", IfName: "eth0"}:                  "CNI_NETNS is the network namespace of the plugin",
		{ContainerID: "x", NetNS: "/run/netns/" + b.nodes[0].space, IfName: "eth0"}:     "must not use",
		{ContainerID: "x", NetNS: "/run/netns/" + b.name + "-x", IfName: "e%d"}:         `"e%d" is not a device name`,
		{ContainerID: "x", NetNS: filepath.Join(b.dir, "a.yaml"), IfName: "eth0"}:       "is not a network namespace",
		{ContainerID: "x", NetNS: filepath.Join(b.dir, "no-such-file"), IfName: "eth0"}: "does not exist",
	} {
		r := newRuntime(t, b.nodes[0], "")
		_, err := r.AddNetworkList(ctx, r.list, change)
		must.Fail(t, err, want)
	}
	if ports := answer(b.nodes[0], (*api.Client).State).Ports; len(ports) != 1 {
		t.Errorf("after the failures the fleet has the ports %+v, want only port taken", ports)
	}
}

// containersVariable says how many containers come and go under kills.
const containersVariable = "VROUTER_CONTAINERS"

// number is what a variable of the environment says, or what is usual.
func number(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number from 1 on", variable, text)
	}
	return n
}

// Many ADD and DEL at once, with an agent killed in between: no address twice,
// and nothing is left in the end.
func TestCNIUnderLoadAndKillsLeaksNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	containers := number(t, containersVariable, 40)
	b := cniBed(t)
	ctx := context.Background()
	r := []*cniRuntime{newRuntime(t, b.nodes[0], ""), newRuntime(t, b.nodes[1], "")}
	for i := range containers {
		b.namespace(fmt.Sprint("c", i))
	}
	var mu sync.Mutex
	given := map[string]string{}
	ended, killed := make(chan int, 2*containers), make(chan int)
	go func() { // kills the agent whenever so many containers have been added or deleted
		const apart = 10
		n := 0
		for range ended {
			if n++; n%apart == 0 {
				b.nodes[1].kill(syscall.SIGKILL)
				b.nodes[1].start()
			}
		}
		killed <- n / apart
	}()
	each := func(do func(i int)) {
		work := make(chan int)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for i := range work {
					do(i)
					ended <- i
				}
			})
		}
		for i := range containers {
			work <- i
		}
		close(work)
		all.Wait()
	}
	// As a runtime does: what failed is tried again.
	patiently := func(what string, do func() error) {
		deadline := time.Now().Add(60 * patience * time.Second)
		for {
			err := do()
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: %v", what, err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	began := time.Now()
	each(func(i int) {
		id := fmt.Sprint("c", i)
		patiently("ADD "+id, func() error {
			result, err := r[i%2].AddNetworkList(ctx, r[i%2].list, r[i%2].container(id))
			if err != nil {
				return err
			}
			got, err := types100.NewResultFromResult(result)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, ip := range got.IPs {
				if other := given[ip.Address.IP.String()]; other != "" && other != id {
					t.Errorf("%s and %s both have %s", other, id, ip.Address.IP)
				}
				given[ip.Address.IP.String()] = id
			}
			return nil
		})
	})
	added := time.Since(began)
	each(func(i int) {
		id := fmt.Sprint("c", i)
		patiently("DEL "+id, func() error { return r[i%2].DelNetworkList(ctx, r[i%2].list, r[i%2].container(id)) })
	})
	close(ended)
	t.Logf("%d containers added in %v and deleted in %v, while an agent was killed %d times", containers, added, time.Since(began)-added, <-killed)
	soon(t, "all is gone", func() error {
		ports := answer(b.nodes[0], (*api.Client).State).Ports
		if len(ports) > 0 {
			return fmt.Errorf("%d ports are left, such as %s", len(ports), ports[0].Name)
		}
		return nil
	})
	for _, n := range b.nodes {
		soon(t, "devices are gone", func() error {
			h := b.handle(n.ns)
			links, err := h.LinkList()
			if err != nil {
				return err
			}
			for _, l := range links {
				if strings.HasPrefix(l.Attrs().Name, "vr-") && (l.Type() == "veth" || l.Type() == "netkit") {
					return fmt.Errorf("node %s still has %s", n.name, l.Attrs().Name)
				}
			}
			return nil
		})
	}
}
