package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/host"
	"windtunnel/lab/meter"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/testbed/remote"
)

// machine is a node of the cluster with the run's pods on it.
type machine struct {
	cluster *cluster
	objects *runObjects
	node    nodeObject
	data    []netip.Addr // internal addresses; after the survey those of one device
	cpus    []int
	hello   agent.Hello // of the first agent
	survey  *host.Survey
	base    space.Settings // of the node, for the run's record
	pods    []*pod         // the privileged pod, then the ordinary ones
	service netip.Addr     // ClusterIP of the service of its first ordinary pod; not valid if there is none
}

// pod is a pod of the run.
type pod struct {
	machine    *machine
	name       string
	privileged bool
	addresses  []netip.Addr
	uid        string
	// lost is set if an agent in the pod was lost or did not end: its programs may still run. The pod is
	// replaced before the next testbed.
	lost  bool
	again bool // the pod was made before
}

// newMachine returns a node with its pods, which do not exist yet.
func newMachine(c *cluster, r *runObjects, n nodeObject, index, ordinary int) (*machine, error) {
	m := &machine{cluster: c, objects: r, node: n}
	for _, text := range addressesOf(&n) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("node %s: its internal address %q is not an IP address", n.Metadata.Name, text)
		}
		m.data = append(m.data, a)
	}
	if len(m.data) == 0 {
		return nil, fmt.Errorf("node %s has no internal address, by which other nodes reach it", n.Metadata.Name)
	}
	m.pods = []*pod{{machine: m, name: fmt.Sprintf("agent-%d", index+1), privileged: true}}
	for i := range ordinary {
		m.pods = append(m.pods, &pod{machine: m, name: fmt.Sprintf("pod-%d-%d", index+1, i+1)})
	}
	return m, nil
}

// makeService makes the service of the node's first ordinary pod.
func (m *machine) makeService(ctx context.Context) error {
	object := m.objects.serviceObject(m.pods[1].name)
	made, err := create[service](ctx, m.cluster, namespacesPath+"/"+m.objects.namespace+"/services", object)
	if err != nil {
		return notMade("service "+object.Metadata.Name, err)
	}
	if m.service, err = netip.ParseAddr(made.Spec.ClusterIP); err != nil {
		return fmt.Errorf("the cluster gave service %s the address %q: %w", object.Metadata.Name, made.Spec.ClusterIP, err)
	}
	return nil
}

// ensure makes the pods that do not run, and replaces those whose agent was lost.
func (m *machine) ensure(ctx context.Context) error {
	return each(m.pods, func(_ int, p *pod) error { return p.ensure(ctx) })
}

func (p *pod) ensure(ctx context.Context) error {
	c, namespace := p.machine.cluster, p.machine.objects.namespace
	now, err := get[*podObject](ctx, c, podsPath(namespace)+"/"+p.name)
	if err != nil && !is(err, http.StatusNotFound) {
		return fmt.Errorf("look at pod %s: %w", p.name, err)
	}
	if err == nil && !p.lost {
		if running, _ := stateOf(now); running {
			return nil
		}
	}
	if p.again {
		if err := p.machine.stillUsable(ctx); err != nil {
			return err
		}
	}
	if err := c.deletePod(ctx, namespace, p.name); err != nil {
		return err
	}
	p.lost, p.again = false, true
	if err := c.createPod(ctx, p.machine.objects.podObject(p.name, p.machine.node.Metadata.Name, p.privileged)); err != nil {
		return err
	}
	running, err := c.awaitRunning(ctx, namespace, p.name)
	if err != nil {
		return err
	}
	p.addresses, p.uid = nil, running.Metadata.UID
	for _, ip := range running.Status.PodIPs {
		a, err := netip.ParseAddr(ip.IP)
		if err != nil {
			return fmt.Errorf("pod %s: its address %q is not an IP address", p.name, ip.IP)
		}
		p.addresses = append(p.addresses, a)
	}
	return nil
}

// stillUsable returns the reason why no pod can be started on the node now.
func (m *machine) stillUsable(ctx context.Context) error {
	n, err := get[*nodeObject](ctx, m.cluster, nodesPath+"/"+m.node.Metadata.Name)
	if is(err, http.StatusNotFound) {
		return fmt.Errorf("node %s was removed from the cluster", m.node.Metadata.Name)
	}
	if err != nil {
		return fmt.Errorf("look at node %s: %w", m.node.Metadata.Name, err)
	}
	return usable(n)
}

const (
	helloTime = 15 * time.Second
	askTime   = 3 * time.Second
)

// start starts the windtunnel program in the pod with arguments that make it serve calls on
// its standard input and output.
func (p *pod) start(ctx context.Context, args ...string) (*remote.Agent, error) {
	m := p.machine
	s, err := m.cluster.exec(m.objects.namespace, p.name, append([]string{programName}, args...), p.explain)
	if err != nil {
		return nil, fmt.Errorf("start the agent in pod %s: %w", p.name, err)
	}
	who := m.node.Metadata.Name
	if !p.privileged {
		who += "/" + p.name
	}
	a, said, err := s.Agent(ctx, who, s, helloTime)
	if err == nil {
		return a, nil
	}
	p.lost = true
	if errors.As(err, new(*agent.ProtocolError)) {
		return nil, fmt.Errorf("%w: --image must name an image of this version", err)
	}
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return nil, fmt.Errorf("start the agent in pod %s: %w", p.name, err)
}

// end ends an agent in the pod.
func (p *pod) end(a *remote.Agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	lost, err := a.End(ctx)
	p.lost = p.lost || lost || err != nil
	return err
}

// explain returns the reason why the connection to a program in the pod ended with err.
func (p *pod) explain(err error) error {
	if err == nil {
		err = errors.New("the program has ended")
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	m := p.machine
	now, asked := get[*podObject](ctx, m.cluster, podsPath(m.objects.namespace)+"/"+p.name)
	switch {
	case is(asked, http.StatusNotFound):
		return fmt.Errorf("pod %s is gone, as after `kubectl drain` (%w)", p.name, err)
	case asked != nil:
		return fmt.Errorf("the API server does not answer: %w (%w)", asked, err)
	}
	if _, why := stateOf(now); why != nil {
		return fmt.Errorf("%w (%w)", why, err)
	}
	return fmt.Errorf("the connection to pod %s ended: %w", p.name, err)
}

// look asks the privileged pod for the facts of its node.
func (m *machine) look(ctx context.Context, programs []program.Program) (err error) {
	a, err := m.pods[0].start(ctx, host.Command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.pods[0].end(a)) }()
	service := host.Client{Client: a.Client}
	if m.survey, err = service.Survey(ctx, host.SurveyArgs{Programs: programs, Data: m.data, Some: true}); err != nil {
		return err
	}
	m.data = nil
	for _, a := range m.survey.Device.Addresses {
		m.data = append(m.data, a.Addr())
	}
	if m.base, err = service.Prepare(ctx, host.PrepareArgs{Device: m.survey.Device}); err != nil {
		return err
	}
	network, err := service.Network(ctx)
	if err != nil {
		return err
	}
	images, err := m.networkImages(ctx)
	if err != nil {
		return err
	}
	info := m.node.Status.NodeInfo
	m.hello, m.cpus = a.Hello, m.survey.Facts.UsableCPUs()
	m.survey.Facts.OS, m.survey.Facts.Hostname = info.OSImage, m.node.Metadata.Name
	for name, value := range map[string]string{
		"kernel": info.KernelVersion, "kubelet": info.KubeletVersion, "container runtime": info.ContainerRuntimeVersion,
		"CNI": network.CNI, "kube-proxy": network.Proxy, "network programs": strings.Join(images, ", "),
	} {
		if value != "" {
			m.base.Note(name, value)
		}
	}
	return nil
}

// networkAgents are words in the names of pods that carry or change the packets of other
// pods.
var networkAgents = []string{
	"antrea", "aws-node", "azure-cni", "calico", "canal", "cilium", "contrail", "flannel", "kindnet", "kube-proxy", "kube-router", "multus", "netd", "ovn", "ovs", "romana", "vrouter", "weave",
}

// networkPods returns the pods of the network on the node, such as those of the CNI plugin's
// agent and of kube-proxy, by the word in their names.
func (m *machine) networkPods(ctx context.Context) (map[string][]podObject, error) {
	all, err := list[podObject](ctx, m.cluster, "/api/v1/pods?fieldSelector=spec.nodeName="+m.node.Metadata.Name)
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", m.node.Metadata.Name, err)
	}
	pods := map[string][]podObject{}
	for _, p := range all {
		word := slices.IndexFunc(networkAgents, func(word string) bool { return strings.Contains(p.Metadata.Name, word) })
		if p.Spec.HostNetwork && word >= 0 {
			pods[networkAgents[word]] = append(pods[networkAgents[word]], p)
		}
	}
	return pods, nil
}

// networkImages lists the images of the network's pods on the node.
func (m *machine) networkImages(ctx context.Context) (images []string, err error) {
	pods, err := m.networkPods(ctx)
	for _, word := range networkAgents {
		for _, p := range pods[word] {
			for _, c := range p.Spec.Containers {
				images = append(images, c.Image)
			}
		}
	}
	return images, err
}

// meterGroups makes the agent of the privileged pod meter the control groups of the network's
// programs and of the other pods. pods are those of networkPods.
func (m *machine) meterGroups(ctx context.Context, a *agent.Client, pods map[string][]podObject) {
	args := meter.GroupArgs{Pods: map[string][]string{}, Programs: networkAgents}
	for word, list := range pods {
		for _, p := range list {
			args.Pods[word] = append(args.Pods[word], groupUID(&p))
		}
	}
	for _, p := range m.pods {
		args.Own = append(args.Own, p.uid)
	}
	names, err := a.MeterGroups(ctx, args)
	said := strings.Join(names, ", ")
	if err != nil {
		said = "not metered: " + err.Error()
	}
	m.base.Note("control groups with a CPU figure", said)
}

// groupUID returns the UID in the name of a pod's control group. For a static pod, this UID
// differs from the UID of the pod object.
func groupUID(p *podObject) string {
	const fileUID = "kubernetes.io/config.hash"
	return cmp.Or(p.Metadata.Annotations[fileUID], p.Metadata.UID)
}
