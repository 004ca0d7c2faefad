package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"windtunnel/internal/pause"
)

const (
	// pullTime is the maximum time until a pod runs, with the pull of its image.
	pullTime = 3 * time.Minute
	// accountTime is the maximum time until a new namespace has its default service
	// account, without which it accepts no pods.
	accountTime = 15 * time.Second
	// goneTime is the maximum time until a deleted pod is gone.
	goneTime = 30 * time.Second
	lookTime = 200 * time.Millisecond
)

// createPod makes a pod.
func (c *cluster) createPod(ctx context.Context, p *podObject) error {
	deadline := time.Now().Add(accountTime)
	for {
		_, err := create[podObject](ctx, c, podsPath(p.Metadata.Namespace), p)
		switch {
		case err == nil:
			return nil
		case (strings.Contains(err.Error(), "serviceaccount") || strings.Contains(err.Error(), "status unknown for quota")) && time.Now().Before(deadline):
		default:
			return notMade(fmt.Sprintf("pod %s on node %s", p.Metadata.Name, p.Spec.NodeName), err)
		}
		if err := pause.For(ctx, lookTime); err != nil {
			return err
		}
	}
}

// quotas has the refusals of the admission plugin ResourceQuota, with their remedies.
var quotas = map[string]string{
	"exceeded quota":     "raise the quota of new namespaces",
	"insufficient quota": "the cluster admits it only in namespaces with a quota for it: give new namespaces this quota",
	"must specify":       "the quota limits CPU or memory, and the pods of a measurement have no limits: remove these resources from the quota of new namespaces",
}

// notMade returns the error of a request to make an object.
func notMade(object string, err error) error {
	for words, remedy := range quotas {
		if is(err, http.StatusForbidden) && strings.Contains(err.Error(), words) {
			return fmt.Errorf("make %s: a quota of the cluster forbids it (%w); %s", object, err, remedy)
		}
	}
	return fmt.Errorf("make %s: %w", object, err)
}

// awaitRunning waits until a pod runs, and returns it.
func (c *cluster) awaitRunning(ctx context.Context, namespace, name string) (*podObject, error) {
	deadline := time.Now().Add(pullTime)
	for {
		p, err := get[*podObject](ctx, c, podsPath(namespace)+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("look at pod %s: %w", name, err)
		}
		running, err := stateOf(p)
		if err != nil || running {
			return p, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("pod %s did not start on node %s within %v: %s", name, p.Spec.NodeName, pullTime, c.lastEvent(ctx, p))
		}
		if err := pause.For(ctx, lookTime); err != nil {
			return nil, err
		}
	}
}

// hopeless has the reasons with which a container waits for an event that does not come by
// itself. ErrImagePull becomes ImagePullBackOff after the second attempt.
var hopeless = map[string]string{
	"ImagePullBackOff":           "its image %s cannot be pulled",
	"InvalidImageName":           "%s is not a name of an image",
	"ErrImageNeverPull":          "its image %s is not on the node, and the pull policy forbids to pull it",
	"CreateContainerConfigError": "its container of image %s cannot be configured",
	"CreateContainerError":       "its container of image %s cannot be made",
	"RunContainerError":          "its image %s has no windtunnel program in its PATH, or the program cannot run there",
}

// stateOf reports whether a pod runs. The error says why it does not run, and never will.
func stateOf(p *podObject) (running bool, err error) {
	if p.Metadata.DeletionTimestamp != nil {
		return false, fmt.Errorf("pod %s was deleted on node %s, as by `kubectl drain`", p.Metadata.Name, p.Spec.NodeName)
	}
	failed := func(format string, args ...any) (bool, error) {
		return false, fmt.Errorf("pod %s on node %s: %s", p.Metadata.Name, p.Spec.NodeName, fmt.Sprintf(format, args...))
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && hopeless[w.Reason] != "" {
			return failed(hopeless[w.Reason]+" (%s); --image names the image (docs/kubernetes.md says how to make it)", s.Image, given(w.Reason, w.Message))
		}
		if end := s.State.Terminated; end != nil && p.Status.Reason == "" {
			return failed("the windtunnel program of image %s ended with exit status %d (%s); use an image of this windtunnel version and of the node's CPU architecture", s.Image, end.ExitCode, given(end.Reason, end.Message))
		}
	}
	switch p.Status.Phase {
	case "Running":
		return true, nil
	case "Failed", "Succeeded":
		switch p.Status.Reason {
		case "Evicted":
			return failed("the kubelet evicted it: %s", p.Status.Message)
		case "DeadlineExceeded":
			return failed("it reached its maximum lifetime")
		}
		return failed("it ended (%s)", given(p.Status.Reason, p.Status.Message))
	}
	return false, nil
}

// noReason stands for a missing explanation.
const noReason = "the cluster gives no reason"

// given joins a reason and a message of the cluster, either of which can be empty.
func given(reason, message string) string {
	if reason == "" || message == "" {
		return cmp.Or(reason, message, noReason)
	}
	return reason + ": " + message
}

// lastEvent returns the last warning about a pod.
func (c *cluster) lastEvent(ctx context.Context, p *podObject) string {
	all, err := list[event](ctx, c, namespacesPath+"/"+p.Metadata.Namespace+"/events"+"?fieldSelector=involvedObject.name="+p.Metadata.Name)
	if err != nil {
		return err.Error()
	}
	said := noReason
	for _, e := range all {
		if e.Type == "Warning" {
			said = given(e.Reason, e.Message)
		}
	}
	return said
}

// deletePod deletes a pod and waits until it is gone. An absent pod is no error.
func (c *cluster) deletePod(ctx context.Context, namespace, name string) error {
	deadline := time.Now().Add(goneTime)
	for {
		err := c.ask(ctx, http.MethodDelete, podsPath(namespace)+"/"+name, nil, nil)
		if is(err, http.StatusNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete pod %s: %w", name, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("delete pod %s: it was not gone after %v; its kubelet does not answer", name, goneTime)
		}
		if err := pause.For(ctx, lookTime); err != nil {
			return err
		}
	}
}

// patiently repeats f while the API server does not answer, at most for awayTime.
func patiently(ctx context.Context, f func() error) error {
	deadline := time.Now().Add(awayTime)
	for {
		err := f()
		if !away(err) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server did not answer within %v: %w", awayTime, err)
		}
		if err := pause.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// away reports whether an error says that the API server does not answer now.
func away(err error) bool {
	var f *failure
	if !errors.As(err, &f) {
		return false
	}
	// An API server that has just started does not know the roles yet.
	if is(err, http.StatusForbidden) && strings.Contains(f.Message, " cannot ") {
		return true
	}
	return f.Reason == "" || f.Reason == "ServerTimeout" || f.Code == http.StatusTooManyRequests || f.Code == http.StatusServiceUnavailable
}
