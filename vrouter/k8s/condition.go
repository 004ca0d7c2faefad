package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// conditions writes the condition NetworkUnavailable of nodes, which says whether the agent's pod is ready. While the
// condition is True, Kubernetes taints the node, and the scheduler places no pods there. The controller writes it, and
// not the agents: whoever may change the status of all nodes can change their addresses.
type conditions struct {
	core          *rest.RESTClient
	log           *slog.Logger
	nodes, agents cache.SharedInformer
	changed       chan struct{}
	since         map[string]time.Time // node → time at which its agent became not ready
}

// Reasons of the condition.
const (
	agentReady    = "VrouterIsUp"
	agentNotReady = "VrouterIsDown"
)

const (
	agentWait      = 20 * time.Second // a node's agent must be not ready for this time before the condition becomes True; a restart is shorter
	conditionPause = 10 * time.Second // wait after an error
)

// followConditions watches nodes and the agents' pods until ctx ends.
func followConditions(ctx context.Context, config *rest.Config, log *slog.Logger) (*conditions, error) {
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	c := &conditions{core: core, log: log, changed: make(chan struct{}, 1), since: map[string]time.Time{}}
	var err2 error
	c.nodes, err = watchAll(ctx, log, core, "nodes", &corev1.Node{}, slimConditions, c.changed)
	agents := cache.NewFilteredListWatchFromClient(core, "pods", Namespace, func(o *metav1.ListOptions) { o.LabelSelector = "app=" + NodeName })
	c.agents, err2 = watchList(ctx, log, agents, "pods of the agents", &corev1.Pod{}, slimAgent, c.changed)
	return c, errors.Join(err, err2)
}

// slimConditions keeps only the condition NetworkUnavailable.
func slimConditions(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	kept := &corev1.Node{ObjectMeta: slimMeta(n.ObjectMeta, "")}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	return kept, nil
}

// slimAgent keeps only a pod's node, and whether it is ready.
func slimAgent(object any) (any, error) {
	o, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{ObjectMeta: slimMeta(o.ObjectMeta, ""), Spec: corev1.PodSpec{NodeName: o.Spec.NodeName}}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodReady {
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	return kept, nil
}

// run writes the conditions until ctx ends.
func (c *conditions) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), c.nodes.HasSynced, c.agents.HasSynced) {
		return
	}
	for ctx.Err() == nil {
		var again <-chan time.Time
		if wait := c.write(ctx); wait > 0 {
			again = time.After(wait)
		}
		select {
		case <-c.changed:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// write updates the conditions that must change. It returns the time until the next call; 0: no call until an object changes.
func (c *conditions) write(ctx context.Context) (again time.Duration) {
	ready := map[string]bool{} // node with a pod of the agent → whether the pod is ready
	for _, p := range listed[*corev1.Pod](c.agents) {
		is := len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionTrue
		ready[p.Spec.NodeName] = ready[p.Spec.NodeName] || is
	}
	sooner := func(d time.Duration) {
		if again == 0 || d < again {
			again = d
		}
	}
	since, now := map[string]time.Time{}, time.Now()
	for _, n := range listed[*corev1.Node](c.nodes) {
		isReady, hasAgent := ready[n.Name]
		if !isReady {
			if since[n.Name] = c.since[n.Name]; since[n.Name].IsZero() {
				since[n.Name] = now
			}
		}
		patch, wait := conditionPatch(n.Status.Conditions, hasAgent, isReady, now.Sub(since[n.Name]))
		if wait > 0 {
			sooner(wait)
		}
		if patch == nil {
			continue
		}
		err := c.patch(ctx, n.Name, patch)
		switch {
		case err == nil:
			c.log.Info("wrote the condition NetworkUnavailable of a node", "node", n.Name, "status", patch["status"], "reason", patch["reason"])
		case ctx.Err() == nil && !apierrors.IsNotFound(err):
			c.log.Warn("cannot write the condition NetworkUnavailable of a node; trying again", "node", n.Name, "error", err)
			sooner(conditionPause)
		}
	}
	c.since = since
	return again
}

// conditionPatch returns the patch of a node's condition; nil: the condition stays. notReady is the time for which the node's
// agent has not been ready. wait is the time after which the condition will have to change; 0: it stays until an object changes.
func conditionPatch(has []corev1.NodeCondition, hasAgent, isReady bool, notReady time.Duration) (patch map[string]any, wait time.Duration) {
	status, ours := corev1.ConditionUnknown, false
	if len(has) > 0 {
		status, ours = has[0].Status, has[0].Reason == agentReady || has[0].Reason == agentNotReady
	}
	to := func(status corev1.ConditionStatus, reason, message string) map[string]any {
		now := metav1.Now()
		return map[string]any{"type": corev1.NodeNetworkUnavailable, "status": status, "reason": reason, "message": message, "lastTransitionTime": now, "lastHeartbeatTime": now}
	}
	switch {
	case isReady && status != corev1.ConditionFalse:
		return to(corev1.ConditionFalse, agentReady, "the agent of vrouter is ready"), 0
	case isReady, !hasAgent && !ours, hasAgent && status == corev1.ConditionTrue && ours:
		return nil, 0
	case notReady < agentWait:
		return nil, agentWait - notReady
	case hasAgent:
		return to(corev1.ConditionTrue, agentNotReady, "the agent of vrouter is not ready, so no pod can start; see the pod of "+Namespace+"/"+NodeName+" on this node"), 0
	}
	return map[string]any{"type": corev1.NodeNetworkUnavailable, "$patch": "delete"}, 0 // vrouter is not the network of this node
}

func (c *conditions) patch(ctx context.Context, node string, condition map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	return c.core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(node).SubResource("status").Body(text).Do(ctx).Error()
}
