package e2e

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"windtunnel/internal/must"
)

// shared has the beds that several tests use one after the other. The keys are options; the
// values are of type chan *bed. A nil bed in the channel means that the bed must be made.
var shared sync.Map

// sharedBed returns a bed whose agents run and have only nodes in their state. Use it in a test
// that leaves the nodes and their agents as they are. The kernel then verifies the programs once
// for many tests.
func sharedBed(t *testing.T, o options) *bed {
	t.Helper()
	fresh := make(chan *bed, 2)
	fresh <- nil
	fresh <- nil
	kept, _ := shared.LoadOrStore(fmt.Sprint(o), fresh)
	beds := kept.(chan *bed)
	b, l := <-beds, &lasting{TB: t}
	if b != nil {
		l = b.t.(*lasting)
	}
	t.Cleanup(func() {
		defer func() { beds <- b }()
		switch {
		case b == nil:
			l.end()
		case t.Failed():
			for _, n := range b.agents() {
				t.Logf("node %s: %s", n.name, n.log())
			}
			l.end()
			b = nil
		default:
			cleared := false
			defer func() {
				if !cleared { // clear has ended the test
					l.end()
					b = nil
				}
			}()
			b.clear()
			b.t, cleared = l, true
		}
	})
	if b == nil {
		made := newBed(l, o)
		made.launch()
		b = made
	}
	b.t = t
	b.begin()
	return b
}

// lasting is the owner of a shared bed. Its cleanups do not run at the end of a test.
type lasting struct {
	testing.TB // of the test that makes the bed
	cleanups   []func()
	failed     bool
}

func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "vrouter-e2e-")
	must.Succeed(l, err)
	l.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (l *lasting) Helper() {}

func (l *lasting) Failed() bool { return l.failed }

func (l *lasting) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	l.failed = true
}

// end removes the bed.
func (l *lasting) end() {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
}

// endShared removes all shared beds and returns the exit status: 1 if one of them cannot be
// removed.
func endShared() (status int) {
	shared.Range(func(_, kept any) bool {
		beds := kept.(chan *bed)
		close(beds)
		for b := range beds {
			if b == nil {
				continue
			}
			l := b.t.(*lasting)
			if l.end(); l.failed {
				status = 1
			}
		}
		return true
	})
	return status
}
