// Package k8s makes testbeds of the nodes of a Kubernetes cluster. On each node it runs a
// privileged pod on the host network, whose agent meters the node, and ordinary pods, in
// which the tools run. kubectl exec carries the agents' standard input and output.
package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/lab/agent"
	"windtunnel/lab/host"
	"windtunnel/lab/parallel"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/remote"
)

// Options say which cluster and which of its nodes a testbed uses.
type Options struct {
	// Kubeconfig is a file, or several, separated as in $KUBECONFIG; default: $KUBECONFIG,
	// ~/.kube/config, the pod's service account.
	Kubeconfig string
	Context    string   // of the kubeconfig; default: its current context
	Nodes      []string // names; default: the first usable nodes in the order of their names
	Image      string   // has the windtunnel program in its PATH
	NeverPull  bool     // the nodes must have the image
	// Lifetime is the time after which the cluster ends the pods, even if the engine is
	// gone.
	Lifetime time.Duration
	Least    int // number of nodes that the plan needs
	// Colocated adds a second pod on the first node; Service adds services.
	Colocated, Service bool
	// Pairs is set for a matrix: every node sends and receives. Without Nodes, all usable
	// nodes are in it.
	Pairs bool
}

// Executor makes testbeds of the nodes of a cluster.
type Executor struct {
	cluster  *cluster
	objects  *runObjects
	machines []*machine
	own      otherRun
	stop     context.CancelFunc // ends the renewal of the lease
}

// Connect checks the permissions, makes a namespace with the pods of a run, and surveys the
// nodes. programs are the executables that the plan needs. Before it makes a pod, it removes
// the namespaces of ended runs, whose names it returns, also with an error. It returns an
// error if another run uses one of the nodes.
func Connect(ctx context.Context, o Options, programs []program.Program) (_ *Executor, removed []string, err error) {
	c, err := dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	x, removed, err := c.testbeds(ctx, o, programs)
	if err != nil {
		c.close()
	}
	return x, removed, err
}

// testbeds is Connect for a connected cluster.
func (c *cluster) testbeds(ctx context.Context, o Options, programs []program.Program) (_ *Executor, removed []string, err error) {
	chosen, _, err := c.choose(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	x := &Executor{cluster: c, stop: func() {}, objects: &runObjects{
		namespace: fmt.Sprintf("wt-run%x-%x", time.Now().Unix(), os.Getpid()), image: o.Image, neverPull: o.NeverPull, lifetime: o.Lifetime,
	}}
	for i, n := range chosen {
		ordinary := 1
		if o.Colocated && i == 0 {
			ordinary = 2
		}
		m, err := newMachine(c, x.objects, n, i, ordinary)
		if err != nil {
			return nil, nil, err
		}
		x.machines = append(x.machines, m)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := x.begin(ctx); err != nil {
		return nil, nil, err
	}
	if removed, err = x.hold(ctx); err != nil {
		return nil, removed, err
	}
	if err := x.makeServices(ctx, o); err != nil {
		return nil, removed, err
	}
	err = each(x.machines, func(_ int, m *machine) error {
		if err := m.ensure(ctx); err != nil {
			return err
		}
		return m.look(ctx, programs)
	})
	if err != nil {
		return nil, removed, err
	}
	return x, removed, nil
}

// choose checks the permissions and returns the nodes of a run; see chooseNodes.
func (c *cluster) choose(ctx context.Context, o Options) (chosen []nodeObject, left []string, err error) {
	if err := c.checkAccess(ctx); err != nil {
		return nil, nil, err
	}
	all, err := c.allNodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	return chooseNodes(all, o.Nodes, o.Least, o.Pairs)
}

// Nodes returns the names of the nodes that Connect chooses, and the reasons why it leaves
// out others. It makes nothing in the cluster.
func Nodes(ctx context.Context, o Options) (names, left []string, err error) {
	c, err := dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	chosen, left, err := c.choose(ctx, o)
	for _, n := range chosen {
		names = append(names, n.Metadata.Name)
	}
	return names, left, err
}

// begin makes the run's namespace and its lease.
func (x *Executor) begin(ctx context.Context) error {
	c, r := x.cluster, x.objects
	made, err := create[namespace](ctx, c, namespacesPath, r.namespaceObject(x.Nodes()))
	if err != nil {
		return fmt.Errorf("make namespace %s: %w", r.namespace, err)
	}
	x.own.namespace = made
	lease, err := create[*lease](ctx, c, leasesPath(r.namespace), r.leaseObject(self(), time.Now()))
	if err != nil {
		return fmt.Errorf("make the lease of the run: %w", err)
	}
	x.own.lease = lease
	r.own(lease)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	x.stop = stop
	go c.keepLease(renewing, *lease)
	return nil
}

// makeServices makes the service of each node that receives.
func (x *Executor) makeServices(ctx context.Context, o Options) error {
	if !o.Service {
		return nil
	}
	receivers := x.machines
	if !o.Pairs {
		receivers = x.machines[1:]
	}
	return each(receivers, func(_ int, m *machine) error { return m.makeService(ctx) })
}

// Cluster implements testbed.Cluster.
func (x *Executor) Cluster() {}

// Nodes lists the names of the nodes.
func (x *Executor) Nodes() []string {
	return lists.Map(x.machines, func(m *machine) string { return m.node.Metadata.Name })
}

// Config returns the kubeconfig and the context of the cluster. As Options they lead to the
// same cluster later, from any directory.
func (x *Executor) Config() (kubeconfig, context string) {
	return x.cluster.files, x.cluster.context
}

// MTU returns the MTU of the first node's device that has its internal address.
func (x *Executor) MTU() int { return x.machines[0].survey.Device.MTU }

// hold removes the namespaces of ended runs, and returns their names. It returns an error
// if an earlier run uses one of the nodes.
func (x *Executor) hold(ctx context.Context) ([]string, error) {
	removed, running, err := x.cluster.clean(ctx, x.objects.namespace)
	if err != nil {
		return removed, err
	}
	return removed, busyNodes(&x.own, running, x.Nodes())
}

// Between implements testbed.Chooser.
func (x *Executor) Between(from, to string) (testbed.Executor, error) {
	pair := &Executor{cluster: x.cluster, objects: x.objects, stop: func() {}}
	for _, name := range []string{from, to} {
		i := slices.Index(x.Nodes(), name)
		if i < 0 {
			return nil, fmt.Errorf("the run has no node %s; add it to --nodes", name)
		}
		pair.machines = append(pair.machines, x.machines[i])
	}
	return pair, nil
}

// Clean removes the namespaces of ended runs from a cluster. It returns their names, and
// those of the runs that go on.
func Clean(ctx context.Context, o Options) (removed, running []string, err error) {
	c, err := dial(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer c.close()
	removed, others, err := c.clean(ctx, "")
	for _, r := range others {
		running = append(running, r.namespace.Metadata.Name)
	}
	return removed, running, err
}

// Facts describes the nodes, in their order. FineIdle reports whether all meters can read
// idle time exactly.
func (x *Executor) Facts() (facts []*probe.Facts, fineIdle bool) {
	fineIdle = true
	for _, m := range x.machines {
		facts = append(facts, m.survey.Facts.Elsewhere("node "+m.node.Metadata.Name, m.survey.Programs, m.survey.Lacks))
		fineIdle = fineIdle && m.survey.FineIdle
	}
	return facts, fineIdle
}

// closeTime is the maximum wait for the end of the agents.
const closeTime = 5 * time.Second

// Close removes the run's namespace with everything in it.
func (x *Executor) Close(ctx context.Context) error {
	defer x.cluster.close()
	x.stop()
	if x.own.namespace.Metadata.Name == "" {
		return nil
	}
	err := patiently(ctx, func() error { return x.cluster.deleteNamespace(ctx, x.objects.namespace) })
	if err == nil {
		x.own.namespace.Metadata.Name = ""
	}
	return err
}

// Layout implements testbed.Executor.
func (x *Executor) Layout(nodes int) (testbed.Layout, error) {
	if nodes > len(x.machines) {
		return testbed.Layout{}, fmt.Errorf("a testbed of %d nodes: the run has %d nodes of the cluster", nodes, len(x.machines))
	}
	return testbed.OnMachines(nodes, func(i int) (string, []int) { return x.machines[i].hello.Boot, x.machines[i].cpus }), nil
}

// Requires implements testbed.Executor.
func (x *Executor) Requires(sc *suite.Scenario, about system.About) ([]string, error) {
	f := sc.Fabric
	const network = "the network of a cluster"
	if err := remote.Offers(f, network); err != nil {
		return nil, err
	}
	if f.CPUs > 0 {
		return nil, fmt.Errorf("its fabric has a number of CPUs, which %s does not offer", network)
	}
	switch e := sc.Endpoint; {
	case e.Kind == suite.VM:
		return nil, errors.New("VMs as endpoints do not run in a cluster")
	case e.Spread, e.NoSegmentation, e.HostVNIC:
		return nil, errors.New("the lab does not change the devices of a cluster's pods; remove spread, segmentation and host_vnic from the endpoint")
	case sc.Pairs > 1 && !about.OnNode:
		return nil, fmt.Errorf("it has %d pairs, and in a cluster there is one; use streams", sc.Pairs)
	}
	for _, m := range x.machines {
		if d := m.survey.Device; d.MTU != f.MTU {
			return nil, fmt.Errorf("node %s: device %s has MTU %d, and the scenario has %d; use nodes with devices of one MTU", m.node.Metadata.Name, d.Name, d.MTU, f.MTU)
		}
		if err := m.survey.Device.HasOffload(f.Offload, sc.Workload.IPVersion, !about.OnNode); err != nil {
			return nil, fmt.Errorf("node %s: %w", m.node.Metadata.Name, err)
		}
		if v := sc.Workload.IPVersion; !remote.Address(m.data, v).IsValid() {
			return nil, fmt.Errorf("node %s has no internal IPv%d address on device %s", m.node.Metadata.Name, v, m.survey.Device.Name)
		}
	}
	return nil, nil
}

// Up implements testbed.Executor.
func (x *Executor) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	layout, err := x.Layout(spec.Nodes)
	if err != nil {
		return nil, err
	}
	tb := &Testbed{remote.Network[*node]{
		CPUs: layout, Name: "the network between nodes of a Kubernetes cluster", MTU: spec.Fabric.MTU, Offloads: "the lab does not change offloads and coalescing of the devices",
	}}
	for _, m := range x.machines[:spec.Nodes] {
		tb.List = append(tb.List, &node{machine: m, Node: remote.Node{
			ID: m.node.Metadata.Name, Data: m.data, Args: agent.AttachArgs{Fabric: []string{m.survey.Device.Name}, CPUs: m.cpus},
		}})
	}
	return tb, tb.Start(ctx, each)
}

// Testbed is nodes of a cluster.
type Testbed struct{ remote.Network[*node] }

// ControlPlane implements testbed.Controlled. kubectl is the lab's connection to the API server.
func (tb *Testbed) ControlPlane() []string {
	return []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager", "etcd",
		"kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "crio", "conmon", "dockerd", "k3s-server", "kubectl",
	}
}

// Endpoints implements testbed.Furnished.
func (tb *Testbed) Endpoints(sc *suite.Scenario, about system.About) (sender, receiver testbed.Endpoint, err error) {
	sender = tb.List[0].agents[1].endpoint(0)
	if sc.Placement == suite.Colocated {
		if len(tb.List[0].agents) < 3 {
			return sender, receiver, errors.New("the first node has no second pod")
		}
		return sender, tb.List[0].agents[2].endpoint(0), nil
	}
	receiver = tb.List[1].agents[1].endpoint(1)
	if about.Publishes {
		service := tb.List[1].service
		if !service.Is4() {
			return sender, receiver, fmt.Errorf("the cluster's services have no IPv4 addresses (%s)", service)
		}
		receiver.Listen, receiver.V4 = receiver.V4, service
	}
	return sender, receiver, nil
}

// node is a node of the testbed.
type node struct {
	*machine
	remote.Node
	agents []*podAgent // of the machine's pods, in their order
}

// podAgent is a running agent in a pod.
type podAgent struct {
	*remote.Agent
	pod *pod
	in  agent.Namespaces // of an ordinary pod
}

// endpoint returns the pod as an endpoint of a node.
func (a *podAgent) endpoint(node int) testbed.Endpoint {
	return testbed.Endpoint{Node: node, Name: a.pod.name, V4: remote.Address(a.pod.addresses, 4), V6: remote.Address(a.pod.addresses, 6), Agent: a.Client, Namespaces: a.in}
}

// Start implements remote.Member: it starts the agents of the node's pods.
func (n *node) Start(ctx context.Context) error {
	if err := patiently(ctx, func() error { return n.ensure(ctx) }); err != nil {
		return err
	}
	n.agents = make([]*podAgent, len(n.pods))
	err := each(n.pods, func(i int, p *pod) (err error) {
		a := &podAgent{pod: p}
		if a.Agent, err = p.start(ctx, host.AgentArgs("", n.cpus)...); err != nil {
			return err
		}
		n.agents[i] = a
		if !p.privileged {
			a.in, err = a.Namespaces(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	pods, err := n.networkPods(ctx)
	if err != nil {
		return err
	}
	n.Main = n.agents[0].Agent
	n.meterGroups(ctx, n.Agent(), pods)
	n.noteCarrier(ctx, pods["vrouter"])
	n.Settings = n.base
	if got := n.Hello().CPUs; !slices.Equal(got, n.cpus) {
		return fmt.Errorf("the agent of node %s runs on CPUs %v, not on %v: its CPU manager forbids it", n.ID, got, n.cpus)
	}
	return nil
}

// Stop implements remote.Member.
func (n *node) Stop(context.Context) error {
	return parallel.Each(n.agents, func(_ int, a *podAgent) error {
		if a == nil {
			return nil
		}
		if err := a.pod.end(a.Agent); err != nil {
			return fmt.Errorf("node %s: %w", n.ID, err)
		}
		return nil
	})
}
