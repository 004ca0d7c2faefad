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
	out := w.value.Workload
	out.Name, out.NoDelay = w.name, out.NoDelay || out.PacketPerSend
	if slices.Contains(streams, out.Kind) {
		out.Request, out.Response, out.Load = 0, 0, 0
	} else {
		out.Buffer = 0
		if out.Load == 0 {
			out.Direction = ""
		}
	}
	if out.Change == "" {
		out.ChangeEvery = 0
	}
	if !w.value.keys.has("buffer") {
		switch out.Kind {
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
	out := f.value.Fabric
	out.Name, out.MovingQueues = f.name, f.value.queueCPUs == movingQueues
	out.NoCoalescing = out.Kind == Wire && traffic.Kind.Exchange() && traffic.Load == 0 // as an adaptive NIC driver does (Linux: lib/dim)
	if out.Kind == Existing && !f.value.keys.has("offload") {
		out.Offload = OffloadKept
	}
	return out
}

func endpointOf(e named[endpointSpec]) Endpoint {
	out := e.value.Endpoint
	out.Name = e.name
	if out.Kind != VM {
		out.CPUs, out.Memory = 0, 0
	}
	return out
}

// orDefault returns the entries of an index, or one entry with default values.
func orDefault[T any](entries []named[T], name string, of mapping[T]) []named[T] {
	if len(entries) > 0 {
		return entries
	}
	var preset T
	for _, f := range of.fields {
		f.init(&preset)
	}
	return []named[T]{{name: name, value: preset}}
}

// timingOver returns t with the keys of the layers.
func timingOver(t Timing, layers ...timingSpec) Timing {
	for _, l := range layers {
		if l.keys.has("warmup") {
			t.Warmup = l.Warmup
		}
		if l.keys.has("duration") {
			t.Duration = l.Duration
		}
		if l.keys.has("cooldown") {
			t.Cooldown = l.Cooldown
		}
	}
	return t
}
