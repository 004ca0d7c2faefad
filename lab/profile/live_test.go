package profile

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/meter"
	"windtunnel/lab/profile/folded"
)

const roleVariable = "WT_TEST_ROLE"

// The test binary is its own load.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "burn":
		burnChild()
	case "sink":
		playSink()
	case "source":
		playSource()
	default:
		os.Exit(m.Run())
	}
}

// burnChild works in its own code and, for about a tenth of its time, in the
// kernel's.
//
//go:noinline
func burnChild() {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	buffer := make([]byte, 256<<10)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); { // ended long before, but never later
		spinForProfile()
		if _, err := zero.Read(buffer); err != nil {
			panic(err)
		}
	}
}

var spun uint64

//go:noinline
func spinForProfile() {
	for i := range uint64(1 << 16) {
		spun = spun*31 + i
	}
}

// lastCPU is the CPU for the load; the test itself leaves it.
func lastCPU(t *testing.T) int {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("sampling whole CPUs needs root")
	}
	cpus := testprogram.CPUs(t)
	return cpus[len(cpus)-1]
}

func start(t *testing.T, c Config) *Sampler {
	t.Helper()
	return must.Get(Start(c))(t)
}

func now(t *testing.T) int64 {
	t.Helper()
	return must.Get(meter.Now())(t)
}

// burnOn uses a part of every 10 ms of a CPU until the test ends.
func burnOn(t *testing.T, cpu int, part float64) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		_ = unix.SchedSetaffinity(0, &set) // the figures show where it ran
		for {
			select {
			case <-stop:
				return
			default:
			}
			for begun := time.Now(); time.Since(begun) < time.Duration(part*1e7); {
				spinForProfile()
			}
			time.Sleep(time.Duration((1 - part) * 1e7))
		}
	}()
}

// What samples say is busy agrees with the meter, which knows idle time
// exactly. Other programs are part of both. The bounds are wide: samples do not
// see interrupts on an idle CPU, and time that the host took counts for the
// samples alone.
func TestBusyTimeAgreesWithTheMeter(t *testing.T) {
	must.Long(t)
	cpu := lastCPU(t)
	for _, part := range []float64{0.3, 1} {
		burnOn(t, cpu, part)
		m := must.Get(meter.New(meter.Config{Node: "n", CPUs: []int{cpu}}))(t)
		defer m.Close()
		s := start(t, Config{Node: "n", CPUs: []int{cpu}})
		time.Sleep(50 * time.Millisecond)
		a := must.Get(m.Read())(t)
		time.Sleep(1500 * time.Millisecond)
		b := must.Get(m.Read())(t)
		p := must.Get(s.Stop(Window{From: a.Mono, To: b.Mono}, Cast{Tools: []int{os.Getpid()}}))(t)
		d := must.Get(meter.Window(a, b))(t)
		metered, stolen, sampled := d.CPUs[cpu].Busy/d.Seconds, d.CPUs[cpu].Steal/d.Seconds, folded.Sum(p)
		t.Logf("load %.0f %%: metered %.4f cores, sampled %.4f and %.4f idle, %d samples, %d lost, steal %.3f s", 100*part, metered, sampled.Busy, sampled.Idle, p.Samples, p.Lost, d.CPUs[cpu].Steal)
		if sum := sampled.Busy + sampled.Idle + sampled.Wire; sum < 0.9999 || sum > 1.0001 {
			t.Errorf("the parts of one CPU add up to %.4f", sum)
		}
		if diff := sampled.Busy + sampled.Wire - metered; diff < -0.1 || diff > 0.1+stolen {
			t.Errorf("load %.0f %%: sampled %.3f cores and metered %.3f", 100*part, sampled.Busy, metered)
		}
		if metered+stolen < part*0.8 {
			t.Errorf("a load of %.0f %% was metered as %.3f cores", 100*part, metered)
		}
	}
}

// Busy time that no sample saw is taken from idle time, and is named.
func TestBusyTimeWithoutASampleIsNamed(t *testing.T) {
	cpu := lastCPU(t)
	s := start(t, Config{Node: "n", CPUs: []int{cpu}})
	from := now(t)
	time.Sleep(300 * time.Millisecond)
	to := now(t)
	p := must.Get(s.Stop(Window{From: from, To: to, Metered: map[int]float64{cpu: 10}}, Cast{}))(t)
	rows := folded.Categories(p)
	sum, unseen := folded.Sum(p), false
	for _, r := range rows {
		unseen = unseen || r.Name == folded.Unseen && r.Samples == 0 && r.Cores > 0
	}
	// The CPU may have been all busy, with nothing left that was not seen.
	if sum.Idle != 0 || !unseen && len(rows) > 1 && sum.Busy+sum.Wire < 0.999 {
		t.Errorf("idle %.3f, rows %+v", sum.Idle, rows)
	}
}

func TestUserAndKernelFunctionsOfAShortLivedProgramAreNamed(t *testing.T) {
	cpu := lastCPU(t)
	exe, err := os.Executable()
	must.Succeed(t, err)
	s := start(t, Config{Node: "n", CPUs: []int{cpu}})
	from := now(t)
	cmd := exec.Command("/usr/bin/env", roleVariable+"=burn", exe)
	var set, all unix.CPUSet
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must.Succeed(t, unix.SchedGetaffinity(0, &all))
	set.Set(cpu)
	must.Succeed(t, unix.SchedSetaffinity(0, &set))
	err = cmd.Start() // it inherits the CPU
	if restored := unix.SchedSetaffinity(0, &all); err != nil || restored != nil {
		t.Fatal(err, restored)
	}
	testprogram.AwaitCPUTime(t, cmd.Process.Pid, 300*time.Millisecond)
	to := now(t)
	must.Succeed(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	p := must.Get(s.Stop(Window{From: from, To: to}, Cast{Tools: []int{cmd.Process.Pid}}))(t)
	named, generator, kernel := uint64(0), uint64(0), 0
	for _, st := range p.Stacks {
		if slices.ContainsFunc(st.Frames, func(f string) bool { return strings.HasSuffix(f, ".spinForProfile") }) {
			named += st.Count
			// A function that calls nothing has no frame of its own, and its caller
			// is passed over; the caller's caller stands.
			if !strings.Contains(strings.Join(st.Frames, ";"), ".TestMain;") {
				t.Errorf("the callers are missing: %q", st.Frames)
			}
		}
		if st.Category == folded.Generator {
			generator += st.Count
		}
		for _, f := range st.Frames {
			if strings.HasSuffix(f, folded.KernelSuffix) && !strings.HasPrefix(f, "0x") {
				kernel++
			}
		}
	}
	if named < 20 || generator < named/2 || kernel == 0 {
		t.Errorf("%d samples in the load's function, %d of the generator, %d kernel frames", named, generator, kernel)
	}
	if p.Samples == 0 || p.Lost != 0 || len(p.Warnings) != 0 {
		t.Errorf("%d samples, %d lost, %q", p.Samples, p.Lost, p.Warnings)
	}
}

func TestAWindowBeyondTheSampledTimeIsRefused(t *testing.T) {
	cpu := lastCPU(t)
	for _, w := range []func() Window{
		func() Window { return Window{From: 1, To: now(t)} },
		func() Window { return Window{From: now(t), To: now(t) + 1e12} },
		func() Window { n := now(t); return Window{From: n, To: n} },
	} {
		s := start(t, Config{Node: "n", CPUs: []int{cpu}})
		if p, err := s.Stop(w(), Cast{}); err == nil || !strings.Contains(err.Error(), "not within the time that was sampled") {
			t.Errorf("the profile is %v, the error %v, want an error that the window was not sampled", p, err)
		}
	}
}

func TestAnAbsentCPUIsRefusedAndNothingStaysOpen(t *testing.T) {
	cpu := lastCPU(t)
	open := func() int {
		entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	before := open()
	_, err := Start(Config{Node: "n", CPUs: []int{cpu, 4095}})
	must.Fail(t, err, "CPU 4095")
	s := start(t, Config{Node: "n", CPUs: []int{cpu}})
	must.Succeed(t, s.Abandon())
	if after := open(); after > before+2 { // the runtime's own poller may have come
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func TestTheVDSOIsNamed(t *testing.T) {
	s := openVDSO()
	if s == nil {
		t.Skip("this process has no vdso")
	}
	if !slices.ContainsFunc(s.functions, func(f function) bool { return strings.Contains(f.name, "clock_gettime") }) {
		t.Errorf("no function is named clock_gettime: %+v", s.functions)
	}
}

// A Go program without symbol tables still has its line table.
func TestAStrippedGoProgramIsNamed(t *testing.T) {
	if _, err := exec.LookPath("strip"); err != nil {
		t.Skip("strip is not installed; get it with: apt-get install binutils")
	}
	exe := must.Get(os.Executable())(t)
	bare := t.TempDir() + "/bare"
	if out, err := exec.Command("strip", "-o", bare, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := must.Get(os.Open(bare))(t)
	defer f.Close()
	s := must.Get(openUserSymbols(f))(t)
	if !slices.ContainsFunc(s.functions, func(f function) bool { return f.name == "windtunnel/lab/profile.spinForProfile" }) {
		t.Errorf("the function of the load is not among the %d names", len(s.functions))
	}
}

func FuzzUserSymbols(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("#!/bin/sh"))
	f.Fuzz(func(t *testing.T, image []byte) {
		s, err := openUserSymbols(strings.NewReader(string(image)))
		if err == nil {
			s.name(0)
		}
	})
}
