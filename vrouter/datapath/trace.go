package datapath

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// TraceKind is the kind of a step in a trace.
type TraceKind uint32

// In the order of enum trace_kind.
const (
	TraceVif TraceKind = iota
	TraceFlow
	TracePolicy
	TraceBridge
	TraceRouteHost
	TraceRouteLPM
	TraceNexthop
	TraceMember
	TraceMTU
	TraceEncap
	TraceLabel
	TraceVNI
	TraceDeliver
	TraceAnswer
	TraceDrop
	TraceTranslated // Value 0: the source address; 1: the destination address
	TraceFallback   // ID: nexthop for a packet that cannot be translated
	TraceService    // Address: the service; ID: its number; Value: its backends
	TraceNAT        // Address: in place of the workload's, or the workload's; ID: the port
)

// TraceStep is one lookup or decision of the program, as it made it.
type TraceStep struct {
	Kind    TraceKind
	Found   bool
	VRF     uint32
	ID      uint32 // vif, nexthop, label, VNI, rule, encapsulation or reason, by kind
	Value   uint32 // label, MTU, member index, by kind
	Address netip.Addr
	Port    uint16 // of TraceService: of the chosen backend
}

// Size of struct __sk_buff, and offsets in it.
const (
	contextBytes   = 192
	contextIngress = 36 // ifindex of the device at whose ingress the frame is; 0: at no ingress
	contextIfindex = 40
)

// Trace runs from_workload on a frame that the workload behind a device might
// send, over the tables as they are, and returns the steps that it took and
// its verdict, a tc action. Nothing is sent and nothing is counted.
func (d *Datapath) Trace(ifindex int, frame []byte) ([]TraceStep, int32, error) {
	c, err := d.loadTracing()
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	return traceBy(c, ifindex, frame)
}

// traceBy does the same as Trace, with a program that loadTracing has loaded.
func traceBy(c *ebpf.Collection, ifindex int, frame []byte) ([]TraceStep, int32, error) {
	context := make([]byte, contextBytes)
	binary.NativeEndian.PutUint32(context[contextIngress:], uint32(ifindex))
	binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(ifindex))
	options := &ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+mostOuterBytes), Context: context}
	code, err := c.Programs["from_workload"].Run(options)
	if err != nil {
		return nil, 0, fmt.Errorf("run the program on a packet from device %d: %w", ifindex, err)
	}
	var t layout.Trace
	if err := c.Maps["traces"].Lookup(uint32(0), &t); err != nil {
		return nil, 0, fmt.Errorf("read the trace: %w", err)
	}
	var steps []TraceStep
	for _, s := range t.Step[:min(t.Count, uint32(len(t.Step)))] {
		steps = append(steps, TraceStep{
			Kind: TraceKind(s.Kind), Found: s.Found != 0, VRF: s.VRF, ID: s.ID, Value: s.Value, Address: s.Address.Addr(),
		})
		if last := &steps[len(steps)-1]; last.Kind == TraceService {
			last.Port = portIn(options.DataOut, frame)
		}
	}
	return steps, int32(code), nil
}

// mostOuterBytes is more than the headers in front of a frame's packet.
const mostOuterBytes = 128

// portIn returns the destination port of a packet in the frame that the program sends. Only headers in front of the
// transport header change their length.
func portIn(sent, frame []byte) uint16 {
	const ethernet, v6 = 14, 40
	header := ethernet + v6
	if frame[ethernet]>>4 == 4 {
		header = ethernet + 4*int(frame[ethernet]&15)
	}
	if at := len(sent) - (len(frame) - header) + 2; at >= 0 && at+2 <= len(sent) {
		return binary.BigEndian.Uint16(sent[at:])
	}
	return 0
}

// loadTracing loads the programs once more with tracing on, over the same
// tables but counters of their own.
func (d *Datapath) loadTracing() (*ebpf.Collection, error) {
	spec, err := d.readPrograms()
	if err != nil {
		return nil, err
	}
	delete(spec.Programs, "fabric_xdp")
	delete(spec.Programs, "fabric_tc")
	delete(spec.Programs, "fabric_out")
	delete(spec.Programs, "looped")
	if err := spec.Variables["tracing"].Set(uint32(1)); err != nil {
		return nil, fmt.Errorf("turn tracing on: %w", err)
	}
	tables := map[string]*ebpf.Map{"identities": d.maps.Identities, "allows": d.maps.Allows}
	for field, m := range reflect.ValueOf(d.maps).Fields() {
		if name := field.Tag.Get("ebpf"); pinned[name] {
			tables[name] = m.Interface().(*ebpf.Map)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: tables})
	if err != nil {
		return nil, explain(err)
	}
	return c, nil
}
