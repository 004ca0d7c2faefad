package k8s

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"windtunnel/vrouter/api"
)

// Check tests the network of a cluster: pods on two nodes connect to each other and to everything
// that pods use. It drives kubectl, and deletes its namespace at the end.
type Check struct {
	Image   string
	Nodes   []string // two nodes; default: the first two that are ready
	Outside string   // HOST:PORT outside the cluster; "": none
	Kubectl []string // the program and its flags
}

const (
	podsReady = 2 * time.Minute
	cleanTime = 30 * time.Second
	checkName = "vrouter-check"
	// probeAttempts are the attempts to read a pod's results: kubectl can lose them ("Unknown stream id 1, discarding message").
	probeAttempts = 3
)

//go:embed check.yaml
var checkText string

// kubectl runs kubectl and returns its output.
func (c *Check) kubectl(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	argv := append(slices.Clone(c.Kubectl), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("kubectl is not installed; see https://kubernetes.io/docs/tasks/tools/")
	case errors.As(err, &exit):
		return out, fmt.Errorf("kubectl %s: %s", args[0], cmp.Or(string(bytes.TrimSpace(exit.Stderr)), err.Error()))
	}
	return out, err
}

// items decodes a list of objects from kubectl.
func items[T any](ctx context.Context, c *Check, args ...string) ([]T, error) {
	text, err := c.kubectl(ctx, "", append([]string{"get", "-o", "json"}, args...)...)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []T }
	return list.Items, json.Unmarshal(text, &list)
}

// Types of objects, with the fields that a check reads.
type (
	checkedNode struct {
		object
		Spec   struct{ Unschedulable bool }
		Status struct {
			Addresses       []struct{ Type, Address string }
			Conditions      []struct{ Type, Status string }
			DaemonEndpoints struct{ KubeletEndpoint struct{ Port int } }
		}
	}
	checkedPod struct {
		object
		Status struct {
			Phase             string
			PodIPs            []struct{ IP string }
			ContainerStatuses []struct {
				State struct {
					Waiting *struct{ Reason, Message string }
				}
			}
		}
	}
	checkedService struct {
		object
		Spec struct{ ClusterIPs []string }
	}
	event struct{ Type, Reason, Message string }
)

// target is an address that a pod connects to.
type target struct{ what, address, remedy string }

// Run returns a finding for each connection. An error says why there was no test.
func (c *Check) Run(ctx context.Context) (findings []api.Finding, err error) {
	nodes, err := c.choose(ctx)
	if err != nil {
		return nil, err
	}
	manifest, err := fill(checkText, struct {
		Namespace, Image string
		Nodes            []string
	}{checkName, c.Image, []string{nodes[0].Metadata.Name, nodes[1].Metadata.Name}})
	if err != nil {
		return nil, err
	}
	if _, err := c.kubectl(ctx, "", "create", "namespace", checkName); err != nil {
		return nil, fmt.Errorf("%w; if another check has ended, run: kubectl delete namespace %s", err, checkName)
	}
	defer func() { // also after an interrupt
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		_, failed := c.kubectl(clean, "", "delete", "namespace", checkName, "--wait=true")
		err = errors.Join(err, failed)
	}()
	if err := c.awaitAccount(ctx); err != nil {
		return nil, err
	}
	if _, err := c.kubectl(ctx, manifest, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	pods, err := c.awaitPods(ctx)
	if err != nil {
		return nil, err
	}
	targets, err := c.targets(ctx, nodes, pods)
	if err != nil {
		return nil, err
	}
	for i, p := range pods {
		found, err := c.probe(ctx, p.Metadata.Name, nodes[i].Metadata.Name, targets)
		if err != nil {
			return findings, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// choose returns the two nodes.
func (c *Check) choose(ctx context.Context) ([]checkedNode, error) {
	all, err := items[checkedNode](ctx, c, "nodes")
	if err != nil {
		return nil, err
	}
	var chosen []checkedNode
	for _, n := range all {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c struct{ Type, Status string }) bool { return c.Type == "Ready" && c.Status == "True" })
		if slices.Contains(c.Nodes, n.Metadata.Name) || len(c.Nodes) == 0 && ready && !n.Spec.Unschedulable && len(chosen) < 2 {
			chosen = append(chosen, n)
		}
	}
	switch {
	case len(chosen) == 2:
		return chosen, nil
	case len(c.Nodes) > 0:
		return nil, fmt.Errorf("--nodes %s: the cluster has %d of these nodes; name two nodes of `kubectl get nodes`", strings.Join(c.Nodes, ","), len(chosen))
	}
	return nil, fmt.Errorf("%d of the cluster's %d nodes are ready and schedulable, and the check needs two; see `kubectl describe nodes` and `kubectl -n %s logs daemonset/%s`", len(chosen), len(all), Namespace, NodeName)
}

// awaitAccount waits for the service account of the new namespace, without which it admits no pods.
func (c *Check) awaitAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	for {
		_, err := c.kubectl(ctx, "", "get", "serviceaccount", "default", "-n", checkName)
		if err == nil {
			return nil
		}
		if !pause(ctx) {
			return fmt.Errorf("the new namespace got no service account; see kube-controller-manager: %w", err)
		}
	}
}

// awaitPods waits until both pods run. The error has the last warning of the cluster.
func (c *Check) awaitPods(ctx context.Context) ([]checkedPod, error) {
	waiting, cancel := context.WithTimeout(ctx, podsReady)
	defer cancel()
	for {
		pods, err := items[checkedPod](waiting, c, "pods", "-n", checkName)
		if err != nil && waiting.Err() == nil {
			return nil, err
		}
		running := 0
		for _, p := range pods {
			for _, s := range p.Status.ContainerStatuses {
				if w := s.State.Waiting; w != nil && (w.Reason == "ImagePullBackOff" || w.Reason == "ErrImageNeverPull") {
					return nil, fmt.Errorf("pod %s: the image %s cannot be pulled (%s); name another one by --image, or load it into the nodes' container runtime", p.Metadata.Name, c.Image, w.Message)
				}
			}
			if p.Status.Phase == "Running" && len(p.Status.PodIPs) > 0 {
				running++
			}
		}
		if running == 2 {
			return pods, nil
		}
		if !pause(waiting) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("%d of 2 pods started within %v: %s; see `kubectl -n %s logs daemonset/%s`", running, podsReady, c.lastWarning(ctx), Namespace, NodeName)
		}
	}
}

func (c *Check) lastWarning(ctx context.Context) string {
	events, err := items[event](ctx, c, "events", "-n", checkName)
	if err != nil {
		return err.Error()
	}
	said := "the cluster gives no reason"
	for _, e := range events {
		if e.Type == "Warning" {
			said = e.Reason + ": " + e.Message
		}
	}
	return said
}

// targets lists what the pods connect to.
func (c *Check) targets(ctx context.Context, nodes []checkedNode, pods []checkedPod) (all []target, err error) {
	add := func(what, address, port, remedy string) {
		all = append(all, target{what, net.JoinHostPort(address, port), remedy})
	}
	for i, p := range pods {
		for _, ip := range p.Status.PodIPs {
			add("the pod on node "+nodes[i].Metadata.Name, ip.IP, checkPort, "run `vrouter doctor` and `vrouter dropstats` in vrouter's pods of both nodes; the underlay must carry vrouter's packets between the nodes")
		}
	}
	services, err := items[checkedService](ctx, c, "services", "-n", checkName)
	if err != nil {
		return nil, err
	}
	const serves = "see the log of vrouter's pod on the node: the agent must be allowed to follow services and endpoint slices"
	for _, s := range services {
		for _, ip := range s.Spec.ClusterIPs {
			add("the service "+s.Metadata.Name, ip, checkPort, serves)
		}
	}
	api, err := items[checkedService](ctx, c, "services", "-n", "default", "--field-selector=metadata.name=kubernetes")
	if err != nil {
		return nil, err
	}
	for _, s := range api {
		for _, ip := range s.Spec.ClusterIPs {
			add("the API server", ip, "443", serves)
		}
	}
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			if a.Type == "InternalIP" {
				add("node "+n.Metadata.Name, a.Address, strconv.Itoa(n.Status.DaemonEndpoints.KubeletEndpoint.Port), "see that the network has node_access, and `vrouter status` in vrouter's pod of the node")
			}
		}
	}
	dns, err := items[checkedService](ctx, c, "services", "-n", "kube-system", "--field-selector=metadata.name=kube-dns")
	if err != nil {
		return nil, err
	}
	if len(dns) > 0 {
		all = append(all, target{"the cluster's DNS", dnsScheme + "kubernetes.default", "see that the pods of kube-dns run: kubectl -n kube-system get pods -l k8s-app=kube-dns"})
	}
	if c.Outside != "" {
		all = append(all, target{"outside the cluster", c.Outside, "see that the nodes reach it themselves; without Internet access give --outside another address, or an empty one"})
	}
	return all, nil
}

// probe connects from a pod to the targets.
func (c *Check) probe(ctx context.Context, pod, node string, targets []target) (findings []api.Finding, err error) {
	args := []string{"exec", "-n", checkName, pod, "--", "vrouter", "k8s", "probe"}
	for _, t := range targets {
		args = append(args, t.address)
	}
	var results map[string]string
	for attempt := 1; ; attempt++ {
		out, err := c.kubectl(ctx, "", args...)
		if err != nil {
			return nil, err
		}
		if err = json.Unmarshal(out, &results); err == nil {
			break
		}
		if attempt == probeAttempts {
			return nil, fmt.Errorf("read the results of pod %s: %w", pod, err)
		}
	}
	for _, t := range targets {
		f := api.Finding{Topic: node, Level: api.LevelOK, Text: fmt.Sprintf("a pod connects to %s, %s", t.what, t.address)}
		if text, ok := results[t.address]; text != "" || !ok {
			f.Level, f.Remedy = api.LevelProblem, t.remedy
			f.Text = fmt.Sprintf("a pod cannot connect to %s, %s: %s", t.what, t.address, text)
		}
		findings = append(findings, f)
	}
	return findings, nil
}
