package agent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func (a *agent) handleTrace(r *http.Request) (any, error) {
	request, err := read[api.TraceRequest](r)
	if err != nil {
		return nil, err
	}
	return a.trace(a.snapshot.Load(), request)
}

// trace runs a packet through the program and describes its steps.
func (a *agent) trace(v *snapshot, r api.TraceRequest) (inspect.Trace, error) {
	p, err := makeProbe(v, r)
	if err != nil {
		return inspect.Trace{}, err
	}
	d := v.devices[r.From]
	if d == nil {
		return inspect.Trace{}, refuse(http.StatusConflict, "port %q has no device now: %s", r.From, v.reasons())
	}
	steps, action, err := a.reconciler.Plane().Trace(d.Index(), p.frame)
	if err != nil {
		return inspect.Trace{}, err
	}
	t := inspect.Trace{Packet: p.words}
	for _, s := range steps {
		t.Steps = append(t.Steps, describeStep(v, s))
	}
	t.Verdict, t.Dropped = verdict(v, steps, action)
	from, _ := v.want.Port(r.From)
	o, ok := openingOf(p.frame)
	if ok {
		o = a.services.translated(o, steps)
	}
	switch {
	case !ok:
	case !t.Dropped:
		t.Elsewhere = v.deniedThere(&from, o, farEnd(v, steps))
	case dropsBy(steps, "policy"):
		if words := v.deniedHere(&from, o); words != "" {
			t.Verdict += ": " + words
		}
	}
	return t, nil
}

// dropsBy reports whether the packet was dropped for a reason.
func dropsBy(steps []datapath.TraceStep, reason string) bool {
	return slices.ContainsFunc(steps, func(s datapath.TraceStep) bool {
		return s.Kind == datapath.TraceDrop && datapath.ReasonOf(s.ID).Name == reason
	})
}

// describeStep describes one step.
func describeStep(v *snapshot, s datapath.TraceStep) inspect.Step {
	network := networkWords(v, s.VRF)
	switch s.Kind {
	case datapath.TraceVif:
		return inspect.Step{What: "vif", Key: v.names().indexes[s.Value], Result: fmt.Sprintf("vif %d, port %s, %s", s.ID, v.names().vifs[s.ID], network)}
	case datapath.TraceFlow:
		return inspect.Step{What: "flow", Key: "with " + s.Address.String(), Result: foundWords(s, "known: "+actionWords(s.Value == 0), "new")}
	case datapath.TracePolicy:
		by := "no rule matches; default"
		if s.Found {
			by = fmt.Sprintf("rule %d decides", s.ID)
		}
		return inspect.Step{What: "policy", Key: "with " + s.Address.String(), Result: by + ": " + actionWords(s.Value != 0)}
	case datapath.TraceBridge:
		return inspect.Step{What: "bridge", Key: "destination MAC, " + network, Result: foundWords(s, leadsTo(v, s), "unknown")}
	case datapath.TraceRouteHost:
		return inspect.Step{What: "host route", Key: s.Address.String() + ", " + network, Result: foundWords(s, leadsTo(v, s), "none")}
	case datapath.TraceRouteLPM:
		return inspect.Step{What: "prefix route", Key: s.Address.String() + ", " + network, Result: foundWords(s, leadsTo(v, s), "none")}
	}
	return pathStep(v, s)
}

// pathStep describes a step after the lookup of the destination.
func pathStep(v *snapshot, s datapath.TraceStep) inspect.Step {
	switch s.Kind {
	case datapath.TraceNexthop:
		return inspect.Step{What: "nexthop", Key: fmt.Sprint(s.ID), Result: nexthopTypes[uint8(s.Value)] + ": " + nexthopName(v, s.ID)}
	case datapath.TraceMember:
		return inspect.Step{What: "member", Key: fmt.Sprint(s.Value), Result: fmt.Sprintf("nexthop %d, %s", s.ID, nexthopName(v, s.ID))}
	case datapath.TraceMTU:
		return inspect.Step{What: "MTU", Key: fmt.Sprintf("nexthop %d", s.ID), Result: fmt.Sprintf("%d: the packet is larger", s.Value)}
	case datapath.TraceTranslated:
		what := map[uint32]string{0: "translated source", 1: "translated destination"}[s.Value]
		return inspect.Step{What: what, Key: networkWords(v, s.VRF), Result: s.Address.String()}
	case datapath.TraceService:
		return inspect.Step{What: "service", Key: s.Address.String(), Result: fmt.Sprintf("number %d, %d backends", s.ID, s.Value)}
	case datapath.TraceNAT:
		return inspect.Step{What: "NAT", Key: networkWords(v, s.VRF), Result: fmt.Sprintf("address %s, port %d", s.Address, s.ID)}
	case datapath.TraceFallback:
		return inspect.Step{What: "translation", Key: networkWords(v, s.VRF), Result: foundWords(s, fmt.Sprintf("the packet cannot be translated; fallback: nexthop %d, %s", s.ID, nexthopName(v, s.ID)), "the packet cannot be translated, and there is no fallback")}
	case datapath.TraceEncap:
		return inspect.Step{What: "encapsulation", Key: encapsulationName(s.ID), Result: labelWords(s.ID, s.Value)}
	case datapath.TraceLabel, datapath.TraceVNI:
		what := map[bool]string{true: "label", false: "VNI"}[s.Kind == datapath.TraceLabel]
		return inspect.Step{What: what, Key: fmt.Sprint(s.ID), Result: foundWords(s, fmt.Sprintf("nexthop %d, %s", s.Value, nexthopName(v, s.Value)), "unknown")}
	case datapath.TraceDeliver:
		return inspect.Step{What: "deliver", Key: v.names().indexes[s.Value], Result: fmt.Sprintf("vif %d, port %s", s.ID, v.names().vifs[s.ID])}
	case datapath.TraceAnswer:
		return inspect.Step{What: "answer", Key: networkWords(v, s.VRF), Result: foundWords(s, "the vrouter answers the workload", "the vrouter does not answer the workload")}
	case datapath.TraceDrop:
		reason := datapath.ReasonOf(s.ID)
		return inspect.Step{What: "drop", Key: reason.Name, Result: reason.Meaning}
	}
	return inspect.Step{What: fmt.Sprintf("step of kind %d", s.Kind), Result: "unknown to this agent"}
}

func foundWords(s datapath.TraceStep, found, not string) string {
	if s.Found {
		return found
	}
	return not
}

func actionWords(forward bool) string {
	if forward {
		return "forward"
	}
	return "drop"
}

func networkWords(v *snapshot, vrf uint32) string {
	if n, ok := v.networks[vrf]; ok {
		return fmt.Sprintf("VRF %d (%s)", vrf, n.Name)
	}
	return fmt.Sprintf("VRF %d", vrf)
}

func leadsTo(v *snapshot, s datapath.TraceStep) string {
	text := fmt.Sprintf("nexthop %d, %s", s.ID, nexthopName(v, s.ID))
	if s.Value != 0 {
		text += fmt.Sprintf(", label or VNI %d", s.Value)
	}
	return text
}

func nexthopName(v *snapshot, id uint32) string {
	if id == 0 {
		return "discard" // the nexthop's entry is empty
	}
	if name := v.names().nexthops[id]; name != "" {
		return name
	}
	return "unnamed"
}

func encapsulationName(encap uint32) string {
	switch {
	case encap == 0:
		return "local"
	case int(encap) < len(layout.Encapsulations):
		return string(layout.Encapsulations[encap])
	}
	return fmt.Sprintf("encapsulation %d", encap)
}

func labelWords(encap, label uint32) string {
	switch model.Encapsulation(encapsulationName(encap)) {
	case model.VXLAN:
		return fmt.Sprintf("VNI %d", label)
	case model.Direct, model.Translated:
		return fmt.Sprintf("network %d", label)
	}
	return fmt.Sprintf("label %d", label)
}

// tcActShot is TC_ACT_SHOT of linux/pkt_cls.h.
const tcActShot = 2

// verdict describes the result of the packet.
func verdict(v *snapshot, steps []datapath.TraceStep, action int32) (words string, dropped bool) {
	var last, drop, member, source, destination, fallback *datapath.TraceStep
	nexthop := lastNexthop(steps)
	copies := 0
	for i := range steps {
		s := &steps[i]
		switch s.Kind {
		case datapath.TraceMember:
			member = s
			copies++
		case datapath.TraceEncap, datapath.TraceDeliver:
			last = s
		case datapath.TraceTranslated:
			if source == nil {
				source = s
			} else {
				destination = s
			}
		case datapath.TraceFallback:
			fallback = s
		case datapath.TraceAnswer:
			if s.Found { // a query that is not answered is flooded
				last = s
			}
		case datapath.TraceDrop:
			drop = s
		}
	}
	switch {
	case drop != nil:
		reason := datapath.ReasonOf(drop.ID)
		words = fmt.Sprintf("dropped: %s (%s)", reason.Name, reason.Meaning)
		if action != tcActShot {
			words += "; the workload gets an ICMP error"
		}
		return words, true
	case last == nil && member != nil && nexthop == nil:
		return fmt.Sprintf("replicated to %d destinations in the network", copies), false
	case last == nil && action == tcActShot:
		return "dropped: unknown reason", true
	case last == nil:
		return "answered by the vrouter itself", false
	case last.Kind == datapath.TraceEncap:
		words = fmt.Sprintf("forwarded to %s by %s, %s", farEnd(v, steps), encapsulationName(last.ID), labelWords(last.ID, last.Value))
		if destination != nil {
			words += fmt.Sprintf(", from %s to %s", source.Address, destination.Address)
		}
		if fallback != nil {
			words += "; the packet cannot be translated"
		}
		return words, false
	case last.Kind == datapath.TraceDeliver:
		return fmt.Sprintf("delivered to port %s on this node", v.names().vifs[last.ID]), false
	}
	return "answered by the vrouter itself", false
}

// lastNexthop returns the last step with a nexthop; nil: the trace has no such step.
func lastNexthop(steps []datapath.TraceStep) *datapath.TraceStep {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].Kind == datapath.TraceNexthop {
			return &steps[i]
		}
	}
	return nil
}

// farEnd returns the node, gateway or router at the far end of a tunnel. It takes it from the name of the tunnel's
// nexthop, for example "tunnel b mpls-udp", "tunnel gateway mx vxlan ethernet" or "tunnel router 192.0.2.9 mpls-udp".
func farEnd(v *snapshot, steps []datapath.TraceStep) string {
	nexthop := lastNexthop(steps)
	if nexthop == nil {
		return "an unknown end"
	}
	words := strings.Fields(strings.TrimSuffix(v.names().nexthops[nexthop.ID], " ethernet"))
	switch {
	case len(words) < 3 || words[0] != "tunnel":
		return nexthopName(v, nexthop.ID)
	case len(words) == 3:
		return "node " + words[1]
	}
	return words[1] + " " + words[2]
}
