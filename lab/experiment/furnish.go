package experiment

import (
	"fmt"
	"net/netip"

	"windtunnel/lab/agent"
	"windtunnel/lab/testbed"
)

// furnish uses endpoints that the testbed has already, such as pods, as the sender and the
// receiver of the scenario. It returns them as the containers of each node; nil if the testbed
// has none, or if the tools run on the nodes.
func (b *Bench) furnish() ([][]agent.Container, error) {
	tb, ok := b.Testbed.(testbed.Furnished)
	if !ok || b.cell.about.OnNode {
		return nil, nil
	}
	sender, receiver, err := tb.Endpoints(b.cell.Scenario, b.cell.about)
	if err != nil {
		return nil, err
	}
	nodes := b.Testbed.Nodes()
	plan := make([][]agent.Container, len(nodes))
	for _, e := range []testbed.Endpoint{sender, receiver} {
		if b.cell.Workload.IPVersion == 4 && !e.V4.IsValid() || b.cell.Workload.IPVersion == 6 && !e.V6.IsValid() {
			return nil, fmt.Errorf("endpoint %s of node %s has no IPv%d address; the cluster does not give it one", e.Name, nodes[e.Node].Name(), b.cell.Workload.IPVersion)
		}
		plan[e.Node] = append(plan[e.Node], agent.Container{Name: e.Name, V4: alone(e.V4), V6: alone(e.V6), Network: e.Place.Network})
	}
	b.MTU = min(sender.Place.MTU, receiver.Place.MTU)
	own := func(e testbed.Endpoint) Endpoint {
		return Endpoint{Node: nodes[e.Node], Name: e.Name, V4: e.V4, V6: e.V6, Listen: e.Listen, agent: e.Agent, place: e.Place}
	}
	b.Pairs = []Pair{{Sender: own(sender), Receiver: own(receiver)}}
	return plan, nil
}

// alone returns the prefix that has only this address; not valid if the address is not.
func alone(a netip.Addr) netip.Prefix {
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// tools returns the agent that starts the endpoint's tools, and the endpoint's name there.
func (e Endpoint) tools() (a *agent.Client, name string) {
	if e.agent != nil {
		return e.agent, ""
	}
	return e.Node.Agent(), e.Name
}

// tracked returns the arguments with which the agent of the endpoint's node meters a
// process of the endpoint.
func (e Endpoint) tracked(p *agent.Process, label string) agent.TrackArgs {
	if e.agent != nil {
		return agent.TrackArgs{PID: p.PID(), Processes: e.place.Processes, Label: label}
	}
	return agent.TrackArgs{Process: p.ID(), Label: label}
}

// agents lists the agents of all nodes and of the endpoints that have one.
func (b *Bench) agents() (list []*agent.Client) {
	for _, n := range b.Testbed.Nodes() {
		list = append(list, n.Agent())
	}
	for _, p := range b.Pairs {
		for _, e := range []Endpoint{p.Sender, p.Receiver} {
			if e.agent != nil {
				list = append(list, e.agent)
			}
		}
	}
	return list
}
