package validity

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// offTarget compares the sent rate with the requested one. Lost datagrams and late
// TCP bytes count as sent. If the network slows the sender by a tenth or more, trials
// at that rate cannot be compared.
func (v *verdict) offTarget() {
	if asked, ok := v.metric(sample.OfferedRequests); ok && asked > 0 {
		v.offPace(asked)
		return
	}
	if !v.Workload.Kind.Stream() || v.Workload.Rate <= 0 {
		return
	}
	offered, ok := v.metric(sample.OfferedRate)
	if !ok || offered <= 0 {
		offered = float64(v.Workload.Rate)
		if v.Workload.Direction == suite.Both {
			offered *= 2
		}
	}
	sent, ok := v.sent()
	if !ok {
		v.skip(sample.OffTarget, "the tool does not say how much it sent")
		return
	}
	percent, ok := finite(100 * sent / offered)
	if !ok {
		v.skip(sample.OffTarget, "the rate that was asked for is not known")
		return
	}
	if percent >= v.limits.Target {
		return
	}
	v.fail(sample.OffTarget, percent, v.limits.Target, "%", fmt.Sprintf(
		"the generator sent %s of the %s that the workload asks for, %.0f %%; the limit is %.3g %%: ask for a lower rate, or give the sender more CPUs or streams",
		units.FormatRate(sent), units.FormatRate(offered), percent, v.limits.Target))
}

// offPace compares the requests per second with the pace.
func (v *verdict) offPace(asked float64) {
	got, ok := v.metric(sample.Transactions)
	if !ok {
		v.skip(sample.OffTarget, "the tool does not say how many requests were answered")
		return
	}
	if percent := 100 * got / asked; percent < v.limits.Target {
		v.fail(sample.OffTarget, percent, v.limits.Target, "%", fmt.Sprintf(
			"%.0f of the %.0f requests per second that the workload asks for were answered, %.0f %%; the limit is %.3g %%: ask for a lower pace, or give the workload more streams",
			got, asked, percent, v.limits.Target))
	}
}

// sent returns the payload that the generator sent, in bits per second. For TCP it
// is the payload that arrived if the tool counts only one side.
func (v *verdict) sent() (float64, bool) {
	if sent, ok := v.metric(sample.SenderThroughput); ok {
		return sent, true
	}
	got, ok := v.metric(sample.Throughput)
	if !ok || v.Workload.Kind == suite.TCPStream {
		return got, ok
	}
	loss, ok := v.metric(sample.LossRatio)
	if !ok || loss < 0 || loss >= 1 {
		return 0, false
	}
	return finite(got / (1 - loss))
}

// stillMoving fails if there is traffic after the end of the tools.
func (v *verdict) stillMoving() {
	if v.Quiet == nil {
		v.skip(sample.StillMoving, "the fabric was not watched after the tools had ended")
		return
	}
	moving, ok := finite(*v.Quiet)
	rate, rated := v.metric(sample.FabricBits)
	if !ok || !rated || rate <= 0 {
		v.skip(sample.StillMoving, "the fabric's counters are not known")
		return
	}
	percent, ok := finite(100 * moving / rate)
	if !ok || moving <= v.limits.MovingFloor || percent <= v.limits.Moving {
		return
	}
	v.fail(sample.StillMoving, percent, v.limits.Moving, "%", fmt.Sprintf(
		"%s still moved on the fabric after the tools had ended, %.1f %% of the window's rate; the limit is %.3g %%: stop other senders on this network, and check whether the tool ends in time",
		units.FormatRate(moving), percent, v.limits.Moving))
}

// packetSize compares the payload of a sent packet with the buffer where each buffer
// must be a packet.
func (v *verdict) packetSize() {
	if !v.Workload.PacketPerSend {
		return
	}
	size, ok := v.metric(sample.SentPacket)
	if !ok {
		v.skip(sample.PacketSize, "the packets that the sender's stack sent are not counted")
		return
	}
	buffer := float64(v.Workload.Buffer)
	if size <= (1+v.limits.Merged/100)*buffer && size >= (1-v.limits.Divided/100)*buffer {
		return
	}
	v.fail(sample.PacketSize, size, buffer, "B", fmt.Sprintf(
		"the sender's stack passed on packets of %.0f bytes of payload instead of %.0f: packet_per_send did not hold, so this is not a figure without segmentation; choose a buffer that fits the MSS of the system, and the tool builtin or builtin-ntttcp",
		size, buffer))
}

// wrongDSCP compares the DSCP of the frames on the wire with the workload's.
func (v *verdict) wrongDSCP() {
	if v.Workload.DSCP == 0 {
		return
	}
	share, ok := v.metric(sample.DSCPShare)
	if !ok {
		v.skip(sample.WrongDSCP, "nothing reads the DSCP of the frames: the fabric is not a wire, or both endpoints are on one node")
		return
	}
	percent := 100 * share
	if percent >= v.limits.DSCP {
		return
	}
	v.fail(sample.WrongDSCP, percent, v.limits.DSCP, "%", fmt.Sprintf(
		"%.3g %% of the bytes on the wire have the DSCP %v in their outer IP header; the limit is %.3g %%: the underlay does not see the DSCP of the workload; use a system that copies it into the header of its tunnel",
		percent, v.Workload.DSCP, v.limits.DSCP))
}

// aboveLoss compares the loss in the window with the bound of the search for the highest rate.
func (v *verdict) aboveLoss() {
	if v.Workload.Loss <= 0 {
		return
	}
	loss, ok := v.metric(sample.LossRatio)
	if !ok {
		v.skip(sample.AboveLoss, "the tool does not say how much was lost")
		return
	}
	if loss <= v.Workload.Loss {
		return
	}
	v.fail(sample.AboveLoss, 100*loss, 100*v.Workload.Loss, "%", fmt.Sprintf(
		"%.3g %% of the datagrams were lost at the rate that the search found; the limit is %.3g %%: keep the machine idle, or give the workload a higher loss",
		100*loss, 100*v.Workload.Loss))
}
