package k8s

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windtunnel/internal/must"
)

// The condition of a node follows the readiness of its agent. vrouter does not touch the conditions of nodes without an agent,
// unless it wrote them.
func TestTheConditionOfANodeFollowsItsAgent(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason string) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: status, Reason: reason}}
	}
	for _, c := range []struct {
		name            string
		has             []corev1.NodeCondition
		hasAgent, ready bool
		notReady        time.Duration
		want            string
		wait            time.Duration
	}{
		{"a new agent is ready", nil, true, true, 0, "False VrouterIsUp", 0},
		{"an agent that was away is ready", condition("True", agentNotReady), true, true, 0, "False VrouterIsUp", 0},
		{"a cloud waits for routes", condition("True", "NoRouteCreated"), true, true, 0, "False VrouterIsUp", 0},
		{"a cloud has routes", condition("False", "RouteCreated"), true, true, 0, "", 0},
		{"nothing changed", condition("False", agentReady), true, true, 0, "", 0},
		{"an agent restarts", condition("False", agentReady), true, false, time.Second, "", agentWait - time.Second},
		{"the pod of an agent is replaced", condition("False", agentReady), false, false, time.Second, "", agentWait - time.Second},
		{"an agent does not become ready", condition("False", agentReady), true, false, agentWait, "True VrouterIsDown", 0},
		{"a new agent does not become ready", nil, true, false, agentWait, "True VrouterIsDown", 0},
		{"an agent is still not ready", condition("True", agentNotReady), true, false, time.Hour, "", 0},
		{"the DaemonSet was deleted", condition("True", agentNotReady), false, false, agentWait, "<nil> delete", 0},
		{"a node without an agent", nil, false, false, time.Hour, "", 0},
		{"another network plugin's condition", condition("True", "FlannelIsDown"), false, false, time.Hour, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			patch, wait := conditionPatch(c.has, c.hasAgent, c.ready, c.notReady)
			got := ""
			if patch != nil {
				got = fmt.Sprint(patch["status"], " ", patch["reason"])
				if patch["$patch"] != nil {
					got = fmt.Sprint(patch["status"], " ", patch["$patch"])
				}
			}
			must.Equal(t, c.want, got)
			must.Equal(t, c.wait, wait)
		})
	}
}
