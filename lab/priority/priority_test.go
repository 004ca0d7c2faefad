package priority

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/child"
)

func TestRaisedThreadsHaveTheHighestPriorityAndLoweredThreadsDoNot(t *testing.T) {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, normal-1); err != nil {
		t.Skipf("raising a priority is not allowed: %v", err)
	}
	restore := Raise()
	defer restore()
	for id, nice := range threads(t) {
		if nice != highest {
			t.Errorf("thread %d has nice %d, want %d", id, nice, highest)
		}
	}
	child := make(chan string)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		Lower()
		out, err := exec.Command("nice").CombinedOutput() // prints its nice value
		if err != nil {
			out = []byte(err.Error())
		}
		child <- strings.TrimSpace(string(out))
	}()
	if got := <-child; got != strconv.Itoa(normal) {
		t.Errorf("a program that a lowered thread started has nice %s, want %d", got, normal)
	}
	restore()
	for id, nice := range threads(t) {
		if nice != normal {
			t.Errorf("thread %d has nice %d after restore, want %d", id, nice, normal)
		}
	}
}

// threads returns the nice value of each thread of the process.
func threads(t *testing.T) map[int]int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/task")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d threads, %v", len(list), err)
	}
	all := map[int]int{}
	for _, e := range list {
		id := must.Get(strconv.Atoi(e.Name()))(t)
		all[id] = niceOf(id)
	}
	return all
}

// Trials between several pairs of hosts run at the same time, and each raises the priority.
func TestThePriorityStaysHighUntilTheLastCallerRestoresIt(t *testing.T) {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, normal-1); err != nil {
		t.Skipf("raising a priority is not allowed: %v", err)
	}
	first, second := Raise(), Raise()
	first()
	first() // a second call does nothing
	for id, nice := range threads(t) {
		if nice != highest {
			t.Errorf("after the first restore thread %d has nice %d, want %d", id, nice, highest)
		}
	}
	second()
	for id, nice := range threads(t) {
		if nice != normal {
			t.Errorf("after the last restore thread %d has nice %d, want %d", id, nice, normal)
		}
	}
}

// RaiseSession only changes the session of a leader, so the test runs the test program again as the leader of a new session.
func TestARaisedSessionHasTheHighestPriorityAndItsChildrensSessionsDoNot(t *testing.T) {
	if os.Getenv("RAISE_SESSION") == "" {
		if _, err := os.Stat(autogroup); err != nil {
			t.Skipf("the kernel has no autogroups: %v", err)
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, normal-1); err != nil {
			t.Skipf("raising a priority is not allowed: %v", err)
		}
		cmd := exec.Command(os.Args[0], "-test.run", t.Name(), "-test.v")
		cmd.Env = append(os.Environ(), "RAISE_SESSION=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("the test program as the leader of a session: %v\n%s", err, out)
		}
		return
	}
	restore := RaiseSession()
	child := child.Command(t.Context(), []string{"cat", autogroup})
	its, err := child.Output()
	if err != nil || !strings.HasSuffix(string(its), " nice 0\n") {
		t.Errorf("a program that the leader started reads %q (error %v) in %s; want nice 0", its, err, autogroup)
	}
	if own := must.Get(os.ReadFile(autogroup))(t); !strings.HasSuffix(string(own), " nice -20\n") {
		t.Errorf("after RaiseSession the leader reads %q in %s; want nice -20", own, autogroup)
	}
	end := CalmSession()
	if own := must.Get(os.ReadFile(autogroup))(t); !strings.HasSuffix(string(own), " nice 0\n") {
		t.Errorf("after CalmSession the leader reads %q in %s; want nice 0", own, autogroup)
	}
	end()
	if own := must.Get(os.ReadFile(autogroup))(t); !strings.HasSuffix(string(own), " nice -20\n") {
		t.Errorf("after the end of CalmSession the leader reads %q in %s; want nice -20", own, autogroup)
	}
	restore()
	if own := must.Get(os.ReadFile(autogroup))(t); !strings.HasSuffix(string(own), " nice 0\n") {
		t.Errorf("after restore the leader reads %q in %s; want nice 0", own, autogroup)
	}
}

func TestTheSessionOfAnotherLeaderStaysAsItIs(t *testing.T) {
	before, err := os.ReadFile(autogroup)
	if err != nil {
		t.Skipf("the kernel has no autogroups: %v", err)
	}
	if leader, _ := unix.Getsid(0); leader == os.Getpid() {
		t.Skip("this program leads its session")
	}
	defer RaiseSession()()
	if now := must.Get(os.ReadFile(autogroup))(t); string(now) != string(before) {
		t.Errorf("%s has %q after RaiseSession; want %q as before, because another process is the leader", autogroup, now, before)
	}
}
