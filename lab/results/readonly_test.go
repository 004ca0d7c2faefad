package results

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
)

// readerEnv, set to a path, makes the test program open that store for reading. For each line of
// its standard input it prints the runs with their numbers of samples, or an error. It changes to the user nobody
// after its start, because that user may not have access to the test program.
const readerEnv = "WINDTUNNEL_RESULTS_TEST_READER"

func readOnRequest(path string) {
	const nobody = 65534
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := Open(path, Options{ReadOnly: true})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err != nil {
			fmt.Println("open:", err)
			continue
		}
		fmt.Println(contents(s))
	}
	os.Exit(0)
}

// contents returns the runs of a store with their numbers of samples, such as
// "b:6 a:6" for the runs b and a with six samples each.
func contents(s *Store) string {
	runs, err := s.Runs()
	if err != nil {
		return "error: " + err.Error()
	}
	var words []string
	for _, r := range runs {
		data, err := s.Load(r.ID)
		if err != nil {
			return "error: " + err.Error()
		}
		words = append(words, fmt.Sprintf("%s:%d", r.ID, len(data.Samples)))
	}
	return strings.Join(words, " ")
}

// stranger reads a store as a user who can write neither its file nor its directory.
type stranger struct {
	in  io.Writer
	out *bufio.Reader
}

func startStranger(t *testing.T, path string) *stranger {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), readerEnv+"="+path)
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &stranger{in, bufio.NewReader(out)}
}

func (s *stranger) read(t *testing.T) string {
	t.Helper()
	must.Get(io.WriteString(s.in, "\n"))(t)
	line := must.Get(s.out.ReadString('\n'))(t)
	return strings.TrimSpace(line)
}

// publicPlace returns the path of a store in a directory that every user can read, and only root
// can write.
func publicPlace(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("another user's process needs root")
	}
	dir := must.Get(os.MkdirTemp("", "wt-public-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must.Succeed(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, fileName)
}

// addRun stores a run of six samples. Its start is later than that of all stored runs.
func addRun(t *testing.T, s *Store, id string) {
	t.Helper()
	run, plan, samples := reporttest.Sized(1)
	run.ID, run.Started = id, time.Now()
	fill(t, s, run, plan, samples[:6])
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	must.Succeed(t, s.Close())
}

func TestAUserWithoutWriteAccessSeesLaterWrites(t *testing.T) {
	path := publicPlace(t)
	writer := open(t, path, Options{})
	addRun(t, writer, "a")
	closeStore(t, writer)
	reader := startStranger(t, path)
	expect := func(when, want string) {
		t.Helper()
		if got := reader.read(t); got != want {
			t.Errorf("%s: the reader sees %q, want %q", when, got, want)
		}
		if got := startStranger(t, path).read(t); got != want {
			t.Errorf("%s: a new reader sees %q, want %q", when, got, want)
		}
	}
	expect("at the start", "a:6")
	writer = open(t, path, Options{})
	addRun(t, writer, "b")
	expect("while a process writes", "b:6 a:6")
	closeStore(t, writer)
	expect("after its end", "b:6 a:6")
	writer = open(t, path, Options{})
	must.Get(writer.DeleteRun("a"))(t)
	expect("after a deletion", "b:6")
	closeStore(t, writer)
	expect("after its end", "b:6")
	writer = open(t, path, Options{})
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, writer.CreateRun(run, plan))
	closeStore(t, writer)
	stored := len(killAfter(t, path, 3))
	if got := reader.read(t); !strings.Contains(got, fmt.Sprintf("%s:%d", run.ID, stored)) && !strings.Contains(got, fmt.Sprintf("%s:%d", run.ID, stored+1)) {
		t.Errorf("after a kill: the reader sees %q, want %d samples of %s", got, stored, run.ID)
	}
}

// The last process that closes a store deletes first the -shm file, then the -wal file.
func TestAReaderWaitsWhileALogIsDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	must.Succeed(t, os.WriteFile(path+"-wal", []byte("samples"), 0o600))
	time.AfterFunc(30*time.Millisecond, func() { os.Remove(path + "-wal") })
	if without, err := lacksLog(path); err != nil || !without {
		t.Errorf("%t, %v; want to read without the log", without, err)
	}
}

func TestAUserWithoutWriteAccessReadsWhileOthersOpenAndClose(t *testing.T) {
	path := publicPlace(t)
	writer := open(t, path, Options{})
	addRun(t, writer, "kept")
	closeStore(t, writer)
	reader := startStranger(t, path)
	const least = 20 // of runs and of reads
	end := make(chan struct{})
	var reads atomic.Int64
	go func() {
		defer close(end)
		for i := 0; i < least || reads.Load() < least; i++ {
			s, err := Open(path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			addRun(t, s, fmt.Sprint("run", i))
			_ = s.Close()
			time.Sleep(20 * time.Millisecond)
			if s, err = Open(path, Options{}); err != nil {
				t.Error(err)
				return
			}
			if _, err := s.DeleteRun(fmt.Sprint("run", i)); err != nil {
				t.Error(err)
			}
			_ = s.Close()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for ; ; reads.Add(1) {
		// A run that is listed may be deleted before it is loaded.
		if got := reader.read(t); !strings.Contains(got, "kept:6") && !strings.Contains(got, "there is no run of this name") {
			t.Errorf("the reader sees %q, want the run kept", got)
		}
		select {
		case <-end:
			return
		default:
		}
	}
}
