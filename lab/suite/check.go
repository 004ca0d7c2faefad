package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/units"
)

// checkWorkloads reports keys that the kind of a workload does not support.
func checkWorkloads(j *journal, s *spec) {
	for _, w := range s.workloads.V {
		kind := w.value.Kind
		if kind == "" {
			continue // unreadable; already reported
		}
		for _, f := range workloadKeys.fields {
			pos := w.value.keys[f.key]
			if pos.line == 0 || f.kinds == nil || slices.Contains(f.kinds, kind) {
				continue
			}
			j.fail(pos, fmt.Sprintf("%s has no meaning for %s, the kind of workload %q", f.key, kind, w.name),
				fmt.Sprintf("remove it, or choose a kind that has it: %s", joinKinds(f.kinds)))
		}
		checkDatagrams(j, w)
		checkLoad(j, w)
		if w.value.PacketPerSend && w.value.Sendfile {
			j.fail(w.value.keys["sendfile"], fmt.Sprintf("workload %q cannot send files and end a packet with each send", w.name), "remove sendfile or packet_per_send")
		}
		if v := w.value; v.IMIX && v.keys.has("buffer") {
			j.fail(v.keys["buffer"], fmt.Sprintf("workload %q has both imix and buffer, and imix sets the sizes", w.name), "remove buffer or imix")
		}
		size := int64(packet)
		if w.value.keys.has("buffer") {
			size = min(size, w.value.Buffer)
		}
		checkRate(j, w.value.keys["rate"], w.value.Rate, size)
		checkLoss(j, w)
		checkPace(j, w)
		if v := w.value; v.keys.has("change_every") && !v.keys.has("change") {
			j.fail(v.keys["change_every"], fmt.Sprintf("workload %q changes nothing, so change_every has no meaning", w.name), "set change: ports, or remove change_every")
		}
	}
}

// packet is about the payload of a packet at the default MTU, in bytes.
const packet = 1400

// checkRate reports a rate of less than one packet of size bytes per second. Most likely the unit
// is missing: a bare number is in bits per second.
func checkRate(j *journal, pos position, bits, size int64) {
	if bits > 0 && bits < 8*size {
		j.fail(pos, fmt.Sprintf("rate %s is less than one packet of %s per second", units.FormatRate(float64(bits)), units.FormatBytes(size)),
			`write the unit, such as "10M" or "1G"; 0 is as fast as possible`)
	}
}

// checkLoss reports what does not go with the search for the highest rate.
func checkLoss(j *journal, w named[workloadSpec]) {
	v := w.value
	if !v.keys.has("loss") {
		return
	}
	if v.keys.has("rate") {
		j.fail(v.keys["rate"], fmt.Sprintf("workload %q has a rate and a loss, which finds the rate", w.name), "remove rate or loss")
	}
	if v.keys.has("buffer") && v.Buffer < leastNumbered {
		j.fail(v.keys["buffer"], fmt.Sprintf("datagrams of %s have no room for the numbers by which losses are counted", units.FormatBytes(v.Buffer)), fmt.Sprintf("write at least %d, or remove loss", leastNumbered))
	}
}

// checkPace reports what does not go with a share of the capacity.
func checkPace(j *journal, w named[workloadSpec]) {
	for _, key := range []string{"pace", "load"} {
		if v := w.value; v.keys.has("of_capacity") && v.keys.has(key) {
			j.fail(v.keys[key], fmt.Sprintf("workload %q has of_capacity and %s: the capacity is that of the requests alone, and is the pace", w.name, key), "remove one of the two")
		}
	}
}

// checkLoad reports the direction of a load that a workload does not have.
func checkLoad(j *journal, w named[workloadSpec]) {
	if v := w.value; v.Kind == TCPRR && v.keys.has("direction") && v.Load == 0 {
		j.fail(v.keys["direction"], fmt.Sprintf("direction has no meaning for workload %q, which has no load: requests go forward and responses go back", w.name),
			`remove it, or set load to the number of streams beside the request/response, such as "load: 8"`)
	}
}

func checkDatagrams(j *journal, w named[workloadSpec]) {
	limit := func(key string, size int64) {
		if pos := w.value.keys[key]; pos.line > 0 && size > mostDatagram {
			j.fail(pos, fmt.Sprintf("a UDP datagram cannot carry a %s of %d bytes", key, size),
				fmt.Sprintf("write at most %d; what exceeds the MTU less 28 bytes (48 with IPv6) is fragmented", mostDatagram))
		}
	}
	switch w.value.Kind {
	case UDPStream:
		limit("buffer", w.value.Buffer)
	case UDPRR:
		limit("request", w.value.Request)
		limit("response", w.value.Response)
	}
}

func joinKinds(ks []Kind) string {
	out := make([]string, len(ks))
	for i, k := range ks {
		out[i] = string(k)
	}
	return strings.Join(out, ", ")
}

// checkEndpoints reports keys of containers that only a VM supports.
func checkEndpoints(j *journal, s *spec) {
	for _, e := range s.endpoints.V {
		for _, key := range []string{"cpus", "memory"} {
			if pos := e.value.keys[key]; pos.line > 0 && e.value.Kind != VM {
				j.fail(pos, fmt.Sprintf("%s has no meaning for a container, which endpoint %q is", key, e.name), "remove it, or set kind: vm")
			}
		}
	}
}

// checkFabrics reports keys that a plain veth pair or an existing network does not support,
// bonds of fewer than two links, and the choice among fewer than two queues.
func checkFabrics(j *journal, s *spec) {
	for _, named := range s.fabrics.V {
		f, at := named.value, named.value.keys
		checkExisting(j, f)
		checkRate(j, at["rate"], f.Rate, packet)
		if n := f.CPUs; n > 0 && f.Queues > n {
			j.fail(at["queues"], fmt.Sprintf("%d receive queues on nodes of %s", f.Queues, phrase.Count(n, "CPU")), "set queues to the number of CPUs or less, or remove cpus")
		}
		if f.Steering == ByMAC && f.Queues < 2 {
			j.fail(at["steering"], "a queue for each MAC address needs two queues or more", "set queues: 2 or more, or remove steering")
		}
		if at.has("cut") && f.Team != Bond {
			j.fail(at["cut"], "only a team goes on when a link is cut", "set team: bond and links: 2 or more, or remove cut")
		}
		if f.Kind != Veth {
			if f.Team == Bond && f.Links < 2 {
				j.fail(at["team"], "a bond needs two links or more", "set links: 2 or more, or remove team")
			}
			continue
		}
		if f.Links > 1 {
			j.fail(at["links"], fmt.Sprintf("%d links on a veth pair, which is one link", f.Links), "remove links, or set kind: wire")
		}
		if f.RxChecksum != RxChecksumAll {
			j.fail(at["rx_checksum"], "rx_checksum has no meaning for a veth pair, which passes packets without their checksums", "remove rx_checksum, or set kind: wire")
		}
		if f.Delay > 0 {
			j.fail(at["delay"], "delay has no meaning for a veth pair, which has no queue that holds frames", "remove delay, or set kind: wire")
		}
		if f.Unpinned {
			j.fail(at["pinned"], "pinned: false has no meaning for a veth pair, which needs the receiver's CPUs for its receive work", "remove pinned, or set kind: wire")
		}
		if f.Loss > 0 {
			j.fail(at["loss"], "loss has no meaning for a veth pair, which passes superframes whole", "remove loss, or set kind: wire")
		}
		if f.Steering == ByMAC || f.queueCPUs == movingQueues {
			j.fail(cmp.Or(at["steering"], at["queue_cpus"]), "steering and queue_cpus have no meaning for a veth pair, which has no NIC", "remove them, or set kind: wire")
		}
		if f.Team == Bond {
			j.fail(at["team"], "a bond needs two links or more, and a veth pair is one link", "remove team, or set kind: wire and links: 2")
		}
		if s.nodes.V > 2 {
			j.fail(at["kind"], fmt.Sprintf("a veth pair connects two nodes, but the suite has %d", s.nodes.V), "set kind: wire, or nodes: 2")
		}
	}
}

// checkExisting reports keys of an emulated fabric that the network between hosts does not
// have.
func checkExisting(j *journal, f fabricSpec) {
	if f.Kind != Existing {
		return
	}
	for _, k := range []struct {
		key   string
		asked bool
	}{
		{"rx_checksum", f.RxChecksum != RxChecksumAll}, {"rate", f.Rate > 0}, {"delay", f.Delay > 0}, {"loss", f.Loss > 0}, {"cpu_share", f.CPUShare > 0}, {"pinned", f.Unpinned}, {"queues", f.Queues > 1}, {"steering", f.Steering == ByMAC},
		{"queue_cpus", f.queueCPUs == movingQueues}, {"links", f.Links > 1}, {"team", f.Team == Bond},
	} {
		if k.asked {
			j.fail(f.keys[k.key], k.key+" has no meaning for an existing network", "remove "+k.key+", or set kind: wire")
		}
	}
}

// checkScenarios resolves the names that scenarios use. It marks the entries whose
// expansion would only report the same errors again.
func checkScenarios(j *journal, s *spec) {
	workloads := namesOf(s.workloads.V)
	fabrics, endpoints := namesOr(s.fabrics, defaultFabric), namesOr(s.endpoints, defaultEndpoint)
	resolvable := len(workloads) > 0 && len(fabrics) > 0 && len(endpoints) > 0
	for i := range s.scenarios.V {
		e := &s.scenarios.V[i].V
		pos := s.scenarios.V[i].Pos
		before := j.calls
		checkNames(j, "workload", "workloads", e.workload, workloads, pos)
		checkNames(j, "fabric", "fabrics", e.fabric, fabrics, pos)
		checkNames(j, "endpoint", "endpoints", e.endpoint, endpoints, pos)
		checkRepeats(j, "system", e.system.V)
		checkRepeats(j, "placement", e.placement.V)
		checkRepeats(j, "tool", e.tool.V)
		checkPlaceholders(j, e.id)
		checkPlaceholders(j, e.title)
		read := len(e.system.V) > 0 && !unreadable(e.placement.V)
		for _, list := range [][]at[string]{e.system.V, e.encap.V, e.workload.V, e.fabric.V, e.endpoint.V, e.tool.V} {
			read = read && !unreadable(list)
		}
		e.faulty = !resolvable || !read || j.calls > before
	}
}

// unreadable reports whether a value of the list could not be read.
func unreadable[V ~string](list []at[V]) bool {
	return slices.ContainsFunc(list, func(a at[V]) bool { return a.V == "" })
}

// checkNames reports names in a list that the suite does not define. If known is empty, the
// section could not be read, and every name may be right.
func checkNames(j *journal, key, section string, list at[[]at[string]], known []string, scenario position) {
	if !list.Set {
		if len(known) > 1 {
			j.fail(scenario, fmt.Sprintf("the scenario names no %s, and the suite has %d", key, len(known)), fmt.Sprintf("add %q with one or more of: %s", key+":", enumerate(known)))
		}
		return
	}
	for _, n := range list.V {
		if n.V != "" && len(known) > 0 && !slices.Contains(known, n.V) {
			j.fail(n.Pos, fmt.Sprintf("%q is not defined under %s", n.V, section), Suggest(n.V, section, known))
		}
	}
	checkRepeats(j, key, list.V)
}

func checkRepeats[V ~string](j *journal, key string, list []at[V]) {
	for i, n := range list {
		if n.V != "" && slices.ContainsFunc(list[:i], func(m at[V]) bool { return m.V == n.V }) {
			j.fail(n.Pos, fmt.Sprintf("%s %q is listed twice", key, n.V), "remove one of the two")
		}
	}
}

var parts = []string{"system", "placement", "workload", "fabric", "endpoint", "tool"}

// checkPlaceholders reports placeholders in an id or a title that are not the name of
// a scenario's part.
func checkPlaceholders(j *journal, text at[string]) {
	rest := text.V
	for {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		part, tail, closed := strings.Cut(after, "}")
		if !closed {
			j.fail(text.Pos, `"{" without "}"`, "parts: {"+strings.Join(parts, "}, {")+"}")
			return
		}
		if !slices.Contains(parts, part) {
			j.fail(text.Pos, fmt.Sprintf("{%s} is not a part of a scenario", clip(part)), Suggest(part, "parts", parts))
			return
		}
		rest = tail
	}
	if strings.Contains(rest, "}") {
		j.fail(text.Pos, `"}" without "{"`, "parts: {"+strings.Join(parts, "}, {")+"}")
	}
}

func namesOf[T any](entries []named[T]) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.name)
	}
	return out
}

// namesOr returns the names of a section's entries, or preset if the suite lacks the section.
func namesOr[T any](section at[[]named[T]], preset string) []string {
	if !section.Set {
		return []string{preset}
	}
	return namesOf(section.V)
}
