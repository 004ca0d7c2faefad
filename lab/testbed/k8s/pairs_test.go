package k8s

import (
	"context"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/host"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// A matrix has all usable nodes, and each of them receives.
func TestAMatrixIsBetweenAllUsableNodes(t *testing.T) {
	c, _ := simulate(t, aNode("n1", at("192.0.2.1")), aNode("n2", at("192.0.2.2")), aNode("n3", at("192.0.2.3")), aNode("n4", cordoned), aNode("n5", withTaint))
	o := Options{Least: 2, Service: true, Pairs: true}
	chosen, left, err := c.choose(context.Background(), o)
	must.Succeed(t, err)
	if len(left) != 2 || !strings.Contains(left[0], "kubectl uncordon n4") || !strings.Contains(left[1], "node n5 has a taint") {
		t.Errorf("left out %q, want n4 and n5", left)
	}
	x := &Executor{cluster: c, objects: &runObjects{namespace: "wt-run1"}}
	for i, n := range chosen {
		m := must.Get(newMachine(c, x.objects, n, i, 1))(t)
		m.cpus, m.hello, m.survey = []int{0, 1}, agent.Hello{Boot: n.Metadata.Name}, &host.Survey{Device: host.Device{Name: "eth0", MTU: 1500}}
		x.machines = append(x.machines, m)
	}
	must.Succeed(t, x.makeServices(context.Background(), o))
	m, err := suite.NewMatrix(x.Nodes(), "all", 1)
	if err != nil || m.Len() != 6 {
		t.Fatalf("%d pairs of %v (%v), want 6", m.Len(), x.Nodes(), err)
	}
	for i := range m.Len() {
		pair := m.Pair(i)
		between := must.Get(testbed.Chooser(x).Between(pair.From, pair.To))(t)
		_, cluster := between.(testbed.Cluster)
		sc := suite.Scenario{System: "service", Fabric: suite.Fabric{MTU: 1500}, Workload: suite.Workload{IPVersion: 4}, Pairs: 1}
		_, unable := between.Requires(&sc, system.ServiceIP{}.About())
		layout, unfit := between.Layout(2)
		if !cluster || unable != nil || unfit != nil || len(layout.Nodes) != 2 || layout.Shared {
			t.Errorf("%v: a cluster %t, %v, %v, layout %+v", pair, cluster, unable, unfit, layout)
		}
		p := between.(*Executor)
		if !slices.Equal(p.Nodes(), []string{pair.From, pair.To}) || !p.machines[1].service.Is4() {
			t.Errorf("%v has the nodes %v and the service %v of the receiver", pair, p.Nodes(), p.machines[1].service)
		}
	}
	_, err = x.Between("n1", "n4")
	must.Fail(t, err, "the run has no node n4; add it to --nodes")
}
