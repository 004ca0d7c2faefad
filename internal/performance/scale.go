package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/prometheus/procfs"

	"windtunnel/lab/experiment/scaletest"
	"windtunnel/lab/results"
	"windtunnel/lab/suite"
)

// scaleWindow is the time for which a simulated run is measured.
const scaleWindow = 60 * time.Second

// scale measures the engine with many simulated hosts. CPU time and memory are those of
// this process, and so include the simulated hosts.
func (b *session) scale() error {
	for _, c := range []struct {
		hosts, parallel int
		target          bool // the target of docs/scale.md holds for this size
	}{{100, 1, true}, {100, 50, true}, {1000, 1, false}, {1000, 500, false}} {
		if err := b.fleet(c.hosts, c.parallel, c.target); err != nil {
			return err
		}
	}
	return nil
}

// errWindow is the cause with which a simulated run is cancelled at the end of its window.
var errWindow = errors.New("the window is over")

// fleet starts a run of all pairs of simulated hosts with the suites' default timing. It
// measures the first part of the run, and then cancels it.
func (b *session) fleet(hosts, parallel int, target bool) error {
	debug.FreeOSMemory() // of earlier runs
	ctx, cancel := context.WithCancelCause(context.Background())
	path := filepath.Join(b.scratch, fmt.Sprintf("scale-%d-%d.db", hosts, parallel))
	var from, to usage
	go func() {
		const settling = 10 * time.Second // the hosts connect, and the first trials begin
		time.Sleep(settling)
		from = readUsage()
		time.Sleep(scaleWindow)
		to = readUsage()
		cancel(errWindow)
	}()
	out, err := scaletest.Measure(ctx, scaletest.Options{
		Hosts: hosts, Pairs: "all", Parallel: parallel, Trials: 6, Store: path,
		Timing: suite.Timing{Warmup: 500 * time.Millisecond, Duration: 2 * time.Second, Cooldown: 200 * time.Millisecond},
	})
	if !errors.Is(err, errWindow) {
		return fmt.Errorf("the simulated run of %d hosts: %w", hosts, errors.Join(err, errors.New("it ended before its window")))
	}
	if to.err != nil || from.err != nil {
		return errors.Join(from.err, to.err)
	}
	size, err := storeSize(path)
	if err != nil {
		return err
	}
	share := (to.cpu - from.cpu).Seconds() / scaleWindow.Seconds()
	what := fmt.Sprintf("%d simulated hosts, %d at a time: ", hosts, parallel)
	goal := func(text string) string {
		if target {
			return text
		}
		return "–"
	}
	b.row(what+"CPU of engine and hosts", goal("< 20 % of a core"), fmt.Sprintf("%.1f %%", 100*share), !target || share < 0.2)
	b.row(what+"resident memory of engine and hosts", goal("< 300 MB"), fmt.Sprintf("%.0f MB, at most %.0f MB", float64(to.resident)/1e6, float64(to.peak)/1e6), !target || to.resident < 300e6)
	b.row(what+"most trials of a host at the same time", "1", fmt.Sprint(out.Most), out.Most == 1)
	b.row(what+"finished trials", "–", fmt.Sprintf("%d", out.Samples), out.Samples > 0)
	if out.Samples > 0 {
		b.row(what+"bytes in the store for each sample", "–", fmt.Sprintf("%d", size/int64(out.Samples)), true)
	}
	return nil
}

// usage is the CPU time that this process has used, and its memory.
type usage struct {
	cpu            time.Duration
	resident, peak uint64 // bytes
	err            error
}

func readUsage() (u usage) {
	if u.cpu, u.err = processCPU(); u.err != nil {
		return u
	}
	p, err := procfs.Self()
	if err != nil {
		u.err = err
		return u
	}
	status, err := p.NewStatus()
	u.resident, u.peak, u.err = status.VmRSS, status.VmHWM, err
	return u
}

// storeSize returns the size of a store's file in bytes. It opens and closes the store before,
// so that SQLite writes its log into the file.
func storeSize(path string) (int64, error) {
	store, err := results.Open(path, results.Options{})
	if err != nil {
		return 0, err
	}
	if err := store.Close(); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
