package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"windtunnel/internal/must"
	"windtunnel/internal/phrase"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/results/postgrestest"
	"windtunnel/lab/space"
)

// home is a folder in which the windtunnel program, built from this source,
// runs with its store and its reports.
type home struct {
	t       *testing.T
	dir     string
	program string
}

const slowSuite = `suite: slow
title: trials enough to be interrupted
trials: 6
timing: {warmup: 100ms, duration: 800ms, cooldown: 50ms}
fabrics:
  wire: {kind: wire, mtu: 1500, offload: tcp}
workloads:
  stream: {kind: tcp_stream, buffer: 16k, rate: 20M}
scenarios:
  - system: raw
    workload: stream
`

func newHome(t *testing.T) *home {
	t.Helper()
	if os.Geteuid() != 0 || runtime.NumCPU() < 2 {
		t.Skip("testbeds need root and two CPUs")
	}
	// World-readable, for the test that runs as an ordinary user.
	dir := must.Get(os.MkdirTemp("", "windtunnel-test-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.Succeed(t, os.Chmod(dir, 0o755))
	awaitLock(t)
	h := &home{t, dir, filepath.Join(dir, "windtunnel")}
	h.install("windtunnel")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "slow.yaml"), []byte(slowSuite), 0o644))
	return h
}

// awaitLock waits until no other run measures on this machine.
func awaitLock(t *testing.T) {
	t.Helper()
	must.Eventually(t, "no other run measures", func() error {
		lock, err := takeLock()
		if err == nil {
			lock.Unlock()
		}
		return err
	})
}

// withPrograms runs the tests with a folder for the program that they build.
type withPrograms struct{ *testing.M }

var programs string

func (w withPrograms) Run() int {
	var err error
	if programs, err = os.MkdirTemp("", "windtunnel-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	defer postgrestest.StopShared()
	return w.M.Run()
}

// install copies a program into the home, which every user can read.
func (h *home) install(name string) {
	h.t.Helper()
	built := must.Get(testprogram.Build(programs, name))(h.t)
	text := must.Get(os.ReadFile(built))(h.t)
	must.Succeed(h.t, os.WriteFile(filepath.Join(h.dir, name), text, 0o755))
}

func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.program, args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_DATA_HOME="+h.dir+"/data")
	return cmd
}

// run runs a command to its end and returns all that it printed.
func (h *home) run(args ...string) (string, error) {
	out, err := h.command(args...).CombinedOutput()
	return string(out), err
}

// untilTrials starts a run and returns once so many trials are in the store.
func (h *home) untilTrials(n int, args ...string) *exec.Cmd {
	h.t.Helper()
	cmd := h.command(args...)
	stderr := must.Get(cmd.StderrPipe())(h.t)
	must.Succeed(h.t, cmd.Start())
	var said strings.Builder
	lines := bufio.NewScanner(io.TeeReader(stderr, &said))
	yielded := regexp.MustCompile(`  \d+/\d+.*  .*bit/s, sender CPU`)
	for lines.Scan() {
		if yielded.MatchString(lines.Text()) {
			n--
		}
		if n == 0 {
			go io.Copy(io.Discard, stderr)
			return cmd
		}
	}
	h.t.Fatalf("the run ended %d trials too early: %s", n, said.String())
	return nil
}

// interrupt sends Ctrl-C to a run, waits for its end and checks its exit status.
func (h *home) interrupt(cmd *exec.Cmd) {
	h.t.Helper()
	must.Succeed(h.t, cmd.Process.Signal(syscall.SIGINT))
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		h.t.Errorf("an interrupted run ends with %v, want status 130", err)
	}
}

func (h *home) samples() (n int) {
	h.t.Helper()
	db := must.Get(sql.Open("sqlite", filepath.Join(h.dir, "data/windtunnel/windtunnel.db")))(h.t)
	defer db.Close()
	var check string
	must.Succeed(h.t, errors.Join(db.QueryRow("SELECT count(*) FROM sample WHERE failure_kind IS NULL").Scan(&n), db.QueryRow("PRAGMA integrity_check").Scan(&check)))
	if check != "ok" {
		h.t.Errorf("the store's integrity: %s", check)
	}
	return n
}

func leftovers(t *testing.T) []string {
	t.Helper()
	return must.Get(space.Named(space.RunPrefix))(t)
}

// untilNamespaces waits until a trial has made namespaces. It ignores those that an earlier trial has left.
func untilNamespaces(t *testing.T) {
	t.Helper()
	made := func() (all []string) { // a new namespace can have the name of a deleted one
		for _, name := range leftovers(t) {
			if info, err := os.Stat(filepath.Join(space.Dir, name)); err == nil {
				all = append(all, name+info.ModTime().String())
			}
		}
		return all
	}
	before := made()
	must.EventuallyTrue(t, "a trial has made namespaces", func() bool {
		return slices.ContainsFunc(made(), func(one string) bool { return !slices.Contains(before, one) })
	})
}

// A killed run loses only the current trial. The resumed run removes the leftovers and
// runs the remaining trials.
func TestAKilledRunIsResumed(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(2, "run", "slow.yaml", "--gates", "warn", "--cpu-distance", "any")
	untilNamespaces(t)
	must.Succeed(t, cmd.Process.Kill())
	cmd.Wait()
	kept := h.samples()
	if kept < 2 {
		t.Errorf("%d samples are kept of 2", kept)
	}
	left := len(leftovers(t))
	if left == 0 {
		t.Error("the killed run left no namespaces: the test does not test")
	}
	out, err := h.run("runs")
	if err != nil || !strings.Contains(out, " interrupted ") {
		t.Errorf("runs: %s (%v)", out, err)
	}
	out, err = h.run("run", "--resume", "latest") // with its own --gates warn
	if want := "removed " + phrase.Count(left, "network namespace"); err != nil || !strings.Contains(out, want) {
		t.Errorf("resume: %v, want %q\n%s", err, want, out)
	}
	if want := fmt.Sprintf("-slow: %d of 6 trials left, about ", 6-kept); !strings.Contains(out, want) {
		t.Errorf("resume: want %q\n%s", want, out)
	}
	if n := h.samples(); n != 6 {
		t.Errorf("after the resumed run there are %d samples, want 6", n)
	}
	if still := leftovers(t); len(still) > 0 {
		t.Errorf("left behind: %v", still)
	}
	if out, _ = h.run("runs"); !strings.Contains(out, " complete ") || strings.Count(out, "slow") != 2 {
		t.Errorf("runs: %s", out)
	}
}

func TestLabCleanRemovesWhatAKilledRunLeft(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	untilNamespaces(t)
	cmd.Process.Kill()
	cmd.Wait()
	out, err := h.run("lab", "clean")
	if err != nil || !regexp.MustCompile(`removed [1-9]\d* network namespaces`).MatchString(out) {
		t.Errorf("lab clean: %v\n%s", err, out)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A system with programs of its own leaves those too: agents, mounts, files.
func TestLabCleanRemovesWhatAKilledRunOfVRouterLeft(t *testing.T) {
	must.Long(t)
	h := newHome(t)
	h.install("vrouter")
	suite := strings.Replace(slowSuite, "system: raw", "system: vrouter\n    encap: mpls-udp", 1)
	must.Succeed(t, os.WriteFile(filepath.Join(h.dir, "overlay.yaml"), []byte(suite), 0o644))
	cmd := h.untilTrials(1, "run", "overlay.yaml", "--gates", "warn")
	left := func() (all []string) {
		names, err := filepath.Glob("/run/windtunnel/wt-run*")
		mounts, readErr := os.ReadFile("/proc/self/mounts")
		must.Succeed(t, errors.Join(err, readErr))
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, "/run/windtunnel/wt-run") {
				names = append(names, line)
			}
		}
		programs := must.Get(filepath.Glob("/proc/[0-9]*/exe"))(t)
		for _, p := range programs {
			argv, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline")) // what has ended has none
			if of, err := os.Readlink(p); err == nil && of == filepath.Join(h.dir, "vrouter") && strings.Contains(string(argv), "\x00agent\x00") {
				names = append(names, p) // the program's other commands end by themselves
			}
		}
		return names
	}
	// Into the second trial: two homes, mounts and agents.
	must.EventuallyTrue(t, "the second trial has two homes, mounts and agents", func() bool { return len(left()) >= 6 })
	cmd.Process.Kill()
	cmd.Wait()
	if n := h.samples(); n < 1 {
		t.Error("no trial succeeded")
	}
	if n := len(left()); n < 6 {
		t.Errorf("the killed run left %d things: the test does not test", n)
	}
	out, err := h.run("lab", "clean")
	if err != nil || !regexp.MustCompile(`ended [1-9]\d* processes`).MatchString(out) {
		t.Errorf("lab clean: %v\n%s", err, out)
	}
	if all := append(leftovers(t), left()...); len(all) > 0 {
		t.Errorf("left behind: %v", all)
	}
}

func TestCtrlCWritesTheReportOfTheFinishedTrials(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn", "--out", "stopped")
	h.interrupt(cmd)
	if _, err := os.Stat(filepath.Join(h.dir, "stopped/report.html")); err != nil {
		t.Error(err)
	}
	if n := h.samples(); n < 1 || n > 3 {
		t.Errorf("%d samples are kept", n)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if out, _ := h.run("runs"); !strings.Contains(out, " interrupted ") {
		t.Errorf("runs: %s", out)
	}
}

// An agent that is stopped does not keep Ctrl-C from ending the run.
func TestCtrlCEndsARunWhoseAgentIsStopped(t *testing.T) {
	h := newHome(t)
	cmd := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	agent := h.agent(cmd)
	must.Succeed(t, syscall.Kill(agent, syscall.SIGSTOP))
	interrupted := time.Now()
	h.interrupt(cmd)
	if took := time.Since(interrupted); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := syscall.Kill(agent, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the stopped agent, process %d, is still there (%v)", agent, err)
	}
}

// agent waits until an agent of the run is there and returns its process ID.
func (h *home) agent(run *exec.Cmd) (id int) {
	h.t.Helper()
	children := fmt.Sprintf("/proc/%d/task/*/children", run.Process.Pid)
	must.EventuallyTrue(h.t, "the run has an agent", func() bool {
		files, _ := filepath.Glob(children)
		for _, f := range files {
			text, _ := os.ReadFile(f)
			for _, pid := range strings.Fields(string(text)) {
				if argv, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.HasSuffix(string(argv), "\x00agent\x00") {
					id, _ = strconv.Atoi(pid)
				}
			}
		}
		return id > 0
	})
	return id
}

func TestASecondRunAtTheSameTimeIsRefused(t *testing.T) {
	h := newHome(t)
	first := h.untilTrials(1, "run", "slow.yaml", "--gates", "warn")
	out, err := h.run("run", "slow.yaml", "--gates", "warn")
	if err == nil || !strings.Contains(out, fmt.Sprintf("process %d", first.Process.Pid)) {
		t.Errorf("the second run: %v\n%s", err, out)
	}
	if out, err := h.run("lab", "clean"); err == nil {
		t.Errorf("lab clean cut down a run in progress: %s", out)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the first run: %v", err)
	}
	if out, _ := h.run("runs"); strings.Count(out, "-slow") != 1 {
		t.Errorf("the refused run is in the store: %s", out)
	}
}

func TestAFullDiskIsReportedAndStoredSamplesStay(t *testing.T) {
	h := newHome(t)
	small := filepath.Join(h.dir, "small")
	must.Succeed(t, os.Mkdir(small, 0o755))
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("mounting a tmpfs: " + err.Error())
	}
	t.Cleanup(func() { unix.Unmount(small, unix.MNT_DETACH) })
	db := filepath.Join(small, "windtunnel.db")
	if out, err := h.run("run", "slow.yaml", "--gates", "warn", "--trials", "1", "--db", db); err != nil {
		t.Fatalf("a run whose store has little room: %v\n%s", err, out)
	}
	must.Succeed(t, fill(filepath.Join(small, "ballast")))
	out, err := h.run("run", "slow.yaml", "--gates", "warn", "--trials", "2", "--db", db)
	if err == nil || !strings.Contains(out, "no space is left on ") {
		t.Errorf("on a full disk: %v\n%s", err, out)
	}
	if left := leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	os.Remove(filepath.Join(small, "ballast"))
	out, err = h.run("runs", "--db", db)
	if err != nil || !strings.Contains(out, " complete ") {
		t.Errorf("the run from before: %v\n%s", err, out)
	}
}

// fill writes until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

func TestAStoreThatCannotBeWrittenIsRefusedBeforeMeasuring(t *testing.T) {
	h := newHome(t)
	ro := filepath.Join(h.dir, "ro")
	must.Succeed(t, os.Mkdir(ro, 0o755))
	if err := unix.Mount("tmpfs", ro, "tmpfs", unix.MS_RDONLY, "size=1m"); err != nil {
		t.Skip("mounting a tmpfs: " + err.Error())
	}
	t.Cleanup(func() { unix.Unmount(ro, unix.MNT_DETACH) })
	started := time.Now()
	out, err := h.run("run", "slow.yaml", "--gates", "warn", "--db", filepath.Join(ro, "windtunnel.db"))
	if err == nil || !strings.Contains(out, "cannot be written; choose another file with --db") {
		t.Errorf("on a read-only disk: %v\n%s", err, out)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %v to say so", took)
	}
}

func TestTheErrorForAnOrdinaryUserHasARemedy(t *testing.T) {
	h := newHome(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	user := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, h.program, args...)
		cmd.Dir = h.dir
		cmd.Env = []string{"HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"run", "quick"}, {"lab", "up", "quick"}, {"lab", "clean"}} {
		out, err := user(args...)
		if err == nil || !strings.Contains(out, "sudo") {
			t.Errorf("%v as another user than root: %v, want an error with sudo\n%s", args, err, out)
		}
	}
	for _, args := range [][]string{{"suites"}, {"doctor"}, {"run", "quick", "--dry-run"}} {
		if out, err := user(args...); err != nil {
			t.Errorf("%v as another user than root fails: %v\n%s", args, err, out)
		}
	}
	// The features that need root are assumed, so the plan has the scenarios of a run as root.
	out, err := user("run", "quick", "--dry-run")
	if err != nil || !strings.HasPrefix(out, "about ") || strings.Contains(out, "skipped ") || !strings.HasSuffix(out, dryWithoutRoot) {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	if out, err := user("run", "k8s-cni", "--dry-run"); err != nil || !strings.HasPrefix(out, "no scenario can run on this machine\n") || !strings.Contains(out, "needs a Kubernetes cluster") {
		t.Errorf("dry run of a suite for a cluster: %v\n%s", err, out)
	}
}
