package experiment

import (
	"math"
	"testing"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// A receiver whose socket holds one datagram cannot keep up with what arrives
// while other work has its CPU. That yields a valid sample: the datagrams that it
// had no room for are loss, and the fabric, which carried them, does not
// contradict.
func TestAReceiverThatCannotKeepUpLosesDatagramsInItsSocket(t *testing.T) {
	s := runOne(t, scenario("bridge", func(sc *suite.Scenario) {
		sc.Workload.Kind, sc.Workload.Buffer = suite.UDPStream, 1400
		sc.Workload.ReceiveBuffer = 2048
		sc.Timing.Duration = 2 * time.Second // if the host stops a CPU for 0.1 s, that is 5 % of the trial
	}))
	if !s.OK() {
		t.Fatal(s.Failure)
	}
	m := s.Metrics
	loss, socket, way := m[sample.LossRatio], m[sample.SocketLoss], m[sample.PathLoss]
	if loss < 0.2 || socket < 0.8*loss || math.Abs(socket+way-loss) > 1e-9 {
		t.Errorf("loss %.3f, in the socket %.3f, on the way %.3f", loss, socket, way)
	}
	if m[sample.DatagramsSent] <= 0 || m[sample.DatagramsReceived] <= 0 || m[sample.FabricGoodput] < 0.9*(1-way)/(1-loss)*m[sample.Throughput] {
		t.Errorf("sent %.0f/s, received %.0f/s, fabric %.0f bit/s, throughput %.0f bit/s",
			m[sample.DatagramsSent], m[sample.DatagramsReceived], m[sample.FabricGoodput], m[sample.Throughput])
	}
}
