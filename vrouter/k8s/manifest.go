// Package k8s makes vrouter the network of a Kubernetes cluster: the manifest, the pods that it
// describes, the test of a cluster's network, and the controller.
package k8s

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Manifest describes an installation.
type Manifest struct {
	Image          string
	Network        string         // name of the network of all pods
	Subnets        []netip.Prefix // of the network
	Encapsulations []model.Encapsulation
	// Store is the address of an etcd that the operator runs. "": the manifest has a store.
	Store string
	// Access has files for the Secret with the access to Store: ca.pem, node.pem, node-key.pem.
	Access map[string][]byte
	// StoreNode is the node that runs the store of the manifest. "": a node of the control plane.
	StoreNode string
	// APIServer is the address at which the pods of the installation reach the API server, HOST:PORT. "": the ClusterIP of
	// the service kubernetes.
	APIServer string
	// KubeProxyReplacement makes vrouter replace kube-proxy.
	KubeProxyReplacement bool
}

// Namespace is the Kubernetes namespace of an installation's objects.
const Namespace = "vrouter"

//go:embed manifest.yaml
var manifestText string

// YAML returns the objects. It returns an error if pods could not start with these values.
func (m Manifest) YAML() (string, error) {
	if m.Store != "" {
		a, err := store.ParseAddress(m.Store)
		if err != nil {
			return "", err
		}
		if a.Kind != store.KindEtcd {
			return "", fmt.Errorf("--store %s: the nodes of a cluster share their store; write etcd://HOST:PORT,…, or omit --store: the manifest then has a store", m.Store)
		}
		if m.StoreNode != "" {
			return "", errors.New("--store-node and --store exclude each other: with --store the manifest has no store")
		}
	} else if len(m.Access) > 0 {
		return "", errors.New("--tls-ca, --tls-cert and --tls-key need --store: the store of the manifest makes its certificates itself")
	}
	if m.KubeProxyReplacement && m.APIServer == "" {
		return "", errors.New("--kube-proxy-replacement needs --api-server HOST:PORT, because an agent cannot reach the ClusterIP of the API server before it has started")
	}
	host, port, err := m.apiServer()
	if err != nil {
		return "", err
	}
	network := podNetwork(m.Network, m.Subnets)
	network.ID = 1
	node := model.Node{Name: "node", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Encapsulations: m.Encapsulations}
	if err := (model.State{Nodes: []model.Node{node}, Networks: []model.Network{network}}).WithDefaults().Validate(); err != nil {
		return "", err
	}
	operator := OperatorName
	if m.Store != "" {
		operator = SecretName // its user gave the nodes and the controller the same certificate
	}
	return fill(manifestText, struct {
		Manifest
		Files                                                                          []accessFile
		Namespace, Secret, OperatorSecret, Signer, StoreName, NodeName, ControllerName string
		APIHost, APIPort                                                               string
	}{m, m.files(), Namespace, SecretName, operator, signerName, StoreName, NodeName, ControllerName, host, port})
}

// apiServer returns the host and the port of the API server; "": the default.
func (m Manifest) apiServer() (host, port string, err error) {
	if m.APIServer == "" {
		return "", "", nil
	}
	host, port, err = net.SplitHostPort(m.APIServer)
	if number, bad := strconv.ParseUint(port, 10, 16); err == nil && (bad != nil || number == 0 || host == "") {
		err = errors.New("host or port is missing")
	}
	if err != nil {
		return "", "", fmt.Errorf("--api-server %s: %w; write HOST:PORT, such as 192.0.2.1:6443 or [2001:db8::1]:6443", m.APIServer, err)
	}
	return host, port, nil
}

// accessFile is a file of the Secret, and the flag that names it.
type accessFile struct{ Flag, Name string }

// files returns the files that the Secret has, or will have.
func (m Manifest) files() []accessFile {
	all := []accessFile{{"tls-ca", "ca.pem"}, {"tls-cert", "node.pem"}, {"tls-key", "node-key.pem"}}
	if m.Store == "" {
		return all // the store's pod writes them
	}
	return slices.DeleteFunc(all, func(f accessFile) bool { return m.Access[f.Name] == nil })
}

// fill fills a template. The CNI plugin is the same program, and starts without parsing templates.
func fill(text string, values any) (string, error) {
	t, err := template.New("manifest").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, values)
	return b.String(), err
}

// podNetwork returns the network of all pods. Pods reach their node, and by its kernel services
// and addresses outside the network.
func podNetwork(name string, subnets []netip.Prefix) model.Network {
	return model.Network{Name: name, Subnets: subnets, NodeAccess: true}
}
