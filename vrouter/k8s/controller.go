package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// Controller deletes from the fleet what no longer exists in Kubernetes: nodes whose Node object
// was deleted, and ports of deleted pods. It also writes a condition of nodes. Several controllers can run; one of them works.
type Controller struct {
	Config *rest.Config // of the cluster
	Fleet  *fleet.Fleet
	Log    *slog.Logger
	Name   string // of this controller in the store

	cluster metadata.Interface
	mu      sync.Mutex
	nodes   map[string]bool // nodes whose Node object existed while this controller ran
}

var (
	nodesOf = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	podsOf  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// ControllerName is the name of the Deployment.
const ControllerName = "vrouter-controller"

// period is the time between two comparisons of the fleet with the cluster.
const period = time.Minute

// configHash is an annotation of static pods. It has the UID that the kubelet uses for the pod.
const configHash = "kubernetes.io/config.hash"

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) (err error) {
	if c.cluster, err = metadata.NewForConfig(c.Config); err != nil {
		return err
	}
	conditions, err := followConditions(ctx, c.Config, c.Log)
	if err != nil {
		return err
	}
	c.nodes = map[string]bool{}
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	nodes, err := c.watch(ctx, nodesOf, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.noteNode(o.(*metav1.PartialObjectMetadata).Name) },
		DeleteFunc: wake,
	})
	if err != nil {
		return err
	}
	pods, err := c.watch(ctx, podsOf, cache.ResourceEventHandlerFuncs{})
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		return nil // ctx has ended
	}
	c.Fleet.Lead(ctx, c.Name, func(ctx context.Context) {
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() { conditions.run(ctx) })
		tick := time.NewTicker(period)
		defer tick.Stop()
		for ctx.Err() == nil {
			c.pass(ctx, nodes.GetStore(), pods.GetStore())
			select {
			case <-tick.C:
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	return nil
}

// watch keeps the metadata of all objects of a resource.
func (c *Controller) watch(ctx context.Context, r schema.GroupVersionResource, on cache.ResourceEventHandlerFuncs) (cache.SharedInformer, error) {
	client := c.cluster.Resource(r)
	informer := cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}, c.cluster), &metav1.PartialObjectMetadata{}, 0)
	_, err := informer.AddEventHandler(on)
	err = errors.Join(err, informer.SetTransform(slim), informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // else the informer lists again
			c.Log.Warn("follow the "+r.Resource+" of the cluster", "error", err)
		}
	}))
	go informer.RunWithContext(ctx)
	return informer, err
}

// slim keeps only the metadata that the controller uses.
func slim(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
	if hash, is := o.Annotations[configHash]; is {
		kept.Annotations = map[string]string{configHash: hash}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: kept}, nil
}

func (c *Controller) noteNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = true
}

func (c *Controller) hadNode(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

// pass compares the fleet with the cluster. A fleet can have nodes that do not belong to the
// cluster: a node belongs to it if it has ports of pods, or had a Node object.
func (c *Controller) pass(ctx context.Context, nodes, pods cache.Store) {
	var fleetNodes []model.Node
	var ports []model.Port
	ofPods := map[string]bool{}
	if c.Fleet.Look(ctx, func(v *fleet.View) {
		fleetNodes = v.Nodes()
		for _, p := range v.Ports("") {
			if p.Pod().UID != "" {
				ports = append(ports, p)
				ofPods[p.Node] = true
			}
		}
	}) != nil {
		return // ctx has ended
	}
	retired := map[string]bool{}
	for _, n := range fleetNodes {
		if _, is, _ := nodes.GetByKey(n.Name); !is && (ofPods[n.Name] || c.hadNode(n.Name)) {
			retired[n.Name] = c.retire(ctx, n.Name)
		}
	}
	for _, p := range ports {
		if o, is, _ := pods.GetByKey(p.Pod().String()); !retired[p.Node] && !(is && isPod(o, p.Pod())) {
			c.free(ctx, p)
		}
	}
}

func isPod(object any, pod model.Pod) bool {
	o, ok := object.(*metav1.PartialObjectMetadata)
	return ok && (string(o.UID) == pod.UID || o.Annotations[configHash] == pod.UID)
}

// retire deletes a node whose Node object does not exist, unless its agent still runs.
func (c *Controller) retire(ctx context.Context, node string) bool {
	_, err := c.cluster.Resource(nodesOf).Get(ctx, node, metav1.GetOptions{})
	if err == nil {
		return false // the fleet's copy is older than this deletion
	}
	if apierrors.IsNotFound(err) {
		err = c.Fleet.DeleteNode(ctx, node, true)
	}
	switch {
	case err == nil:
		c.Log.Info("deleted a node with its ports: Kubernetes no longer has it", "node", node)
	case fleet.IsWhy(err, fleet.InUse):
		c.Log.Info("a node without a Node object stays until its agent has ended", "node", node, "reason", err)
	case ctx.Err() == nil:
		c.Log.Warn("delete a node that Kubernetes no longer has", "node", node, "error", err)
	}
	return err == nil
}

// free deletes the port of a pod that does not exist.
func (c *Controller) free(ctx context.Context, p model.Port) {
	o, err := c.cluster.Resource(podsOf).Namespace(p.Pod().Namespace).Get(ctx, p.Pod().Name, metav1.GetOptions{})
	if err == nil && isPod(o, p.Pod()) {
		return // the copy is older
	}
	if err == nil || apierrors.IsNotFound(err) {
		_, err = c.Fleet.DeletePort(ctx, p.Name, func(is model.Port) error {
			if is.Pod() != p.Pod() {
				return fmt.Errorf("port %q has another pod now", p.Name)
			}
			return nil
		})
	}
	switch {
	case err == nil:
		c.Log.Info("deleted a port: Kubernetes no longer has its pod", "port", p.Name, "pod", p.Pod().String(), "uid", p.Pod().UID)
	case ctx.Err() == nil && !fleet.IsWhy(err, fleet.NotFound):
		c.Log.Warn("delete the port of a pod that Kubernetes no longer has", "port", p.Name, "pod", p.Pod().String(), "error", err)
	}
}
