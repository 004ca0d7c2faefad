package main

import (
	"fmt"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// overlay compares vrouter with the bridge and the kernel's VXLAN, in every offload
// profile.
func (b *session) overlay() error {
	r, err := b.suite("overlay")
	if err != nil {
		return err
	}
	for _, profile := range []string{"none", "tcp", "tunnel"} {
		direct := "vrouter-direct-" + profile
		for _, over := range []struct {
			baseline, name                             string
			throughput, sender, receiver, transactions float64
		}{{"bridge-", "of the bridge", 0.98, 1.03, 0.97, 1}, {"vxlan-", "of the kernel's VXLAN", 1.25, 0.8, 0.78, 1.02}} {
			stream, rr := over.baseline+profile+"/stream", over.baseline+profile+"/rr"
			b.bound(r, bound{direct + "/stream", stream, sample.Throughput, "throughput relative to that " + over.name, over.throughput, atLeast})
			b.bound(r, bound{direct + "/stream", stream, sample.SenderCPUPerByte, "sender CPU per byte relative to that " + over.name, over.sender, atMost})
			b.bound(r, bound{direct + "/stream", stream, sample.ReceiverCPUPerByte, "receiver CPU per byte relative to that " + over.name, over.receiver, atMost})
			b.bound(r, bound{direct + "/rr", rr, sample.Transactions, "TCP_RR transactions relative to those " + over.name, over.transactions, atLeast})
		}
		for _, encap := range []string{"mpls-gre", "mpls-udp", "vxlan"} {
			system := "vrouter-" + encap + "-" + profile
			b.bound(r, bound{system + "/stream", "vxlan-" + profile + "/stream", sample.Throughput, "throughput of the kernel's VXLAN", 0.95, atLeast})
			b.bound(r, bound{system + "/rr", "bridge-" + profile + "/rr", sample.Transactions, "TCP_RR transactions of the bridge's", 0.98, atLeast})
			b.bound(r, bound{system + "/stream", "bridge-" + profile + "/stream", sample.SenderCPUPerByte, "sender CPU per byte of the bridge's", 1.05, atMost})
			if encap != "mpls-gre" {
				b.bound(r, bound{system + "/stream", "bridge-" + profile + "/stream", sample.ReceiverCPUPerByte, "receiver CPU per byte of the bridge's", 1.35, atMost})
			}
		}
		for _, m := range []struct {
			metric sample.Metric
			what   string
		}{{sample.Throughput, "throughput"}, {sample.SenderCPUPerByte, "sender CPU per byte"}, {sample.ReceiverCPUPerByte, "receiver CPU per byte"}} {
			b.untargeted(r, "vxlan-"+profile+"/stream", "bridge-"+profile+"/stream", m.metric, m.what+" of the bridge's")
		}
	}
	b.bound(r, bound{"vrouter-mpls-udp-colocated/stream", "bridge-colocated/stream", sample.Throughput, "throughput of the bridge's", 1, atLeast})
	return nil
}

type side int

const (
	atLeast side = 1
	atMost  side = -1
)

// bound is the upper or lower limit of a paired ratio.
type bound struct {
	subject, baseline string
	metric            sample.Metric
	what              string
	limit             float64
	side              side
}

// bound prints a paired ratio with its interval.
func (b *session) bound(r *model.Report, w bound) {
	c, ok := ratioOf(r, w.subject, w.baseline, w.metric)
	if !ok {
		b.row(w.subject+": "+w.what, w.side.target(w.limit), "not measured", false)
		return
	}
	b.judge(w.subject+": "+w.what, c, w.limit, w.side)
}

// target formats a limit.
func (s side) target(limit float64) string {
	return fmt.Sprintf("%s %.2f", map[side]string{atLeast: "≥", atMost: "≤"}[s], limit)
}

// judge prints an estimate with its interval. The target is met if the estimate is within the
// limit. If only the interval reaches the limit, the row says so.
func (b *session) judge(figure string, c quantity.Interval, limit float64, s side) {
	measured := formatRatio(c)
	within := func(v float64) bool { return float64(s)*(v-limit) >= 0 }
	if !within(c.Median) && (within(c.Low) || within(c.High)) {
		measured += ", the interval reaches it"
	}
	b.row(figure, s.target(limit), measured, within(c.Median))
}

// untargeted prints a ratio that has no target.
func (b *session) untargeted(r *model.Report, subject, baseline string, m sample.Metric, what string) {
	measured := "not measured"
	if c, ok := ratioOf(r, subject, baseline, m); ok {
		measured = formatRatio(c)
	}
	fmt.Printf("| %s: %s | | %s | |\n", subject, what, measured)
}

func formatRatio(c quantity.Interval) string {
	return fmt.Sprintf("%.3f [%.3f, %.3f], n = %d", c.Median, c.Low, c.High, c.N)
}

// ratioOf returns the ratio of one subject to one baseline. A subject may have several
// baselines.
func ratioOf(r *model.Report, subject, baseline string, m sample.Metric) (quantity.Interval, bool) {
	for _, c := range r.Comparisons {
		if c.Subject == subject && c.Baseline == baseline && c.Metric == m {
			return c.Ratio, true
		}
	}
	return quantity.Interval{}, false
}
