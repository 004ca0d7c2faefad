package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results/postgrestest"
	"windtunnel/lab/sample"
)

// childEnv, set to a path, makes the test program append to that store until
// it is killed.
const childEnv = "WINDTUNNEL_RESULTS_TEST_APPEND"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		appendForever(path)
	}
	if path := os.Getenv(engineEnv); path != "" {
		measure(path, os.Getenv(runEnv))
	}
	if path := os.Getenv(readerEnv); path != "" {
		readOnRequest(path)
	}
	status := m.Run()
	postgrestest.StopShared()
	os.Exit(status)
}

// appendForever prints the id of every sample once it is stored.
func appendForever(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for block := 0; ; block++ {
		_, _, samples := reporttest.Sized(1)
		for i := range samples {
			samples[i].Block = block
			id, err := s.AppendSample("20261121-093015-quick", samples[i])
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(id)
		}
	}
}

func TestKilledWriterLosesNothingThatWasStored(t *testing.T) {
	onEach(t, testKilledWriterLosesNothingThatWasStored)
}

func testKilledWriterLosesNothingThatWasStored(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	must.Succeed(t, s.Close())
	_, _, reference := reporttest.Sized(1)
	total := 0
	for round := range 4 {
		acknowledged := killAfter(t, s.Path(), 5+7*round)
		if len(acknowledged) == 0 {
			t.Fatalf("round %d: nothing was stored before the kill", round)
		}
		again := open(t, s.Path(), Options{})
		if b.name == sqliteBackend.name {
			expectSound(t, again.db)
		}
		data := must.Get(again.Load(""))(t)
		at := make(map[int64]int)
		for i, id := range data.IDs {
			at[id] = i
		}
		for _, id := range acknowledged {
			i, ok := at[id]
			if !ok {
				t.Fatalf("round %d: sample %d was acknowledged and is gone", round, id)
			}
			expectWhole(t, again, data, i, reference)
		}
		// At most one more was stored without its acknowledgement being read.
		if extra := len(data.Samples) - total - len(acknowledged); extra < 0 || extra > 1 {
			t.Errorf("round %d: %d samples beyond the %d acknowledged", round, extra, len(acknowledged))
		}
		total = len(data.Samples)
		must.Succeed(t, again.Close())
	}
}

// expectWhole: a sample is stored with all its parts or not at all.
func expectWhole(t *testing.T, s *Store, data *RunData, i int, reference []sample.Sample) {
	t.Helper()
	got := data.Samples[i]
	for _, want := range reference {
		if want.Scenario != got.Scenario {
			continue
		}
		outputs, err := s.LoadOutputs(data.IDs[i])
		if err != nil || len(outputs) != len(want.Outputs) {
			t.Errorf("sample %d: %d outputs, %v, want %d", data.IDs[i], len(outputs), err, len(want.Outputs))
		}
		if len(got.Metrics) != len(want.Metrics) || len(got.Series) != len(want.Series) || got.Latency != want.Latency {
			t.Errorf("sample %d is not whole: %d metrics, %d points", data.IDs[i], len(got.Metrics), len(got.Series))
		}
		return
	}
	t.Errorf("sample %d is of unknown scenario %s", data.IDs[i], got.Scenario)
}

// killAfter runs a writer, kills it once it stored at least n samples, and
// returns the ids of all that it said it had stored.
func killAfter(t *testing.T, path string, n int) []int64 {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out := must.Get(cmd.StdoutPipe())(t)
	must.Succeed(t, cmd.Start())
	watchdog := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	var ids []int64
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			break // a line cut short by the kill is no acknowledgement
		}
		id, parseErr := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || parseErr != nil {
			t.Fatalf("writer said %q: %v", line, errors.Join(err, parseErr))
		}
		ids = append(ids, id)
		if len(ids) == n {
			must.Succeed(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil || complaints.Len() > 0 {
		t.Fatalf("the writer was to be killed: %v, %s", err, complaints.String())
	}
	return ids
}

func TestReadersSeeWholeSamplesWhileARunWrites(t *testing.T) {
	onEach(t, testReadersSeeWholeSamplesWhileARunWrites)
}

func testReadersSeeWholeSamplesWhileARunWrites(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sized(10)
	must.Succeed(t, s.CreateRun(run, plan))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		reader := open(t, s.Path(), Options{ReadOnly: true})
		readers.Go(func() { readUntil(t, reader, stop) })
	}
	for i := range samples {
		if _, err := s.AppendSample(run.ID, samples[i]); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	close(stop)
	readers.Wait()
	if data, err := s.Load(""); err != nil || len(data.Samples) != len(samples) {
		t.Errorf("at the end: %v, want %d samples", err, len(samples))
	}
}

func readUntil(t *testing.T, reader *Store, stop <-chan struct{}) {
	last := 0
	for {
		data, err := reader.Load("")
		if err != nil {
			t.Errorf("a reader: %v", err)
			return
		}
		if len(data.Samples) < last {
			t.Errorf("a reader saw %d samples, then %d", last, len(data.Samples))
		}
		last = len(data.Samples)
		for i := range data.Samples {
			if data.Samples[i].OK() && len(data.Samples[i].Metrics) == 0 {
				t.Errorf("a reader saw sample %d without its metrics", data.IDs[i])
			}
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

func TestTwoWritersWaitForEachOther(t *testing.T) { onEach(t, testTwoWritersWaitForEachOther) }

func testTwoWritersWaitForEachOther(t *testing.T, b backend) {
	first := b.fresh(t)
	second := open(t, first.Path(), Options{})
	run, plan, samples := reporttest.Sized(3)
	must.Succeed(t, first.CreateRun(run, plan))
	var writers sync.WaitGroup
	for _, s := range []*Store{first, second} {
		writers.Go(func() {
			for i := range samples {
				if _, err := s.AppendSample(run.ID, samples[i]); err != nil {
					t.Errorf("sample %d: %v", i, err)
				}
			}
		})
	}
	writers.Wait()
	if data, err := first.Load(""); err != nil || len(data.Samples) != 2*len(samples) {
		t.Errorf("%v, want %d samples", err, 2*len(samples))
	}
}

func TestStoreMadeByManyAtOnceIsMadeOnce(t *testing.T) {
	onEach(t, testStoreMadeByManyAtOnceIsMadeOnce)
}

func testStoreMadeByManyAtOnceIsMadeOnce(t *testing.T, b backend) {
	for range 5 {
		path := b.place(t)
		run, plan, samples := reporttest.Sized(1)
		var makers sync.WaitGroup
		for i := range 6 {
			makers.Go(func() {
				s, err := Open(path, Options{})
				if err != nil {
					t.Errorf("maker %d: %v", i, err)
					return
				}
				defer func() { _ = s.Close() }()
				mine := run
				mine.ID = fmt.Sprint(run.ID, i)
				if err := s.CreateRun(mine, plan); err != nil {
					t.Errorf("maker %d: %v", i, err)
				}
				if _, err := s.AppendSample(mine.ID, samples[i]); err != nil {
					t.Errorf("maker %d: %v", i, err)
				}
			})
		}
		makers.Wait()
		if runs, err := open(t, path, Options{ReadOnly: true}).Runs(); err != nil || len(runs) != 6 {
			t.Errorf("%d runs, %v, want 6", len(runs), err)
		}
	}
}

func TestTheErrorOfAWriterThatWaitsTooLongHasTheReason(t *testing.T) {
	first := fresh(t)
	run, plan, samples := reporttest.Sized(1)
	must.Succeed(t, first.CreateRun(run, plan))
	tx, err := first.db.Begin()
	must.Succeed(t, err)
	defer func() { _ = tx.Rollback() }()
	second := open(t, first.Path(), Options{Wait: 50 * time.Millisecond})
	_, err = second.AppendSample(run.ID, samples[0])
	must.Fail(t, err, "another process has been writing")
}

func TestDamagedPartsOfASampleAreErrorsThatNameIt(t *testing.T) {
	onEach(t, testDamagedPartsOfASampleAreErrorsThatNameIt)
}

func testDamagedPartsOfASampleAreErrorsThatNameIt(t *testing.T, b backend) {
	for name, c := range map[string]struct{ damage, says string }{
		"series":      {"UPDATE sample SET series_json = '[{' WHERE id = 1", "series of sample 1"},
		"hops":        {"UPDATE sample SET hops_json = '{}' WHERE id = 1", "hops of sample 1"},
		"start":       {"UPDATE sample SET started = 'yesterday' WHERE id = 1", "start of sample 1"},
		"plan":        {"UPDATE run SET plan_json = 'null]'", "plan"},
		"environment": {"UPDATE run SET environment_json = ''", "environment"},
		"seed":        {"UPDATE run SET seed = '-1'", "seed"},
	} {
		s := b.fresh(t)
		run, plan, samples := reporttest.Sized(1)
		fill(t, s, run, plan, samples)
		must.Get(s.db.Exec(c.damage))(t)
		if _, err := s.Load(""); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v", name, err)
		}
		if runs, err := s.Runs(); err != nil || len(runs) != 1 {
			t.Errorf("%s: the list of runs has %d, %v", name, len(runs), err)
		}
	}
}

func TestDamagedOutputIsAnError(t *testing.T) { onEach(t, testDamagedOutputIsAnError) }

func testDamagedOutputIsAnError(t *testing.T, b backend) {
	s := b.fresh(t)
	run, plan, samples := reporttest.Sized(1)
	ids := fill(t, s, run, plan, samples)
	var whole []byte
	must.Succeed(t, s.db.QueryRow(fmt.Sprintf("SELECT stdout_zstd FROM output WHERE ordinal = 0 AND sample_id = %d", ids[0])).Scan(&whole))
	for _, bad := range [][]byte{{0x00, 0x11, 0x22, 0x33}, whole[:len(whole)-2], {0x28, 0xb5, 0x2f, 0xfd}} {
		err := s.write("damage", func(t *tx) error {
			_, err := t.Exec("UPDATE output SET stdout_zstd = ? WHERE sample_id = ?", bad, ids[0])
			return err
		})
		must.Succeed(t, err)
		if _, err := s.LoadOutputs(ids[0]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("% x: error %v", bad, err)
		}
	}
	if outputs, err := s.LoadOutputs(ids[1]); err != nil || len(outputs) != 2 {
		t.Errorf("its neighbour: %d outputs, %v", len(outputs), err)
	}
	if outputs, err := s.LoadOutputs(1 << 40); err != nil || outputs != nil {
		t.Errorf("no such sample: %v, %v", outputs, err)
	}
}
