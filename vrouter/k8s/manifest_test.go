package k8s

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

var small = Manifest{Image: "reg.test/vrouter:1", Network: "pods", Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}

// objects decodes the objects of a manifest.
func objects(t *testing.T, m Manifest) (all []map[string]any) {
	t.Helper()
	text := must.Get(m.YAML())(t)
	for d := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		all = append(all, o)
	}
}

func kinds(all []map[string]any) (kinds []string) {
	for _, o := range all {
		kinds = append(kinds, o["kind"].(string))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// The store is part of the installation, unless the operator runs it.
func TestTheManifestHasAStoreUnlessTheOperatorRunsIt(t *testing.T) {
	all := []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Deployment", "Namespace", "Role", "RoleBinding", "Secret", "ServiceAccount"}
	must.Equal(t, all, kinds(objects(t, small)))
	external := small
	external.Store, external.Access = "etcd://192.0.2.1", map[string][]byte{"ca.pem": []byte("-----BEGIN\nx\n")}
	got := objects(t, external)
	if slices.ContainsFunc(got, func(o map[string]any) bool {
		return o["metadata"].(map[string]any)["name"] == StoreName && o["kind"] != "Secret"
	}) {
		t.Error("the manifest has a store although the operator runs one")
	}
	if text, err := external.YAML(); err != nil || !strings.Contains(text, "--tls-ca=") || strings.Contains(text, "--tls-cert=") {
		t.Errorf("the controller must have the flags of the given files, and no other: %v\n%s", err, text)
	}
	at := slices.IndexFunc(got, func(o map[string]any) bool { return o["kind"] == "Secret" })
	data := got[at]["stringData"].(map[string]any)
	if data["address"] != "etcd://192.0.2.1" || data["ca.pem"] != "-----BEGIN\nx\n" {
		t.Errorf("the access to the store is %v", data)
	}
}

// The kubelet writes an IPv6 address without brackets.
func TestTheStoreOfAnIPv6ClusterHasAnAddress(t *testing.T) {
	text := must.Get(small.YAML())(t)
	if !strings.Contains(text, "--listen=$(HOST_IP)\n") {
		t.Errorf("the store must add the port itself:\n%s", text)
	}
	for host, want := range map[string]string{"192.0.2.1": "192.0.2.1:2479", "2001:db8::1": "[2001:db8::1]:2479"} {
		if got := (&Store{Host: host}).listen(); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
		if _, err := store.ParseAddress("etcd://" + (&Store{Host: host}).listen()); err != nil {
			t.Error(err)
		}
	}
}

// Without a resource's name, the roles have only these rights: no wildcard, and no write access
// to objects that are not vrouter's, except new events, requests for certificates, and the status of nodes.
func TestTheRolesAreSmall(t *testing.T) {
	text := must.Get(small.YAML())(t)
	want := []string{
		// the agents
		"[nodes], verbs: [get]", "[namespaces], verbs: [get, list, watch]", "[events], verbs: [create]",
		"[pods, services], verbs: [list, watch]", "[networkpolicies], verbs: [list, watch]", "[endpointslices], verbs: [list, watch]",
		"[certificatesigningrequests], verbs: [create, get]",
		// the store; the API server accepts the updates for requests of its signer alone
		"[nodes], verbs: [list, watch]", "[certificatesigningrequests], verbs: [get, list, watch]",
		"[certificatesigningrequests/approval, certificatesigningrequests/status], verbs: [update]", "[pods], verbs: [get]",
		// the controller
		"[nodes, pods], verbs: [get, list, watch]", "[nodes/status], verbs: [patch]",
	}
	var got []string
	for _, r := range regexp.MustCompile(`(?m)^- \{apiGroups: .*?resources: (.*?)\}`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(r[1], "resourceNames") {
			got = append(got, r[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rights without names of resources:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAManifestThatCannotWorkIsRefused(t *testing.T) {
	for want, change := range map[string]func(*Manifest){
		"the nodes of a cluster share their store": func(m *Manifest) { m.Store = "file" },
		"unknown store": func(m *Manifest) { m.Store = "http://x" },
		"--store-node and --store exclude each other": func(m *Manifest) { m.Store, m.StoreNode = "etcd://x", "a" },
		"--kube-proxy-replacement needs --api-server": func(m *Manifest) { m.KubeProxyReplacement = true },
		"write HOST:PORT":    func(m *Manifest) { m.APIServer = "192.0.2.1" },
		"or port is missing": func(m *Manifest) { m.APIServer = ":6443" },
		"need --store":       func(m *Manifest) { m.Access = map[string][]byte{"ca.pem": nil} },
		"name":               func(m *Manifest) { m.Network = "" },
		"encapsulation":      func(m *Manifest) { m.Encapsulations = []model.Encapsulation{"gre"} },
		"subnet":             func(m *Manifest) { m.Subnets = append(m.Subnets, m.Subnets[0]) },
	} {
		m := small
		m.Subnets = slices.Clone(m.Subnets)
		change(&m)
		_, err := m.YAML()
		must.Fail(t, err, want)
	}
}

// No pod gets the first address of its node's podCIDR, because many programs take it for the subnet's address.
func TestNoPodGetsTheFirstAddressOfItsNode(t *testing.T) {
	n := &Node{Network: model.Network{Subnets: small.Subnets}}
	var is facts
	is.Spec.PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.1.3.0/24"), netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("10.1.4.7/32")}
	if ranges, outside := n.ranges(&is); fmt.Sprint(ranges, outside) != "[10.1.3.1-10.1.3.255 10.1.4.7] [10.2.0.0/24]" {
		t.Errorf("ranges %v, outside %v", ranges, outside)
	}
}

// Without kube-proxy, no pod of the installation connects to the ClusterIP of the API server.
func TestWithoutKubeProxyAllPodsHaveTheAPIServersAddress(t *testing.T) {
	m := small
	m.KubeProxyReplacement, m.APIServer = true, "[2001:db8::1]:6443"
	text := must.Get(m.YAML())(t)
	const host, port = `{name: KUBERNETES_SERVICE_HOST, value: "2001:db8::1"}`, `{name: KUBERNETES_SERVICE_PORT, value: "6443"}`
	if strings.Count(text, host) != 3 || strings.Count(text, port) != 3 || strings.Count(text, "- --kube-proxy-replacement\n") != 1 {
		t.Errorf("store, controller and agent must have the address, and the agent the flag:\n%s", text)
	}
	objects(t, m) // it is YAML
	if text := must.Get(small.YAML())(t); strings.Contains(text, "KUBERNETES_SERVICE") || strings.Contains(text, "kube-proxy") {
		t.Errorf("the manifest of a cluster with kube-proxy differs from before:\n%s", text)
	}
}
