package vm

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/vm/kernel"
)

// needQEMU skips where a guest cannot be emulated.
func needQEMU(t *testing.T) kernel.Kernel {
	t.Helper()
	if _, err := exec.LookPath(Program); err != nil {
		t.Skipf("%s is not installed; get it with: apt-get install qemu-system-x86", Program)
	}
	k, err := kernel.Find()
	if err != nil {
		t.Skip(err)
	}
	return k
}

// started starts an emulated VM. Its tap is in a new namespace, which ends with QEMU.
func started(t *testing.T, k kernel.Kernel, image string, cpus int) (*VM, error) {
	t.Helper()
	c := Config{Name: "t1", CPUs: cpus, Memory: 96 << 20, Kernel: k.Image, Image: image, Tap: "vrtap0", Queues: cpus, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Accelerator: TCG}
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("making a network namespace needs root and unshare")
	}
	m, err := Start(c, t.TempDir(), func(cmd *exec.Cmd) error {
		cmd.Args = append([]string{unshare, "--net", "--"}, cmd.Args...) // QEMU makes the tap itself
		cmd.Path = unshare
		return cmd.Start()
	})
	if err == nil {
		t.Cleanup(func() { m.Stop() })
	}
	return m, err
}

// twoCPUs returns the CPUs of this process; it skips the test if there is only one.
func twoCPUs(t *testing.T) (cpus []int) {
	t.Helper()
	cpus = testprogram.CPUs(t)
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	return cpus
}

func TestQEMUsOtherThreadsDoNotUseTheVirtualCPUs(t *testing.T) {
	k := needQEMU(t)
	cpus := twoCPUs(t)
	m := must.Get(started(t, k, k.Image, 1))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn := must.Get(m.Connect(ctx, cpus))(t)
	defer conn.Close()
	others, err := m.otherThreads(m.Threads())
	if err != nil || len(others) == 0 {
		t.Fatalf("QEMU's other threads are %v (%v); its main thread is one", others, err)
	}
	for _, thread := range append(others, m.Threads()...) {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(thread, &set); errors.Is(err, unix.ESRCH) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if virtual := thread == m.Threads()[0]; set.IsSet(cpus[0]) != virtual || set.IsSet(cpus[1]) == virtual {
			t.Errorf("thread %d (virtual CPU: %v) may run on %v", thread, virtual, set)
		}
	}
	must.Succeed(t, m.Stop())
}

func TestEachVirtualCPUIsPinnedToASeparateCPU(t *testing.T) {
	k := needQEMU(t)
	cpus := twoCPUs(t)
	m := must.Get(started(t, k, k.Image, 2))(t) // without a root file system: the test needs only running virtual CPUs
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn := must.Get(m.Connect(ctx, cpus))(t)
	defer conn.Close()
	threads := m.Threads()
	if len(threads) != 2 || threads[0] == threads[1] {
		t.Fatalf("two virtual CPUs have threads %v", threads)
	}
	for i, thread := range threads {
		var set unix.CPUSet
		must.Succeed(t, unix.SchedGetaffinity(thread, &set))
		if set.Count() != 1 || !set.IsSet(cpus[i]) {
			t.Errorf("virtual CPU %d may run on %v; want CPU %d alone", i, set, cpus[i])
		}
	}
	must.Succeed(t, m.Stop())
	if err := unix.Kill(m.PID(), 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("QEMU is still there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(m.said), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheErrorOfAVMThatQEMURefusesHasQEMUsOutput(t *testing.T) {
	k := needQEMU(t)
	k.Image += ".none"
	m, err := started(t, k, k.Image, 1)
	must.Succeed(t, err)
	_, err = m.Connect(t.Context(), []int{0})
	must.Fail(t, err, "boot VM t1", "QEMU has ended (exit status 1)", "QEMU said:")
}

func TestAVMLargerThanTheMemoryIsNotStarted(t *testing.T) {
	_, err := Start(Config{Name: "big", Memory: 1 << 50}, t.TempDir(), func(*exec.Cmd) error {
		t.Error("it was started")
		return nil
	})
	must.Fail(t, err, "give the VM less memory")
}

func TestQEMUsCommandLineHasAQueueForEachCPUAndVHostOnlyOnRequest(t *testing.T) {
	c := Config{Name: "c1", CPUs: 1, Memory: 512 << 20, Kernel: "K", Image: "I", Tap: "vifc1", Queues: 1, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Accelerator: TCG}
	one := strings.Join(argv(c, paths{"a", "q", "c"}), " ")
	for _, want := range []string{"-accel tcg,thread=multi", "-m 524288k", "ifname=vifc1,", "vnet_hdr=on", "mac=02:00:00:00:00:01", "mitigations=off", "name=" + PortName} {
		if !strings.Contains(one, want) {
			t.Errorf("%s lacks %s", one, want)
		}
	}
	for _, not := range []string{"queues", "vhost", "mq=on"} {
		if strings.Contains(one, not) {
			t.Errorf("%s has %s", one, not)
		}
	}
	c.Queues, c.VHost, c.Accelerator = 4, true, KVM
	many := strings.Join(argv(c, paths{"a", "q", "c"}), " ")
	for _, want := range []string{"-accel kvm -cpu host", "queues=4", "mq=on,vectors=10", "vhost=on"} {
		if !strings.Contains(many, want) {
			t.Errorf("%s lacks %s", many, want)
		}
	}
	if strings.Contains(many, "mitigations=off") {
		t.Error("a real CPU's weaknesses are left open")
	}
}

func TestKVMIsTriedOnceForEachBootAndKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kvm")
	tried := 0
	ask := func(release string) error {
		return once(t.Context(), path, release, func() (string, error) { tried++; return "it hangs", nil })
	}
	for range 2 {
		if err := ask("6.1"); err == nil || err.Error() != "it hangs" {
			t.Errorf("asked: %v", err)
		}
	}
	must.Equal(t, 1, tried)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the answer has the mode %v (%v), so that other users can lock it", info.Mode(), err)
	}
	if err := ask("6.12"); err == nil || tried != 2 {
		t.Errorf("another kernel: %v after %d", err, tried)
	}
	must.Succeed(t, os.WriteFile(path, []byte(`{"boot":"another","kernel":"6.12","works":true}`), 0o644))
	if err := ask("6.12"); err == nil || tried != 3 {
		t.Errorf("an answer of an earlier boot counts: %v after %d", err, tried)
	}
}

func TestAnInterruptedTrialOfKVMLeavesNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kvm")
	ctx, cancel := context.WithCancel(t.Context())
	err := once(ctx, path, "6.1", func() (string, error) { cancel(); return "cut short", nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	must.Succeed(t, once(t.Context(), path, "6.1", func() (string, error) { return "", nil }))
}
