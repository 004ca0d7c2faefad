package host

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"

	"windtunnel/internal/lists"
)

// Network describes the pod network of a machine that is a node of a Kubernetes cluster.
type Network struct {
	CNI   string // name and plugins of its CNI configuration: "cbr0: bridge, portmap"; "" if there is none
	Proxy string // mode of kube-proxy, such as "nftables"; "" if no kube-proxy answers
}

const (
	// machineRoot is the file system of the machine, from a container that sees the
	// machine's processes.
	machineRoot = "/proc/1/root"
	cniFolder   = "/etc/cni/net.d"
	// proxyMode is kube-proxy's answer about its mode, at its default address for metrics.
	proxyMode = "http://127.0.0.1:10249/proxyMode"
	proxyTime = time.Second
)

// Network answers a call of Client.Network.
func (s *Service) Network(_ struct{}, reply *Network) (err error) {
	reply.Proxy = askProxy(proxyMode)
	reply.CNI, err = describeCNI(machineRoot + cniFolder)
	return err
}

// Network asks the host's service for a description of the pod network.
func (c Client) Network(ctx context.Context) (Network, error) {
	return ask[Network](ctx, c, "Network", struct{}{})
}

// describeCNI describes the CNI configuration that a container runtime uses: the first valid
// file of the directory.
func describeCNI(folder string) (string, error) {
	files, err := libcni.ConfFiles(folder, []string{".conflist"})
	if err != nil {
		return "", fmt.Errorf("list the CNI configurations of %s: %w", folder, err)
	}
	slices.Sort(files)
	for _, f := range files {
		list, err := libcni.NetworkConfFromFile(f)
		if err != nil {
			continue // the runtime ignores such a file, too
		}
		plugins := lists.Map(list.Plugins, func(p *libcni.PluginConfig) string { return p.Network.Type })
		return list.Name + ": " + strings.Join(plugins, ", "), nil
	}
	return "", nil
}

// askProxy asks kube-proxy for its mode.
func askProxy(url string) string {
	client := http.Client{Timeout: proxyTime}
	answer, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64))
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return strings.TrimSpace(string(text))
}
