package meter

import (
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestTheLimitOfATrialIsFound(t *testing.T) {
	node := func(busy ...float64) *Delta {
		d := &Delta{Seconds: 1, CPUs: map[int]Usage{}}
		for i, b := range busy {
			d.CPUs[i] = Usage{Busy: b}
		}
		return d
	}
	receiver := func(busy float64) *Delta { return &Delta{Seconds: 1, CPUs: map[int]Usage{8: {Busy: busy}}} }
	tcp, rr := suite.Workload{Kind: suite.TCPStream}, suite.Workload{Kind: suite.TCPRR}
	for name, c := range map[string]struct {
		sender, receiver *Delta
		facts            Facts
		workload         suite.Workload
		fabric           suite.Fabric
		metrics          sample.Metrics
		want             sample.Limit
	}{
		"sender":                {sender: node(0.99), receiver: receiver(0.8), workload: tcp, want: sample.SenderLimit},
		"one CPU of several":    {sender: node(0.1, 0.99, 0.1), receiver: receiver(0.8), workload: tcp, want: sample.SenderLimit},
		"receiver":              {sender: node(0.96), receiver: receiver(0.99), workload: tcp, want: sample.ReceiverLimit},
		"one node":              {sender: node(1), facts: Facts{Colocated: true}, workload: tcp, want: sample.SenderLimit},
		"the wire's work":       {sender: node(0.99), receiver: receiver(0.8), facts: Facts{WireCPU: map[int]float64{0: 0.6}}, workload: tcp, want: sample.WireLimit},
		"a CPU of the wire":     {sender: node(0.5), receiver: receiver(0.5), facts: Facts{Ports: &Delta{Seconds: 1, CPUs: map[int]Usage{0: {Busy: 0.5}, 8: {Busy: 0.5}, 9: {Busy: 0.98}}}}, workload: tcp, want: sample.WireLimit},
		"stolen time is none":   {sender: &Delta{Seconds: 1, CPUs: map[int]Usage{0: {Busy: 0.78, Steal: 0.2}}}, receiver: receiver(0.8), workload: tcp, want: sample.SenderLimit},
		"link":                  {sender: node(0.5), receiver: receiver(0.5), workload: tcp, fabric: suite.Fabric{Rate: 1e9, Links: 1}, metrics: sample.Metrics{sample.FabricBits: 0.99e9}, want: sample.LinkLimit},
		"link below its rate":   {sender: node(0.5), receiver: receiver(0.5), workload: tcp, fabric: suite.Fabric{Rate: 1e9, Links: 1}, metrics: sample.Metrics{sample.FabricBits: 0.9e9}, want: sample.WindowLimit},
		"two links":             {sender: node(0.5), receiver: receiver(0.5), workload: tcp, fabric: suite.Fabric{Rate: 1e9, Links: 2}, metrics: sample.Metrics{sample.FabricBits: 1e9}, want: sample.WindowLimit},
		"requested rate":        {sender: node(0.5), receiver: receiver(0.5), workload: suite.Workload{Kind: suite.TCPStream, Rate: 1e9}, metrics: sample.Metrics{sample.Throughput: 0.99e9}, want: sample.RateLimit},
		"half of both ways":     {sender: node(0.5), receiver: receiver(0.5), workload: suite.Workload{Kind: suite.TCPStream, Rate: 1e9, Direction: suite.Both}, metrics: sample.Metrics{sample.Throughput: 1e9}, want: sample.WindowLimit},
		"UDP that arrives late": {sender: node(0.5), receiver: receiver(0.99), workload: suite.Workload{Kind: suite.UDPStream, Rate: 1e9}, metrics: sample.Metrics{sample.SenderThroughput: 1e9, sample.Throughput: 0.5e9}, want: sample.RateLimit},
		"nodes not pinned":      {sender: node(0.99), receiver: receiver(0.99), facts: Facts{Unpinned: true}, workload: tcp, want: ""},
		"their link":            {sender: node(0.99), receiver: receiver(0.5), facts: Facts{Unpinned: true}, workload: tcp, fabric: suite.Fabric{Rate: 1e9, Links: 1}, metrics: sample.Metrics{sample.FabricBits: 0.99e9}, want: sample.LinkLimit},
		"round trips":           {sender: node(0.5), receiver: receiver(0.5), workload: rr, want: sample.TripLimit},
		"busy round trips":      {sender: node(1), receiver: receiver(0.5), workload: rr, want: sample.SenderLimit},
	} {
		if got := Limit(c.sender, c.receiver, c.facts, c.workload, c.fabric, c.metrics); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
