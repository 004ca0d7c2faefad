package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/cni"
	"windtunnel/vrouter/model"
)

// Node is the pod of the DaemonSet on a node: the agent, and the CNI plugin that asks it.
type Node struct {
	Namespace         string
	Name              string // of the node
	Base              string // file with the agent's configuration that all nodes have
	Network           model.Network
	Binaries, Configs string // folders of CNI plugins and configurations
	NoKubeProxy       bool   // vrouter does the work of kube-proxy
	Options           agent.Options

	external bool // an operator runs the store
	request  certificateRequest
}

// ConflistPath is the file of the plugin's configuration in a folder.
func ConflistPath(dir string) string { return filepath.Join(dir, "10-"+conflist+".conflist") }

// NodeName is the name of the DaemonSet.
const NodeName = "vrouter-node"

const (
	// runDir has the node's configuration and certificate. It is in memory.
	runDir      = "/run/vrouter/k8s"
	conflist    = "vrouter"
	leaveFleet  = 10 * time.Second
	emptyWait   = 15 * time.Second
	logInterval = 30 * time.Second // of a problem that stays the same
)

// facts are what the cluster knows of a node.
type facts struct {
	Spec struct {
		PodCIDRs []netip.Prefix `json:"podCIDRs"`
	} `json:"spec"`
	Status struct {
		Addresses []struct{ Type, Address string } `json:"addresses"`
	} `json:"status"`
}

// Run runs the agent until ctx ends. If the installation is being deleted, it then removes
// everything of vrouter from the node.
func (n *Node) Run(ctx context.Context) error {
	c, err := inCluster()
	if err != nil {
		return err
	}
	if err := useHostPrograms(); err != nil {
		return fmt.Errorf("prepare the node's programs: %w", err)
	}
	watching, end := context.WithCancel(context.Background())
	defer end()
	removed := watchRemoval(watching, c, n.Namespace, "daemonsets", NodeName)
	err = n.serve(ctx, c)
	if ctx.Err() != nil && removed.isRemoved() {
		n.Options.Logger.Info("the installation is being deleted; removing vrouter from this node")
		return errors.Join(err, n.remove())
	}
	return err
}

// serve configures and runs the agent, and installs the plugin when the agent is ready.
func (n *Node) serve(ctx context.Context, c *client) error {
	var path string
	var is facts
	err := n.retry(ctx, "configure the agent", func() (err error) {
		if err = c.get(ctx, "/api/v1/nodes/"+n.Name, &is); err == nil {
			path, err = n.configure(ctx, c, &is)
		}
		return err
	})
	if err != nil {
		return err
	}
	conf, err := config.Load(path)
	if err != nil {
		return err
	}
	e, err := n.followCluster(ctx, int(conf.Limits.WithDefaults().Sets()))
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.admitPods(running, c, e, conf.Socket, &is)
	}()
	err = agent.Run(ctx, conf, n.Options)
	stop()
	<-ended
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	if err != nil {
		_ = e.add(ctx, problem{aboutNode(n.Name), agentFailed, err.Error()}) // it logs its error
	}
	return err
}

// followCluster sets the agent's options that depend on objects of the cluster: networks, services and policies. sets is
// the limit of the entries for policies.
func (n *Node) followCluster(ctx context.Context, sets int) (*events, error) {
	cluster, err := Connect(InCluster)
	if err != nil {
		return nil, err
	}
	n.Options.NetworkOf = NetworkOf(cluster)
	if n.NoKubeProxy {
		n.Options.ServiceRules, n.Options.Connect = true, n.Network.Name
	}
	in, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	e, err := newEvents(in, n.Name, n.Options.Logger)
	if err != nil {
		return nil, err
	}
	go e.run(ctx)
	if n.Options.Services, err = followServices(in, e, n.NoKubeProxy); err != nil {
		return nil, err
	}
	p, err := followPolicies(ctx, in, e, sets)
	if err != nil {
		return nil, err
	}
	n.Options.Grouping, n.Options.Regroup, n.Options.GroupDenial = p.grouping, p.changed, p.denial
	return e, nil
}

// admitPods installs the plugin when the agent is ready, and again when the node has a podCIDR.
func (n *Node) admitPods(ctx context.Context, c *client, e *events, socket string, is *facts) {
	ranges := n.podRanges(e, is)
	if n.retry(ctx, "install the CNI plugin", func() error { return n.install(ctx, socket, ranges) }) != nil {
		return // ctx has ended
	}
	n.Options.Logger.Info("pods can start on this node", "network", n.Network.Name)
	if file := n.firstOther(); file != "" {
		e.report(otherPlugin, []problem{{aboutNode(n.Name), otherPlugin, "the CNI configuration " + file + " comes before vrouter's, and the container runtime uses that one; remove the other plugin, or this file"}})
	}
	n.awaitPodCIDRs(ctx, c, e, socket, is)
}

// retry calls f until it succeeds. It logs each new error, and the same one from time to time.
func (n *Node) retry(ctx context.Context, what string, f func() error) error {
	said, at := "", time.Time{}
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if text := err.Error(); text != said || time.Since(at) > logInterval {
			n.Options.Logger.Warn("cannot "+what+" yet", "error", err)
			said, at = text, time.Now()
		}
		if !pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

// configure writes the configuration of the agent, and returns its path.
func (n *Node) configure(ctx context.Context, c *client, is *facts) (path string, err error) {
	base, err := os.ReadFile(n.Base)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return "", err
	}
	var own, tls []string
	for _, a := range is.Status.Addresses {
		if a.Type == "InternalIP" {
			own = append(own, a.Address)
		}
	}
	if len(own) == 0 {
		return "", fmt.Errorf("node %s has no InternalIP in its status; start its kubelet with --node-ip", n.Name)
	}
	text := configText(base, n.Name, own)
	var s secret
	if err := c.get(ctx, secretPath(n.Namespace, SecretName), &s); err != nil {
		return "", err
	}
	if len(s.Data["address"]) == 0 {
		return "", fmt.Errorf("the store has not started yet; see `kubectl -n %s describe pods -l app=%s`", n.Namespace, StoreName)
	}
	text += fmt.Sprintf("store: %q\n", s.Data["address"])
	if n.external = s.Metadata.Annotations[storeNode] == ""; !n.external {
		n.request.node = n.Name
		switch p, err := n.request.certificate(ctx, c); {
		case err == nil:
			s.Data["node.pem"], s.Data["node-key.pem"] = p.cert, p.key
		case !exists(filepath.Join(runDir, "node.pem")):
			return "", err
		default: // the certificate of the last start is still valid, unless it was revoked
			n.Options.Logger.Warn("the agent starts with the certificate that it has", "error", err)
		}
	}
	for file, key := range map[string]string{"ca.pem": "ca", "node.pem": "cert", "node-key.pem": "key"} {
		path := filepath.Join(runDir, file)
		if len(s.Data[file]) > 0 {
			if err := os.WriteFile(path, s.Data[file], 0o600); err != nil {
				return "", err
			}
		} else if n.external || !exists(path) {
			continue
		}
		tls = append(tls, key+": "+file)
	}
	if len(tls) > 0 {
		text += "store_tls: {" + strings.Join(tls, ", ") + "}\n"
	}
	path = filepath.Join(runDir, "node.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// configText returns the configuration of an agent, without the store. The name has quotes, because YAML reads
// names such as 010 and null as other values.
func configText(base []byte, name string, underlay []string) string {
	return fmt.Sprintf("%s\nnode: %q\nunderlay: [%s]\n", base, name, strings.Join(underlay, ", "))
}

// install creates the network, and writes the plugin and its configuration, as soon as the agent
// follows the store.
func (n *Node) install(ctx context.Context, socket string, ranges []model.Range) error {
	agent := api.Dial(socket).Within(lookPause * 5)
	defer agent.Close()
	status, err := agent.Status(ctx)
	if err != nil {
		return err
	}
	if problem := cmp.Or(status.Store.Problem, status.Store.Refused); problem != "" {
		return fmt.Errorf("the store %s is not usable: %s", status.Store.Address, problem)
	}
	all, err := agent.Networks(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(is model.Network) bool { return is.Name == n.Network.Name }) {
		if _, err := agent.AddNetwork(ctx, podNetwork(n.Network.Name, n.Network.Subnets)); err != nil {
			return err
		}
	}
	_, err = cni.Install(cni.InstallOptions{Network: n.Network.Name, Name: conflist, Node: n.Name, Binaries: n.Binaries, Configs: n.Configs, Ranges: ranges, Chain: []string{cni.Portmap}})
	return err
}

// podRanges returns the ranges of the addresses of the node's pods, and reports if they are not its podCIDRs.
func (n *Node) podRanges(e *events, is *facts) []model.Range {
	ranges, outside := n.ranges(is)
	var problems []problem
	report := func(reason, text, remedy string) {
		problems = append(problems, problem{aboutNode(n.Name), reason, fmt.Sprintf("%s, so pods get any address of the network %s; %s", text, n.Network.Name, remedy)})
	}
	if len(is.Spec.PodCIDRs) == 0 {
		report(noPodCIDR, "the node has no podCIDR", "start kube-controller-manager with --allocate-node-cidrs")
	}
	if len(outside) > 0 {
		report(podCIDROutside, fmt.Sprintf("the podCIDR %v of the node is not in a subnet of the network", outside), "use --subnet of `vrouter k8s manifest`")
	}
	e.report(podCIDROutside, problems)
	return ranges
}

// awaitPodCIDRs waits for the podCIDRs of a node that has none, and installs the plugin with them.
func (n *Node) awaitPodCIDRs(ctx context.Context, c *client, e *events, socket string, is *facts) {
	for len(is.Spec.PodCIDRs) == 0 {
		select {
		case <-time.After(logInterval):
		case <-ctx.Done():
			return
		}
		if err := c.get(ctx, "/api/v1/nodes/"+n.Name, is); err != nil {
			n.Options.Logger.Warn("cannot read the podCIDRs of this node; trying again", "error", err)
		} else if len(is.Spec.PodCIDRs) > 0 {
			ranges := n.podRanges(e, is)
			_ = n.retry(ctx, "install the CNI plugin", func() error { return n.install(ctx, socket, ranges) }) // it fails if ctx ends
		}
	}
}

// ranges returns the node's pod prefixes that the network's subnets hold, and the other ones.
func (n *Node) ranges(is *facts) (ranges []model.Range, outside []netip.Prefix) {
	for _, p := range is.Spec.PodCIDRs {
		if slices.ContainsFunc(n.Network.Subnets, func(s netip.Prefix) bool { return s.Bits() <= p.Bits() && s.Contains(p.Addr()) }) {
			r := model.RangeOf(p)
			if !p.IsSingleIP() {
				r.First = r.First.Next() // many programs take the first address for the subnet's address
			}
			ranges = append(ranges, r)
		} else {
			outside = append(outside, p)
		}
	}
	return ranges, outside
}

// firstOther returns the CNI configuration that the runtime uses in place of vrouter's: it uses the
// first one by name.
func (n *Node) firstOther() string {
	entries, _ := os.ReadDir(n.Configs) // sorted
	for _, e := range entries {
		path := filepath.Join(n.Configs, e.Name())
		switch {
		case path == ConflistPath(n.Configs):
			return ""
		case slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(path)):
			return path
		}
	}
	return ""
}

// remove removes everything of vrouter from the node.
func (n *Node) remove() error {
	_, err := cni.Uninstall(cni.InstallOptions{Network: n.Network.Name, Name: conflist, Binaries: n.Binaries, Configs: n.Configs})
	conf, missing := config.Load(filepath.Join(runDir, "node.yaml"))
	if missing != nil {
		return errors.Join(err, missing)
	}
	err = errors.Join(err, agent.Remove(context.Background(), conf, false, agent.RemoveTimeout))
	if !n.external { // the store is being deleted too
		err = errors.Join(err, os.RemoveAll(conf.StateDir))
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), leaveFleet)
		defer cancel()
		_, left := follow.LeaveFleet(ctx, conf)
		err = errors.Join(err, left)
	}
	err = errors.Join(err, os.RemoveAll(runDir))
	// The directories are mount points in the pod. The store's pod may still delete its data there.
	for _, dir := range []string{conf.RunDir, filepath.Dir(conf.StateDir)} {
		for deadline := time.Now().Add(emptyWait); os.Remove("/proc/1/root"+dir) != nil && exists(filepath.Join(dir, storeDir)) && time.Now().Before(deadline); {
			time.Sleep(lookPause / 10)
		}
		_ = os.Remove("/proc/1/root" + dir) // it fails if the directory has other files
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
