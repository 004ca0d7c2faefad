package traffic

import (
	"testing"
	"time"

	"windtunnel/lab/suite"
)

func TestOnlyASenderOfSmallBuffersAtFullSpeedPublishesAfterSeveralCalls(t *testing.T) {
	for _, c := range []struct {
		role   string
		buffer int
		paced  bool
		calls  int
	}{
		{roleSend, 64, false, 16},
		{roleSend, 1000, false, 4},
		{roleSend, 128 << 10, false, 1},
		{roleSend, 64, true, 1},
		{roleReceive, 64, false, 1},
		{roleRequest, 64, false, 1},
	} {
		w := &worker{flow: flow{Role: c.role}, buf: make([]byte, c.buffer)}
		if c.paced {
			w.pace.interval = 1e6
		}
		if n := w.batched(); n != c.calls {
			t.Errorf("%s %d bytes, paced %t: published after %d calls, want %d", c.role, c.buffer, c.paced, n, c.calls)
		}
	}
}

// The counts are published while the worker sends, and are complete at its end.
func TestEverythingThatWasSentIsPublished(t *testing.T) {
	client, server := pairOf(t, Spec{Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Buffer: 64}})
	var during counts
	both(t, client, server, func() {
		for deadline := time.Now().Add(10 * time.Second); during.calls < 10*mostBatch && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			during = client.workers[0].tally.read()
		}
	})
	sent := client.workers[0].tally.read()
	if during.calls < 10*mostBatch || during.bytes > sent.bytes {
		t.Errorf("while it sent: %+v; at the end %+v", during, sent)
	}
	if sent != client.workers[0].tally.counts {
		t.Errorf("published %+v of %+v", sent, client.workers[0].tally.counts)
	}
}
