package k8s

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// events logs problems, and adds them to the events of the objects concerned. `kubectl get events`
// prints these; `kubectl describe` does not print those of a NetworkPolicy.
type events struct {
	core  *rest.RESTClient
	node  string
	log   *slog.Logger
	queue workqueue.TypedRateLimitingInterface[problem]

	mu   sync.Mutex
	said map[string]map[problem]time.Time // problems that exist, by reporter, and when they were put into queue
}

// problem is a problem of an object.
type problem struct {
	About           corev1.ObjectReference
	Reason, Message string
}

// Reasons of events.
const (
	agentFailed     = "VrouterFailed"
	otherPlugin     = "OtherNetworkPlugin"
	podCIDROutside  = "PodCIDROutsideNetwork"
	noPodCIDR       = "NoPodCIDR"
	withoutEffect   = "PartWithoutEffect"
	tablesFull      = "NetworkPolicyTablesFull"
	podUnknown      = "NetworkPoliciesUnknown"
	notTranslated   = "NotTranslated"
	servicesNotSet  = "ServicesNotWritten"
	eventLife       = time.Hour // the API server deletes events after this time, unless it has another --event-ttl
	eventRetry      = time.Second
	eventRetryLimit = time.Minute
)

func newEvents(config *rest.Config, node string, log *slog.Logger) (*events, error) {
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[problem](eventRetry, eventRetryLimit)
	return &events{core: core, node: node, log: log, queue: workqueue.NewTypedRateLimitingQueue(limiter), said: map[string]map[problem]time.Time{}}, err
}

// aboutNode is the reference of a Node object in events. The kubelet's events have the name as UID too.
func aboutNode(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// report replaces all problems of a reporter. It logs those that are new, and adds them
// to the events. A report later than eventLife adds them again.
func (e *events) report(reporter string, all []problem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was, is, now := e.said[reporter], make(map[problem]time.Time, len(all)), time.Now()
	for _, p := range all {
		at, known := was[p]
		if !known {
			e.warn(p)
		}
		if now.Sub(at) > eventLife {
			at = now
			e.queue.Add(p)
		}
		is[p] = at
	}
	e.said[reporter] = is
}

func (e *events) warn(p problem) {
	e.log.Warn(p.Message, "reason", p.Reason, strings.ToLower(p.About.Kind), strings.TrimPrefix(p.About.Namespace+"/"+p.About.Name, "/"))
}

// exists reports whether the last report of any reporter has the problem.
func (e *events) exists(p problem) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.said {
		if _, is := all[p]; is {
			return true
		}
	}
	return false
}

// run adds reported problems to the cluster's events until ctx ends.
func (e *events) run(ctx context.Context) {
	context.AfterFunc(ctx, e.queue.ShutDown)
	for {
		p, ended := e.queue.Get()
		if ended {
			return
		}
		if e.exists(p) && e.add(ctx, p) != nil {
			e.queue.AddRateLimited(p)
		} else {
			e.queue.Forget(p)
		}
		e.queue.Done(p)
	}
}

// add adds a problem to the cluster's events. Several agents can have the same problem of an object, so their
// event has the same name.
func (e *events) add(ctx context.Context, p problem) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h := fnv.New64a()
	fmt.Fprint(h, p)
	now := metav1.Now()
	err := e.core.Post().Namespace(cmp.Or(p.About.Namespace, metav1.NamespaceDefault)).Resource("events").Body(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("vrouter.%016x", h.Sum64())},
		InvolvedObject: p.About, Reason: p.Reason, Message: p.Message, Type: corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "vrouter", Host: e.node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) { // not found: the namespace was deleted
		return nil
	}
	if err != nil {
		e.log.Warn("cannot add an event", "reason", p.Reason, "kind", p.About.Kind, "name", p.About.Name, "error", err)
	}
	return err
}
