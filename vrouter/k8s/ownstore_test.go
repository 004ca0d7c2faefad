package k8s

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// A cluster whose nodes have no podCIDRs, and one of which has no IPv6. An operator runs its store,
// an etcd with TLS.
func TestAClusterWithoutPodCIDRs(t *testing.T) {
	dir := t.TempDir()
	authority := must.Get(openAuthority(dir))(t)
	files := map[string][2]string{}
	for name, address := range map[string]string{"server": testcluster.MasterAddress, "node": ""} {
		p := must.Get(sign(authority, name, strings.Fields(address)...))(t)
		cert, key, err := p.write(dir, name)
		must.Succeed(t, err)
		files[name] = [2]string{cert, key}
	}
	ca := filepath.Join(dir, "ca.pem")
	k := install(t, testcluster.Options{},
		"--store", "etcd://"+testcluster.MasterAddress+":2579", "--tls-ca", ca, "--tls-cert", files["node"][0], "--tls-key", files["node"][1])
	for _, which := range []string{"all", "default"} {
		if said, err := k.OnNode(k.Nodes[1], "sysctl", "-qw", "net.ipv6.conf."+which+".disable_ipv6=1"); err != nil {
			t.Fatalf("switch IPv6 off on %s: %v: %s", k.Nodes[1].Name, err, said)
		}
	}
	before := k.inventory()
	k.Step("without the store no agent is ready, and its log names the store", func(t *testing.T) {
		k.kubectl(k.manifest, "apply", "-f", "-")
		k.await("the log names the store", func() bool {
			said, err := k.Kubectl("", "-n", Namespace, "logs", "-l", "app="+NodeName, "--tail=-1")
			return err == nil && strings.Contains(said, "etcd://"+testcluster.MasterAddress+":2579 is not usable")
		})
	})
	address := "https://" + testcluster.MasterAddress + ":2579"
	etcd := k.Command("etcd", "--data-dir", filepath.Join(dir, "etcd"), "--log-level", "error", "--listen-client-urls", address, "--advertise-client-urls", address, "--listen-peer-urls", "http://127.0.0.1:2580",
		"--client-cert-auth", "--trusted-ca-file", ca, "--cert-file", files["server"][0], "--key-file", files["server"][1])
	must.Succeed(t, etcd.Start())
	t.Cleanup(func() { etcd.Process.Signal(syscall.SIGTERM); _ = etcd.Wait() })
	k.Step("with the store the nodes are ready", k.testApply)
	k.Step("pods have any addresses of the network, and events of the nodes say so", k.testAnyAddress)
	k.Step("the check finds that pods reach everything", func(t *testing.T) { k.testCheck(t, 2*8) })
	k.Step("pods without a permission name it", k.testPermissions)
	k.Step("a node that gets a podCIDR uses it", k.testLatePodCIDR)
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

// podsRun starts a pod on each node, and returns their addresses.
func (k *installation) podsRun() (addresses []netip.Addr) {
	k.kubectl(k.podsManifest(), "apply", "-f", "-")
	k.kubectl("", "wait", "--for=condition=Ready", "pods", "--all", "--timeout=90s")
	for _, p := range k.pods() {
		addresses = append(addresses, p.Status.PodIPs[0].IP)
	}
	return addresses
}

func (k *installation) testAnyAddress(t *testing.T) {
	k.await("the default service account is there", func() bool { return len(k.lines("get", "serviceaccount", "default", "-o", "name")) == 1 })
	all := k.podsRun()
	for i, a := range all {
		if !netip.MustParsePrefix(testcluster.PodNetwork).Contains(a) {
			t.Errorf("a pod has the address %v", a)
		}
		k.ping(k.Nodes[i], all[1-i].String(), a.String())
		if said := k.kubectl("", "describe", "node", k.Nodes[i].Name); !strings.Contains(said, "has no podCIDR") {
			t.Errorf("no event of the node says that it has no podCIDR:\n%s", said)
		}
	}
}

// testLatePodCIDR gives a node a podCIDR. Its next pod has an address of it.
func (k *installation) testLatePodCIDR(t *testing.T) {
	const cidr = "10.88.77.0/24"
	k.kubectl("", "patch", "node", k.Nodes[1].Name, "-p", `{"spec": {"podCIDR": "`+cidr+`", "podCIDRs": ["`+cidr+`"]}}`)
	k.await("the plugin's configuration has the podCIDR", func() bool {
		text, err := os.ReadFile(k.Nodes[1].Root + ConflistPath("/etc/cni/net.d"))
		return err == nil && strings.Contains(string(text), "10.88.77.")
	})
	k.kubectl(k.podsManifest(), "delete", "--wait", "-f", "-")
	if all := k.podsRun(); !netip.MustParsePrefix(cidr).Contains(all[1]) {
		t.Errorf("the pods have the addresses %v, want one of %s on the second node", all, cidr)
	}
}

// testPermissions takes the permissions of the agents away, one at a time.
func (k *installation) testPermissions(t *testing.T) {
	pods := k.pods()
	for _, c := range []struct {
		role   []string
		change string
		denied string
	}{
		{[]string{"clusterrole", NodeName}, `{"op": "replace", "path": "/rules/3/resources", "value": ["services"]}`, `cannot list resource \"pods\"`},
		{[]string{"clusterrole", NodeName}, `{"op": "replace", "path": "/rules/3/resources", "value": ["pods"]}`, `cannot list resource \"services\"`},
		{[]string{"clusterrole", NodeName}, `{"op": "remove", "path": "/rules/4"}`, `cannot list resource \"networkpolicies\"`},
		{[]string{"clusterrole", NodeName}, `{"op": "remove", "path": "/rules/5"}`, `cannot list resource \"endpointslices\"`},
		{[]string{"role", NodeName, "-n", Namespace}, `{"op": "remove", "path": "/rules/0"}`, `cannot get resource \"secrets\"`},
	} {
		k.kubectl("", append(append([]string{"patch"}, c.role...), "--type=json", "-p", "["+c.change+"]")...)
		k.kubectl("", "-n", Namespace, "delete", "pods", "-l", "app="+NodeName, "--wait")
		k.await("the log says: "+c.denied, func() bool {
			said, err := k.Kubectl("", "-n", Namespace, "logs", "-l", "app="+NodeName, "--tail=-1")
			return err == nil && strings.Contains(said, c.denied)
		})
		for i, p := range pods {
			k.ping(k.Nodes[i], pods[1-i].Status.PodIP, p.Status.PodIP)
		}
		k.kubectl(k.manifest, "apply", "-f", "-")
		k.kubectl("", "-n", Namespace, "rollout", "status", "daemonset/"+NodeName, "--timeout=60s")
	}
}
