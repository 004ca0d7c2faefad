package results

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results/postgrestest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// engineEnv, set to a store, makes the test program measure the run of runEnv until its
// standard input ends.
const (
	engineEnv = "WINDTUNNEL_RESULTS_TEST_ENGINE"
	runEnv    = "WINDTUNNEL_RESULTS_TEST_RUN"
)

// measure creates a run, prints a line for each sample that is stored, and completes the
// run at the end of the standard input.
func measure(place, id string) {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	s, err := Open(place, Options{})
	check(err)
	run, plan, samples := reporttest.Sized(1)
	run.ID, run.Status, run.Finished = id, sample.Running, time.Time{}
	check(s.CreateRun(run, plan))
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(end)
	}()
	for attempt := 0; ; attempt++ {
		smp := samples[0]
		smp.Attempt = attempt
		_, err := s.AppendSample(id, smp)
		check(err)
		fmt.Println(attempt)
		select {
		case <-end:
			run.Status = sample.Complete
			check(s.UpdateRun(run))
			check(s.Close())
			os.Exit(0)
		default:
		}
	}
}

// engineProcess is a process that runs measure.
type engineProcess struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	lines  *bufio.Reader
	errors strings.Builder
	stored int
}

func startEngine(t *testing.T, place, run string) *engineProcess {
	t.Helper()
	self := must.Get(os.Executable())(t)
	e := &engineProcess{cmd: exec.Command(self)}
	e.cmd.Env = append(os.Environ(), engineEnv+"="+place, runEnv+"="+run)
	e.cmd.Stderr = &e.errors
	stdin := must.Get(e.cmd.StdinPipe())(t)
	stdout := must.Get(e.cmd.StdoutPipe())(t)
	e.stdin, e.lines = stdin, bufio.NewReader(stdout)
	must.Succeed(t, e.cmd.Start())
	t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	return e
}

// read reads n acknowledgements; all of them if n < 0.
func (e *engineProcess) read(n int) error {
	for ; n != 0; n-- {
		if _, err := e.lines.ReadString('\n'); err != nil {
			if n < 0 && err == io.EOF {
				return nil
			}
			return fmt.Errorf("%w; the engine said: %s", err, e.errors.String())
		}
		e.stored++
	}
	return nil
}

func statuses(t *testing.T, s *Store) map[string]sample.Status {
	t.Helper()
	runs := must.Get(s.Runs())(t)
	of := map[string]sample.Status{}
	for _, r := range runs {
		of[r.ID] = r.Status
	}
	return of
}

// awaitStatus waits until a run has a status.
func awaitStatus(t *testing.T, s *Store, run string, want sample.Status) {
	t.Helper()
	must.EventuallyTrue(t, fmt.Sprintf("run %s has the status %q", run, want), func() bool { return statuses(t, s)[run] == want })
}

func TestEnginesMeasureIntoOneStoreAndAKilledOneStops(t *testing.T) {
	s := postgresBackend.fresh(t)
	var engines []*engineProcess
	for _, run := range []string{"a", "b", "killed"} {
		engines = append(engines, startEngine(t, s.Path(), run))
	}
	var readers sync.WaitGroup
	for i, e := range engines {
		readers.Go(func() {
			if err := e.read(10); err != nil {
				t.Errorf("engine %d: %v", i, err)
			}
		})
	}
	readers.Wait()
	if t.Failed() {
		return
	}
	for _, run := range []string{"a", "b", "killed"} {
		if got := statuses(t, s)[run]; got != sample.Running {
			t.Errorf("run %s is %q while its engine measures, want %q", run, got, sample.Running)
		}
	}
	if _, err := s.DeleteRun("killed"); !errors.Is(err, ErrRunning) {
		t.Errorf("delete a run of another engine: %v, want ErrRunning", err)
	}
	data, err := s.Load("killed")
	if err != nil || data.Run.Status != sample.Running {
		t.Fatalf("the run of another engine is loaded with status %q, %v, want %q", data.Run.Status, err, sample.Running)
	}
	err = s.UpdateRun(data.Run)
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", engines[2].cmd.Process.Pid)) {
		t.Errorf("resume a run of another engine: %v, want ErrRunning with its process %d", err, engines[2].cmd.Process.Pid)
	}
	if err := s.CreateRun(data.Run, data.Plan); !errors.Is(err, ErrTaken) {
		t.Errorf("create a run of this ID: %v, want ErrTaken", err)
	}

	must.Succeed(t, engines[2].cmd.Process.Kill())
	for i, e := range engines {
		_ = e.stdin.Close()
		if err := e.read(-1); err != nil {
			t.Errorf("engine %d: %v", i, err)
		}
		if err := e.cmd.Wait(); err != nil && i < 2 {
			t.Errorf("engine %d: %v: %s", i, err, e.errors.String())
		}
	}
	awaitStatus(t, s, "killed", sample.Stopped)
	for i, run := range []string{"a", "b", "killed"} {
		data := must.Get(s.Load(run))(t)
		if i < 2 && data.Run.Status != sample.Complete {
			t.Errorf("run %s is %q, want %q", run, data.Run.Status, sample.Complete)
		}
		// At most one more sample of the killed engine was stored without its line.
		if extra := len(data.Samples) - engines[i].stored; extra < 0 || extra > 1 || i < 2 && extra != 0 {
			t.Errorf("run %s has %d samples, and its engine stored %d", run, len(data.Samples), engines[i].stored)
		}
	}
	resumed := data.Run
	must.Succeed(t, s.UpdateRun(resumed))
	must.Equal(t, sample.Running, statuses(t, s)["killed"])
	must.Succeed(t, s.Close())
	must.Equal(t, sample.Stopped, statuses(t, open(t, s.Path(), Options{ReadOnly: true}))["killed"])
}

// measuringStore returns a store in which this process measures a run, and a sample of the run.
func measuringStore(t *testing.T, opts Options) (*Store, sample.Run, sample.Sample) {
	t.Helper()
	s := open(t, postgresBackend.place(t), opts)
	run, plan, samples := reporttest.Sized(1)
	run.Status = sample.Running
	must.Succeed(t, s.CreateRun(run, plan))
	return s, run, samples[0]
}

func TestAServerThatIsKilledAndRestartedDuringARunStoresEachSampleOnce(t *testing.T) {
	s, run, smp := measuringStore(t, Options{})
	server := postgrestest.Shared(t)
	waited := make(chan error, 100)
	s.OnOutage(t.Context(), func(err error, _ time.Duration) { waited <- err })
	var stored atomic.Int64
	var enough atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !enough.Load() {
			one := smp
			one.Attempt = int(stored.Load())
			if _, err := s.AppendSample(run.ID, one); err != nil {
				t.Errorf("sample %d: %v", one.Attempt, err)
				return
			}
			stored.Add(1)
		}
	})
	await := func(n int64) {
		must.EventuallyTrue(t, fmt.Sprintf("%d samples are stored", n), func() bool { return stored.Load() >= n })
	}
	for range 3 {
		await(stored.Load() + 10)
		server.Kill()
		err := <-waited
		if !strings.Contains(err.Error(), s.Path()) || !strings.Contains(err.Error(), "start the server") || !strings.Contains(err.Error(), "resume the run") {
			t.Errorf("the error of the outage is %q, want the place and the remedy", err)
		}
		must.Succeed(t, server.Up())
	}
	await(stored.Load() + 10)
	enough.Store(true)
	writer.Wait()
	data := must.Get(s.Load(""))(t)
	times := map[int]int{}
	for i := range data.Samples {
		times[data.Samples[i].Attempt]++
	}
	if total := int(stored.Load()); len(times) != total || len(data.Samples) != total {
		t.Errorf("%d samples are in the store, %d of them different, want %d", len(data.Samples), len(times), total)
	}
	other := open(t, s.Path(), Options{})
	must.Equal(t, sample.Running, statuses(t, other)[run.ID])
	if err := other.UpdateRun(run); !errors.Is(err, ErrRunning) {
		t.Errorf("another engine resumes the run: %v, want ErrRunning", err)
	}
}

func TestAnEngineThatWritesNothingTakesItsLockAgainAfterARestart(t *testing.T) {
	s, run, _ := measuringStore(t, Options{})
	server := postgrestest.Shared(t)
	server.Kill()
	must.Succeed(t, server.Up())
	awaitStatus(t, open(t, s.Path(), Options{ReadOnly: true}), run.ID, sample.Running)
}

func TestAnEngineWhoseConnectionWasLostTakesItsLockFromTheOldSession(t *testing.T) {
	s, run, smp := measuringStore(t, Options{})
	one := s.holds.of[run.ID]
	// After a network failure the server keeps the session of the lost connection for some
	// time, and with it the lock. This connection stands for that session.
	conn := must.Get(one.connect(t.Context()))(t)
	defer func() { _ = conn.Close(t.Context()) }()
	key := one.key + 1
	must.Get(conn.Exec(t.Context(), "SELECT pg_advisory_lock($1)", key))(t)
	again := &hold{run: run.ID, key: key, connect: one.connect}
	if got, err := again.acquire(t.Context(), 0); !errors.Is(err, ErrRunning) {
		t.Errorf("acquire %v: %v, want ErrRunning", got, err)
	}
	got := again.acquireAgain(t.Context(), conn.PgConn().PID())
	if got == nil {
		t.Fatalf("the lock of the lost session was not taken: %v", again.err())
	}
	again.free(got)
	if _, err := s.AppendSample(run.ID, smp); err != nil {
		t.Error(err)
	}
}

func TestAnEngineThatLostItsRunToAnotherStoresNothingMore(t *testing.T) {
	s, run, smp := measuringStore(t, Options{})
	other := open(t, s.Path(), Options{})
	// The other engine resumes the run while the first has no connection.
	s.holds.of[run.ID].stop()
	must.Succeed(t, other.UpdateRun(run))
	lost := s.holds.of[run.ID]
	if conn := lost.acquireAgain(t.Context(), 0); conn != nil {
		t.Fatal("both engines have the lock")
	}
	_, err := s.AppendSample(run.ID, smp)
	for what, err := range map[string]error{"AppendSample": err, "UpdateRun": s.UpdateRun(run)} {
		if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), "measured by another engine") {
			t.Errorf("%s: %v, want ErrRunning", what, err)
		}
	}
	if _, err := other.AppendSample(run.ID, smp); err != nil {
		t.Error(err)
	}
}

func TestAServerThatStaysUnreachableEndsTheWaitAndTheRunIsResumedLater(t *testing.T) {
	s, run, smp := measuringStore(t, Options{Outage: time.Second})
	server := postgrestest.Shared(t)
	calls := 0
	s.OnOutage(t.Context(), func(error, time.Duration) { calls++ })
	server.Kill()
	for range 2 { // the second does not wait
		_, err := s.AppendSample(run.ID, smp)
		must.Fail(t, err, "does not answer", "resume the run", s.Path())
	}
	_, err := s.Load("")
	must.Fail(t, err, "does not answer")
	_, err = Open(s.Path(), Options{})
	must.Fail(t, err, "start the server")
	must.Equal(t, 1, calls)
	must.Succeed(t, s.Close())
	must.Succeed(t, server.Up())
	again := open(t, s.Path(), Options{})
	must.Succeed(t, again.UpdateRun(run))
	must.Get(again.AppendSample(run.ID, smp))(t)
	if data, err := again.Load(""); err != nil || len(data.Samples) != 1 {
		t.Errorf("%v, want 1 sample", err)
	}
}

func TestAnInterruptEndsTheWaitForAServer(t *testing.T) {
	s, run, smp := measuringStore(t, Options{})
	server := postgrestest.Shared(t)
	ctx, stop := context.WithCancel(t.Context())
	s.OnOutage(ctx, func(error, time.Duration) { stop() })
	server.Kill()
	if _, err := s.AppendSample(run.ID, smp); err == nil {
		t.Error("a sample was stored without a server")
	}
	must.Succeed(t, server.Up())
}

func TestAServerThatAcceptsAndDoesNotAnswerCountsAsUnreachable(t *testing.T) {
	defer func(was time.Duration) { answerWithin = was }(answerWithin)
	answerWithin = time.Second
	s, run, smp := measuringStore(t, Options{Wait: time.Second})
	resume := func() {}
	defer func() { resume() }()
	waited := make(chan error, 1)
	s.OnOutage(t.Context(), func(err error, _ time.Duration) { resume(); waited <- err })
	resume = postgrestest.Shared(t).Pause()
	if _, err := s.AppendSample(run.ID, smp); err != nil {
		t.Errorf("after the server continued: %v", err)
	}
	if len(waited) == 0 {
		t.Error("the store did not wait for the stopped server")
	}
	if data, err := s.Load(""); err != nil || len(data.Samples) != 1 {
		t.Errorf("%v, want 1 sample", err)
	}
}

// within fails unless f returns in time.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s does not return within %v", what, limit)
	}
}

func TestAServerThatDoesNotAnswerEndsReadsWithAClearError(t *testing.T) {
	defer func(was time.Duration) { answerWithin = was }(answerWithin)
	s, run, smp := measuringStore(t, Options{})
	must.Get(s.AppendSample(run.ID, smp))(t)
	answerWithin = time.Second
	resume := postgrestest.Shared(t).Pause()
	defer resume()
	for what, read := range map[string]func() error{
		"Runs":     func() error { _, err := s.Runs(); return err },
		"Load":     func() error { _, err := s.Load(""); return err },
		"Progress": func() error { _, err := s.Progress(run.ID, 0); return err },
		"CreateRun": func() error {
			other := run
			other.ID, other.Status = "other", sample.Complete
			return s.CreateRun(other, suite.Plan{})
		},
	} {
		var err error
		within(t, 20*time.Second, what, func() { err = read() })
		if err == nil || !strings.Contains(err.Error(), "does not answer; start the server or repair the network, then try again: ") || strings.Contains(err.Error(), "resume") || strings.Contains(err.Error(), "context") {
			t.Errorf("%s: %v, want the remedy of a reader", what, err)
		}
	}
	resume()
	if data, err := s.Load(""); err != nil || len(data.Samples) != 1 {
		t.Errorf("after the server continued: %v, want 1 sample", err)
	}
}

func TestAnInterruptEndsTheWaitForAServerThatDoesNotAnswer(t *testing.T) {
	s, run, smp := measuringStore(t, Options{})
	ctx, stop := context.WithCancel(t.Context())
	s.OnOutage(ctx, func(error, time.Duration) {})
	resume := postgrestest.Shared(t).Pause()
	defer resume()
	time.AfterFunc(500*time.Millisecond, func() { stop() })
	var err error
	within(t, finishWithin+10*time.Second, "AppendSample", func() { _, err = s.AppendSample(run.ID, smp) }) // its first attempt may take a minute
	must.Fail(t, err, "resume the run later")
	within(t, finishWithin+10*time.Second, "UpdateRun", func() { err = s.UpdateRun(run) })
	if err == nil {
		t.Error("a run was updated without a server")
	}
	resume()
	if _, err := s.AppendSample(run.ID, smp); err != nil {
		t.Errorf("after the interrupt and the outage: %v", err)
	}
}

func TestAnInterruptEndsALaterAttemptAtOnce(t *testing.T) {
	defer func(was time.Duration) { answerWithin = was }(answerWithin)
	s, run, smp := measuringStore(t, Options{})
	answerWithin = time.Second
	ctx, stop := context.WithCancel(t.Context())
	var stopped time.Time
	s.OnOutage(ctx, func(error, time.Duration) {
		answerWithin = time.Minute // of the second attempt
		time.AfterFunc(2*retryEvery, func() { stopped = time.Now(); stop() })
	})
	resume := postgrestest.Shared(t).Pause()
	defer resume()
	var err error
	within(t, time.Minute, "AppendSample", func() { _, err = s.AppendSample(run.ID, smp) })
	if err == nil {
		t.Error("a sample was stored without a server")
	}
	if took := time.Since(stopped); took > finishWithin/2 {
		t.Errorf("the write waited %v after the interrupt", took)
	}
}
