package experiment

import (
	"context"
	"slices"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/lab/parallel"
	"windtunnel/lab/sample"
	"windtunnel/lab/testbed"
)

// changing is the sequence of changes of the network during one run of a tool.
type changing struct {
	done chan struct{} // closed when all changes have ended
	took [][]time.Duration
	err  error
}

// startChanges changes the network on each node with endpoints during the measured part of traffic
// that started at the given time. It returns at once.
func (b *Bench) startChanges(ctx context.Context, started time.Time) *changing {
	c := &changing{done: make(chan struct{})}
	if b.scenario.Workload.Change == "" {
		close(c.done)
		return c
	}
	nodes := []testbed.Node{b.Pairs[0].Sender.Node}
	if receiver := b.Pairs[0].Receiver.Node; receiver.Name() != nodes[0].Name() {
		nodes = append(nodes, receiver)
	}
	c.took = make([][]time.Duration, len(nodes))
	go func() {
		defer close(c.done)
		c.err = parallel.Each(nodes, func(i int, n testbed.Node) (err error) {
			c.took[i], err = b.changeNode(ctx, n, started)
			return err
		})
	}()
	return c
}

// changeNode changes the network of one node until the measured part ends, and undoes the last
// change then. It returns the time that each change took.
func (b *Bench) changeNode(ctx context.Context, n testbed.Node, started time.Time) (took []time.Duration, err error) {
	tm := b.scenario.Timing
	end := started.Add(tm.Warmup + tm.Duration)
	undo := false
	for at := started.Add(tm.Warmup + b.scenario.Workload.ChangeEvery); at.Before(end); undo = !undo {
		if err := pause.For(ctx, time.Until(at)); err != nil {
			return nil, err
		}
		t, err := n.Agent().Change(ctx, undo)
		if err != nil {
			return nil, failed(sample.ChangeFailed, "change the %s of the network: %w", b.scenario.Workload.Change, err)
		}
		took = append(took, t)
		if at = at.Add(b.scenario.Workload.ChangeEvery); at.Before(time.Now()) {
			at = time.Now()
		}
	}
	if undo {
		_, err = n.Agent().Change(ctx, undo)
	}
	return took, err
}

// finish waits for the end of all changes and returns their metrics.
func (c *changing) finish() (sample.Metrics, error) {
	<-c.done
	all := slices.Sorted(slices.Values(slices.Concat(c.took...)))
	if c.err != nil || len(all) == 0 {
		return nil, c.err
	}
	return sample.Metrics{
		sample.Changes:       float64(len(all)),
		sample.ChangeTime:    float64(all[len(all)/2]),
		sample.ChangeTimeMax: float64(all[len(all)-1]),
	}, nil
}
