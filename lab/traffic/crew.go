package traffic

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/priority"
)

// crew has the workers of one end of a run.
type crew struct {
	stage    *stage
	workers  []*worker
	running  sync.WaitGroup
	starting sync.WaitGroup // workers that have not read the first phase
	free     chan struct{}  // closed when the workers may begin
	done     chan struct{}  // closed when every worker has ended
	drove    chan struct{}  // closed when every worker that sends on its own initiative has ended
	restore  func()         // undoes prepare
}

func newCrew() *crew { return &crew{stage: &stage{}, restore: func() {}} }

// add adds a worker and sets the fields that every worker needs. The caller sets the
// other fields.
func (c *crew) add(w *worker) *worker {
	w.stage = c.stage
	if w.until == 0 {
		w.until = stopping
	}
	if w.limit == 0 {
		w.limit = noLimit
	}
	c.workers = append(c.workers, w)
	return w
}

// prepared guards the settings that a run changes for the whole process.
var prepared struct {
	sync.Mutex
	runs           int
	procs, percent int
	restore        func() // restores the threads' priority
}

// prepare sets up Go's runtime, until close, for threads that block without its
// knowledge. The garbage collector is off, because it would wait until every thread
// is between two system calls. Each thread keeps a P while it blocks, so GOMAXPROCS
// includes three more for the conductor and the control connection. Setting
// GOMAXPROCS also stops the runtime from adjusting it, which would stop the world.
// All threads get the highest priority and the workers lower theirs, so that the
// conductor and the control connection run in time.
func (c *crew) prepare() {
	prepared.Lock()
	defer prepared.Unlock()
	if prepared.runs == 0 {
		runtime.GC()
		prepared.procs = runtime.GOMAXPROCS(0)
		prepared.percent = debug.SetGCPercent(-1)
		prepared.restore = priority.Raise()
	}
	prepared.runs++
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), prepared.procs) + len(c.workers) + 2)
	c.restore = sync.OnceFunc(func() {
		prepared.Lock()
		defer prepared.Unlock()
		if prepared.runs--; prepared.runs == 0 {
			prepared.restore()
			debug.SetGCPercent(prepared.percent)
			runtime.GOMAXPROCS(prepared.procs)
		}
	})
}

// start makes a thread for each worker. The threads wait for release: to make them is slow
// while others already carry traffic.
func (c *crew) start() error {
	c.done, c.drove, c.free = make(chan struct{}), make(chan struct{}), make(chan struct{})
	var driving sync.WaitGroup
	for _, w := range c.workers {
		if w.drives() {
			driving.Add(1)
		}
	}
	failed := make(chan error, len(c.workers))
	c.starting.Add(len(c.workers))
	for _, w := range c.workers {
		c.running.Go(func() {
			runtime.LockOSThread() // never unlocked: a pinned thread ends with its worker
			priority.Lower()
			w.batch = w.batched()
			err := w.pin()
			failed <- err
			<-c.free
			over := w.over()
			c.starting.Done()
			if err == nil && !over {
				w.loop(w)
			}
			w.finish()
			if w.drives() {
				driving.Done()
			}
		})
	}
	var err error
	for range c.workers {
		if e := <-failed; e != nil && err == nil {
			err = e
		}
	}
	go func() {
		c.running.Wait()
		close(c.done)
	}()
	go func() {
		driving.Wait()
		close(c.drove)
	}()
	return err
}

// release lets the workers begin.
func (c *crew) release() {
	if c.free != nil && !isClosed(c.free) {
		close(c.free)
	}
}

// drives reports whether a worker sends on its own initiative; other workers answer.
func (w *worker) drives() bool { return w.until <= stopping }

func (w *worker) pin() error {
	// A pacer's sleep ends at the requested time, not up to 50 µs later.
	if w.pace.interval > 0 {
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set a thread's timer slack: %w", err)
		}
	}
	if w.cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(w.cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin a thread to CPU %d: %w; choose a CPU that this process may use, or * for any", w.cpu, err)
	}
	return nil
}

// stuckTimeout is the longest time in which a thread must notice the end of the run.
const stuckTimeout = 3 * time.Second

// close ends the workers that still run: it sets the last phase, and shuts down the
// sockets on which threads block. Then it closes every socket.
func (c *crew) close() error {
	defer c.restore()
	c.stage.phase.Store(closing)
	c.release()
	for _, w := range c.workers {
		if w.fd >= 0 {
			unix.Shutdown(w.fd, unix.SHUT_RDWR) // an error means that it is closed already
		}
	}
	if c.done != nil {
		select {
		case <-c.done:
		case <-time.After(stuckTimeout):
			return fmt.Errorf("a traffic thread did not end within %v of the run's end", stuckTimeout)
		}
	}
	for _, w := range c.workers {
		w.release()
	}
	return nil
}

// release closes a worker's socket and file, and unmaps its buffer.
func (w *worker) release() {
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
	if w.file > 0 {
		unix.Close(w.file)
		w.file = 0
	}
	if w.unmap != nil {
		w.unmap() // an error would mean that it was never mapped
		w.unmap = nil
	}
}
