package suite

import (
	"fmt"

	"windtunnel/internal/phrase"
	"windtunnel/lab/units"
)

// String describes the traffic in a few words: "TCP stream of 128 KiB".
func (w Workload) String() string {
	var s string
	switch w.Kind {
	case TCPStream:
		s = "TCP stream of " + units.FormatBytes(w.Buffer)
	case UDPStream:
		s = "UDP stream of " + units.FormatBytes(w.Buffer)
		if w.IMIX {
			s = "UDP stream of IMIX"
		}
	case TCPRR:
		s = "TCP request/response " + exchange(w)
	case TCPCRR:
		s = "TCP connect/request/response " + exchange(w)
	case UDPRR:
		s = "UDP request/response " + exchange(w)
	}
	for _, extra := range []struct {
		on   bool
		text string
	}{
		{w.Load > 0, "beside " + phrase.Count(w.Load, "stream")},
		{w.Direction == Reverse, "reverse"},
		{w.Direction == Both, "both ways"},
		{w.Streams > 1, fmt.Sprintf("%d streams", w.Streams)},
		{w.Rate > 0, "at " + units.FormatRate(float64(w.Rate))},
		{w.Loss > 0, "the highest rate with at most " + units.FormatPercent(w.Loss) + " lost"},
		{w.Pace > 0, fmt.Sprintf("%g requests/s", w.Pace)},
		{w.OfCapacity > 0, "at " + units.FormatPercent(w.OfCapacity) + " of the capacity"},
		{w.ReceiverWork > 0, fmt.Sprintf("receiver works %g ns/byte", w.ReceiverWork)},
		{w.NoDelay && !w.PacketPerSend, "no delay"},
		{w.PacketPerSend, "a packet for each send"},
		{w.Sendfile, "sendfile"},
		{w.DSCP > 0, "DSCP " + w.DSCP.String()},
		{w.IPVersion == 6, "IPv6"},
		{w.Change != "", fmt.Sprintf("%s change every %s", w.Change, units.FormatDuration(float64(w.ChangeEvery)))},
	} {
		if extra.on {
			s += ", " + extra.text
		}
	}
	return s
}

func exchange(w Workload) string {
	if w.Request == w.Response {
		return units.FormatBytes(w.Request)
	}
	return units.FormatBytes(w.Request) + " / " + units.FormatBytes(w.Response)
}

// String describes the fabric in a few words: "wire, MTU 1500, offload tcp".
func (f Fabric) String() string {
	s := fmt.Sprintf("%s, MTU %d", f.Kind, f.MTU)
	if f.Offload != OffloadKept {
		s += ", offload " + string(f.Offload)
	}
	if f.RxChecksum != RxChecksumAll {
		s += ", rx_checksum " + string(f.RxChecksum)
	}
	if f.Rate > 0 {
		s += ", " + units.FormatRate(float64(f.Rate))
	}
	if f.Delay > 0 {
		s += ", " + units.FormatDuration(float64(f.Delay)) + " delay"
	}
	if f.Loss > 0 {
		s += ", " + units.FormatPercent(f.Loss) + " lost"
	}
	if f.CPUs > 0 {
		s += ", nodes of " + phrase.Count(f.CPUs, "CPU")
	}
	if f.CPUShare > 0 {
		s += ", " + units.FormatPercent(f.CPUShare) + " of the CPU time"
	}
	if f.Unpinned {
		s += ", nodes not pinned"
	}
	if f.Queues > 1 {
		s += fmt.Sprintf(", %d queues", f.Queues)
	}
	if f.Steering == ByMAC {
		s += " by destination MAC"
	}
	if f.MovingQueues {
		s += ", queues on moving CPUs"
	}
	if f.Links > 1 {
		s += fmt.Sprintf(", %d links", f.Links)
		if f.Team == Bond {
			s += " bonded"
		}
	}
	if f.Cut > 0 {
		s += ", one cut after " + units.FormatDuration(float64(f.Cut))
	}
	if f.NoCoalescing {
		s += ", no coalescing"
	}
	return s
}

// String describes the endpoint in a few words: "vm with 2 CPUs and 512 MiB".
func (e Endpoint) String() string {
	s := "container"
	if e.Kind == VM {
		s = fmt.Sprintf("vm with %s and %s", phrase.Count(e.CPUs, "CPU"), units.FormatBytes(e.Memory))
	}
	if e.Spread {
		s += ", receive work spread"
	}
	if e.NoSegmentation {
		s += ", no send offload"
	}
	if e.HostVNIC {
		s += ", the last pair on the nodes' own virtual NICs"
	}
	return s
}
