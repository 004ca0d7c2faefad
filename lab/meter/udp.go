package meter

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// datagrams divides the loss of a UDP stream into datagrams that found the
// receiving sockets full, and datagrams lost on the way. The tool reports the
// whole loss. The UDP counters of the receiving endpoints give the number
// dropped by the sockets for each one delivered. A superframe counts once in
// both counters, so the ratio holds with GRO too. The meters' window can be
// 65 ms longer than the tool's, and contain a full reading of the meters. If the receiving
// sockets drop datagrams during this reading, SocketLoss is too high, and PathLoss too low.
func (t trialDeltas) datagrams(ms sample.Metrics) {
	if t.Loss == nil {
		return
	}
	delivered, dropped := uint64(0), uint64(0)
	for i, n := range t.nodes() {
		for _, ns := range n.Namespaces {
			if t.getsDatagrams(i, ns.Name) {
				c := ns.Counters
				delivered += c[udpInDatagrams] + c[udp6InDatagrams]
				dropped += c[udpRcvbufErrors] + c[udpMemErrors] + c[udp6RcvbufErrors] + c[udp6MemErrors]
			}
		}
	}
	inSocket := *t.Loss
	switch {
	case delivered > 0:
		inSocket = min(inSocket, (1-*t.Loss)*float64(dropped)/float64(delivered))
	case dropped == 0:
		return // the counters of these sockets are unknown
	}
	ms.Set(sample.SocketLoss, inSocket)
	ms.Set(sample.PathLoss, *t.Loss-inSocket)
}

// getsDatagrams reports whether a namespace of node i has an endpoint that
// receives payload.
func (t trialDeltas) getsDatagrams(i int, namespace string) bool {
	toReceiver, toSender := t.Direction != suite.Reverse, t.Direction == suite.Reverse || t.Direction == suite.Both
	receiver := 1
	if t.receiver == nil {
		receiver = 0
	}
	return toReceiver && i == receiver && takesPart(namespace, t.ReceiverEndpoints) ||
		toSender && i == 0 && takesPart(namespace, t.SenderEndpoints)
}
