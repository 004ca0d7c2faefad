package meter

import (
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// The figures of a UDP stream with loss, depending on the counters of the
// receiving endpoint's sockets.
func TestLossIsDividedBetweenSocketAndPath(t *testing.T) {
	counted := func(delivered, dropped uint64) Counters {
		return Counters{"Udp.InDatagrams": delivered, "Udp.RcvbufErrors": dropped}
	}
	for name, c := range map[string]struct {
		loss             float64
		receiver         Counters
		socket, way      float64
		direction        suite.Direction
		unknown          bool
		sender, stranger Counters
	}{
		// Of 1,000 datagrams 100 are lost on the way, 300 in the socket.
		"both":                           {loss: 0.4, receiver: counted(600, 300), socket: 0.3, way: 0.1},
		"none":                           {loss: 0, receiver: counted(1000, 0)},
		"in the socket alone":            {loss: 0.3, receiver: counted(700, 300), socket: 0.3},
		"on the way alone":               {loss: 0.3, receiver: counted(700, 0), way: 0.3},
		"a shorter window":               {loss: 0.4, receiver: counted(60, 30), socket: 0.3, way: 0.1},
		"more in the socket than in all": {loss: 0.1, receiver: counted(800, 200), socket: 0.1},
		"all, in the socket":             {loss: 1, receiver: counted(0, 50), socket: 1},
		"counters of other sockets":      {loss: 0.4, receiver: counted(0, 0), unknown: true},
		"IPv6":                           {loss: 0.4, receiver: Counters{"Udp6InDatagrams": 600, "Udp6RcvbufErrors": 200, "Udp6MemErrors": 100}, socket: 0.3, way: 0.1},
		"the sender's own counters":      {loss: 0.4, receiver: counted(600, 300), sender: counted(9, 9999), socket: 0.3, way: 0.1},
		"another container's":            {loss: 0.4, receiver: counted(600, 300), stranger: counted(9, 9999), socket: 0.3, way: 0.1},
		"reverse":                        {loss: 0.4, direction: suite.Reverse, sender: counted(600, 300), receiver: counted(9, 9999), socket: 0.3, way: 0.1},
		"both directions":                {loss: 0.4, direction: suite.Both, sender: counted(300, 300), receiver: counted(300, 0), socket: 0.3, way: 0.1},
	} {
		a := &Delta{Node: "a", Seconds: 1, Namespaces: []NamespaceDelta{{Name: "c1", Counters: c.sender}}}
		b := &Delta{Node: "b", Seconds: 1, Namespaces: []NamespaceDelta{{Name: "c1", Counters: c.receiver}, {Name: "c2", Counters: c.stranger}}}
		facts := Facts{Direction: c.direction, Loss: &c.loss, SenderEndpoints: []string{"c1"}, ReceiverEndpoints: []string{"c1"}}
		ms := Metrics(a, b, facts)
		socket, known := ms[sample.SocketLoss]
		if known == c.unknown || !near(socket, c.socket, 1e-9) || !near(ms[sample.PathLoss], c.way, 1e-9) {
			t.Errorf("%s: in the socket %v (known %v), on the way %v; want %v and %v", name, socket, known, ms[sample.PathLoss], c.socket, c.way)
		}
	}
}

// On one node both endpoints are containers of it. TCP has no such loss.
func TestLossOfAColocatedStream(t *testing.T) {
	loss := 0.5
	a := &Delta{Node: "a", Seconds: 1, Namespaces: []NamespaceDelta{
		{Name: "c1", Counters: Counters{"Udp.InDatagrams": 1, "Udp.RcvbufErrors": 99}},
		{Name: "c2", Counters: Counters{"Udp.InDatagrams": 500, "Udp.RcvbufErrors": 400}},
	}}
	facts := Facts{Colocated: true, Loss: &loss, SenderEndpoints: []string{"c1"}, ReceiverEndpoints: []string{"c2"}}
	if ms := Metrics(a, nil, facts); !near(ms[sample.SocketLoss], 0.4, 1e-9) || !near(ms[sample.PathLoss], 0.1, 1e-9) {
		t.Errorf("the metrics are %v, want a loss of 0.4 in the socket and 0.1 on the path", ms)
	}
	facts.Loss = nil
	if ms := Metrics(a, nil, facts); ms[sample.SocketLoss] != 0 || ms[sample.PathLoss] != 0 {
		t.Errorf("the metrics are %v, want no loss", ms)
	}
}
