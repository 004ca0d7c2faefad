package suite

import "slices"

// valuesOf returns the values of a list, or preset if there is no list.
func valuesOf[V any](list []at[V], preset V) []V {
	if len(list) == 0 {
		return []V{preset}
	}
	out := make([]V, len(list))
	for i, a := range list {
		out[i] = a.V
	}
	return out
}

// pick returns the entries with the given names, in the order of names. Without names
// it returns all entries; the suite must then have only one entry.
func pick[T any](names []at[string], from []named[T]) []named[T] {
	if len(names) == 0 {
		return from
	}
	var out []named[T]
	for _, n := range names {
		for _, e := range from {
			if e.name == n.V {
				out = append(out, e)
			}
		}
	}
	return out
}

func workloadOf(w named[workloadSpec]) Workload {
	v := w.value
	out := Workload{
		Name: w.name, Kind: v.kind.V, Streams: v.streams.V,
		SendBuffer: v.sendBuffer.V, ReceiveBuffer: v.receiveBuffer.V,
		NoDelay: v.noDelay.V || v.packetPerSend.V, PacketPerSend: v.packetPerSend.V, Sendfile: v.sendfile.V, Rate: v.rate.V, IPVersion: v.ipVersion.V, ReceiverWork: v.receiverWork.V,
	}
	if slices.Contains(streams, v.kind.V) {
		out.Direction, out.Buffer = v.direction.V, v.buffer.V
	} else {
		out.Request, out.Response = v.request.V, v.response.V
		if out.Load = v.load.V; out.Load > 0 {
			out.Direction = v.direction.V
		}
	}
	if !v.buffer.Set {
		switch v.kind.V {
		case TCPStream:
			out.Buffer = defaultBuffer
		case UDPStream:
			out.Buffer = defaultDatagram
		}
	}
	return out
}

// fabricOf returns the settings of fabric f for a workload.
func fabricOf(f named[fabricSpec], traffic Workload) Fabric {
	v := f.value
	offload := v.offload.V
	if v.kind.V == Existing && !v.offload.Set {
		offload = OffloadKept
	}
	return Fabric{
		Name: f.name, Kind: v.kind.V, MTU: v.mtu.V, Offload: offload, Rate: v.rate.V, Delay: v.delay.V, CPUs: v.cpus.V, CPUShare: v.cpuShare.V, Queues: v.queues.V, Links: v.links.V, Team: teamOf(v.team.V),
		Steering: steeringOf(v.steering.V), MovingQueues: v.queueCPUs.V == "moving", Cut: v.cut.V,
		NoCoalescing: v.kind.V == Wire && !coalesces(v.coalesce.V, traffic),
	}
}

// coalesces reports whether the NICs collect received frames. It resolves "auto" like
// an adaptive NIC driver (Linux: lib/dim): on if many frames arrive, as in streams,
// else off.
func coalesces(setting string, traffic Workload) bool {
	if setting == defaultCoalesce {
		return !traffic.Kind.Exchange() || traffic.Load > 0
	}
	return setting == "on"
}

func teamOf(name string) Team {
	if name == defaultTeam {
		return Multipath
	}
	return Team(name)
}

func steeringOf(name string) Steering {
	if name == defaultSteering {
		return ByFlow
	}
	return Steering(name)
}

func endpointOf(e named[endpointSpec]) Endpoint {
	v := e.value
	out := Endpoint{Name: e.name, Spread: v.spread.V, NoSegmentation: !v.segmentation.V, HostVNIC: v.hostVNIC.V}
	if EndpointKind(v.kind.V) == VM {
		out.Kind, out.CPUs, out.Memory = VM, v.cpus.V, v.memory.V
	}
	return out
}

// orDefault returns the entries of an index, or one entry with default values.
func orDefault[T any](entries []named[T], name string, of table[T]) []named[T] {
	if len(entries) > 0 {
		return entries
	}
	var preset T
	for _, f := range of.fields {
		f.init(&preset)
	}
	return []named[T]{{name: name, value: preset}}
}

// timingOf returns the default timing with the keys of the layers. A later layer
// overrides an earlier one.
func timingOf(layers ...timingSpec) Timing {
	return timingOver(Timing{defaultWarmup, defaultDuration, defaultCooldown}, layers...)
}

// timingOver returns t with the keys of the layers.
func timingOver(t Timing, layers ...timingSpec) Timing {
	for _, l := range layers {
		if l.warmup.Set {
			t.Warmup = l.warmup.V
		}
		if l.duration.Set {
			t.Duration = l.duration.V
		}
		if l.cooldown.Set {
			t.Cooldown = l.cooldown.V
		}
	}
	return t
}
