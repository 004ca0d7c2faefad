package k8s

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons of the events of a Node object.
const (
	agentFailed    = "VrouterFailed"
	otherPlugin    = "OtherNetworkPlugin"
	podCIDROutside = "PodCIDROutsideNetwork"
)

// warn logs a problem of the node, and adds it to the events of the Node object.
func (n *Node) warn(ctx context.Context, c *client, reason, message string) {
	n.Options.Logger.Warn(message)
	n.event(ctx, c, reason, message)
}

// event adds an event to the Node object. `kubectl describe node` prints it.
func (n *Node) event(ctx context.Context, c *client, reason, message string) {
	now := metav1.NewTime(time.Now())
	err := c.ask(ctx, http.MethodPost, "/api/v1/namespaces/"+metav1.NamespaceDefault+"/events", "application/json", corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: n.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: types.UID(n.Name)}, // the kubelet's events have the name too
		Reason:         reason, Message: message, Type: corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "vrouter", Host: n.Name},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, nil)
	if err != nil {
		n.Options.Logger.Warn("cannot add an event to the Node object", "reason", reason, "error", err)
	}
}
