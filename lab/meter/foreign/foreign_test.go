package foreign

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

// Other programs may run on this machine. So the tests look at the time of
// their own programs, and compare it with the scheduler's figure.

func TestABusyForeignProcessIsMeasuredAndNamed(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	s := newSpinner(t, "wt-hog", cpu, 300*time.Millisecond)
	before := read(t, m)
	s.begin()
	used := s.took()
	u := Between(before, read(t, m), []int{cpu})
	if got := s.in(u); math.Abs(got-used) > 0.1*used {
		t.Errorf("%.3f s were seen of a process that used %.3f s", got, used)
	}
	if u.Foreign < 0.9*used {
		t.Errorf("%.3f s of the CPU are said to be foreign; one process alone used %.3f s", u.Foreign, used)
	}
	if !slices.ContainsFunc(u.Top, func(task Task) bool {
		return task.TGID == s.cmd.Process.Pid && task.Comm == "wt-hog"
	}) {
		t.Errorf("process %d is not named wt-hog in %+v", s.cmd.Process.Pid, u.Top)
	}
}

// The reading is taken while the process runs, even if it has not left the CPU
// since it began.
func TestAProcessThatStillRunsIsSeen(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	s := newSpinner(t, "wt-still", cpu, 400*time.Millisecond)
	before := read(t, m)
	s.begin()
	testprogram.AwaitCPUTime(t, s.cmd.Process.Pid, 200*time.Millisecond)
	half := Between(before, read(t, m), []int{cpu})
	used := s.took()
	all := Between(before, read(t, m), []int{cpu})
	if got := s.in(half); got < 0.15 || got > used {
		t.Errorf("%.3f s were seen midway of a process that used %.3f s in the end", got, used)
	}
	if got := s.in(all); math.Abs(got-used) > 0.1*used {
		t.Errorf("%.3f s were seen of a process that used %.3f s: the reading midway left something behind", got, used)
	}
}

func TestAnAllowedProcessIsNotForeign(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	s := newSpinner(t, "wt-ours", cpu, 100*time.Millisecond)
	must.Succeed(t, m.Allow(nil, []int{s.cmd.Process.Pid}))
	before := read(t, m)
	s.begin()
	s.took()
	must.Equal(t, 0, s.in(Between(before, read(t, m), []int{cpu})))
}

func TestAFormerlyAllowedProcessIsForeignAgain(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	s := newSpinner(t, "wt-again", cpu, 100*time.Millisecond)
	for _, processes := range [][]int{{s.cmd.Process.Pid}, {1}} {
		must.Succeed(t, m.Allow(nil, processes))
	}
	before := read(t, m)
	s.begin()
	used := s.took()
	if got := s.in(Between(before, read(t, m), []int{cpu})); math.Abs(got-used) > 0.3*used {
		t.Errorf("%.3f s were seen of a process that used %.3f s", got, used)
	}
}

// A task that keeps the CPU is checked again when Allow is called, not only
// when it leaves the CPU.
func TestAllowTakesEffectOnRunningProcesses(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	s := newSpinner(t, "wt-late", cpu, 300*time.Millisecond)
	s.begin()
	must.Succeed(t, m.Allow(nil, []int{s.cmd.Process.Pid}))
	before := read(t, m)
	s.took()
	if got := s.in(Between(before, read(t, m), []int{cpu})); got > 0.01 {
		t.Errorf("%.3f s of a process are said to be foreign after it was allowed", got)
	}
}

func TestAProcessInAnAllowedNamespaceIsNotForeign(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	var inode uint32
	var s *spinner
	inNewNamespace(t, func() {
		var st unix.Stat_t
		must.Succeed(t, unix.Stat("/proc/thread-self/ns/net", &st))
		inode = uint32(st.Ino)
		s = newSpinner(t, "wt-inside", cpu, 200*time.Millisecond)
	})
	other := newSpinner(t, "wt-outside", cpu, 100*time.Millisecond)
	must.Succeed(t, m.Allow([]uint32{inode}, nil))
	before := read(t, m)
	s.begin()
	s.took()
	other.begin()
	used := other.took()
	u := Between(before, read(t, m), []int{cpu})
	must.Equal(t, 0, s.in(u))
	if got := other.in(u); math.Abs(got-used) > 0.1*used {
		t.Errorf("%.3f s were seen of a process outside it that used %.3f s", got, used)
	}
}

// inNewNamespace calls f on a thread in a new network namespace without a name,
// which ends with its last process.
func inNewNamespace(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	home := must.Get(netns.Get())(t)
	defer home.Close()
	defer func() {
		if err := netns.Set(home); err != nil {
			t.Fatalf("come back: %v", err) // the thread stays locked, and ends
		}
		runtime.UnlockOSThread()
	}()
	inside := must.Get(netns.New())(t)
	defer inside.Close()
	f()
}

// Only the CPUs that were asked for count.
func TestOtherCPUsAreNotMetered(t *testing.T) {
	cpu := lastCPU(t)
	if cpu == 0 {
		t.Skip("a second CPU is needed")
	}
	m := open(t, 0)
	s := newSpinner(t, "wt-elsewhere", cpu, 100*time.Millisecond)
	before := read(t, m)
	s.begin()
	s.took()
	after := read(t, m)
	must.Equal(t, 1, len(after))
	must.Equal(t, 0, s.in(Between(before, after, []int{0})))
}

func TestTheKernelsOwnThreadsAreNotForeign(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	time.Sleep(300 * time.Millisecond)
	for _, task := range read(t, m)[cpu].Top {
		if kthread(t, task.TGID) {
			t.Errorf("%s (%d) is a thread of the kernel", task.Comm, task.TGID)
		}
	}
	if !kthread(t, 2) {
		t.Skip("process 2 is not kthreadd: this is a PID namespace of its own, and the figures name the host's")
	}
}

// kthread reads PF_KTHREAD from the flags of /proc/PID/stat, the seventh field
// after the name.
func kthread(t *testing.T, pid int) bool {
	text, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false // has ended
	}
	must.Succeed(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	flags := must.Get(strconv.ParseUint(fields[6], 10, 64))(t)
	return flags&0x00200000 != 0
}

func TestAMeterWithoutCPUsIsRefused(t *testing.T) {
	_, err := Open(nil)
	must.Fail(t, err, "no CPUs given")
	if os.Geteuid() != 0 {
		t.Skip("BPF tracepoints need root")
	}
	_, err = Open([]int{9999})
	must.Fail(t, err, "CPU 9999")
}

func TestTheErrorOfARefusedMeterNamesTheMissingRightOrKernel(t *testing.T) {
	if got := missing(unix.EPERM); !strings.Contains(got, "CAP_BPF") {
		t.Errorf("without permission: %q", got)
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip("this kernel has no BTF")
	}
	if got := missing(ebpf.ErrNotSupported); !strings.Contains(got, "Linux 5.5") {
		t.Errorf("on an old kernel: %q", got)
	}
}

func TestManyShortProcessesShowAsOneProgram(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu)
	before := read(t, m)
	pids := map[int]bool{}
	for range 20 {
		c := exec.Command("taskset", "-c", itoa(cpu), "sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done")
		if err := c.Run(); err != nil {
			t.Skipf("run a short program (taskset of util-linux is needed): %v", err)
		}
		pids[c.Process.Pid] = true
	}
	u := Between(before, read(t, m), []int{cpu})
	runs, sum := 0, 0.0
	for _, task := range u.Top {
		if task.Comm == "sh" && pids[task.TGID] {
			runs++
			sum += task.Seconds
		}
	}
	if _, most := u.Culprit(); runs < 20 || most < sum-1e-9 {
		t.Errorf("%d processes named sh with %.4f s were seen of 20, and %.4f s of the culprit", runs, sum, most)
	}
}

// Two nodes share a CPU where there are more nodes than CPUs.
func TestACPUThatIsGivenTwiceIsMeteredOnce(t *testing.T) {
	cpu := lastCPU(t)
	m := open(t, cpu, cpu)
	must.Equal(t, 1, len(read(t, m)))
}
