// Package priority raises the priority of threads that time and meter a trial. They
// then run before the threads that carry traffic, of which many can be on the same
// CPUs.
package priority

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// highest is the nice value of raised threads. They mostly sleep, so the value
// changes when they run, but hardly their CPU time.
const highest = -20

// normal is the nice value with which the process began.
var normal = niceOf(0)

// raised counts the calls of Raise without their restore.
var raised struct {
	sync.Mutex
	n int
}

// Raise gives every thread of the process the highest priority. New threads inherit
// it. restore gives all threads the priority with which the process began; if several
// callers have raised it, the last restore does. Without CAP_SYS_NICE nothing changes, and
// the threads wait longer for a busy CPU.
func Raise() (restore func()) {
	raised.Lock()
	defer raised.Unlock()
	if raised.n++; raised.n == 1 {
		setAll(highest)
	}
	return sync.OnceFunc(func() {
		raised.Lock()
		defer raised.Unlock()
		if raised.n--; raised.n == 0 {
			setAll(normal)
		}
	})
}

// Lower gives the calling thread the priority with which the process began.
// Processes and threads that it starts inherit this priority. The thread must be
// locked to its goroutine.
func Lower() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, normal) // a lower priority is always allowed
}

// autogroup is a file that contains the nice value of this process's session, as in "/autogroup-25 nice 0". If
// kernel.sched_autogroup_enabled is 1, the kernel first divides the time of a CPU among sessions by these values. Then it divides the
// time of a session among the session's threads by the threads' nice values (sched(7)).
const autogroup = "/proc/self/autogroup"

// session holds the calls of RaiseSession and CalmSession that have not ended yet.
var session struct {
	sync.Mutex
	before string // nice value of the session before RaiseSession; "" if RaiseSession is not in effect
	calm   int    // number of calls of CalmSession that have not ended
}

// setSession gives this process's session the highest priority. While a call of CalmSession has not ended, it gives the session the
// nice value from before RaiseSession. Without CAP_SYS_NICE it changes nothing. Call it only while RaiseSession is in effect.
func setSession() {
	nice := strconv.Itoa(highest)
	if session.calm > 0 {
		nice = session.before
	}
	_ = os.WriteFile(autogroup, []byte(nice), 0)
}

// RaiseSession calls Raise. If this process is the leader of its session, RaiseSession also gives the session the highest priority.
// In a session of normal priority, the process can wait half a second for a CPU on which many other sessions run, such as the
// sessions of fio's jobs. All processes of the session get the highest priority, so programs that this process starts must run in
// other sessions (see child.Command). If another process, such as a shell, is the leader, the session's priority does
// not change. Call restore before the next call of RaiseSession.
func RaiseSession() (restore func()) {
	lower := Raise()
	text, err := os.ReadFile(autogroup)
	_, before, found := strings.Cut(strings.TrimSpace(string(text)), " nice ")
	if leader, _ := unix.Getsid(0); err != nil || !found || leader != os.Getpid() {
		return lower
	}
	session.Lock()
	defer session.Unlock()
	session.before = before
	setSession()
	return sync.OnceFunc(func() {
		session.Lock()
		defer session.Unlock()
		_ = os.WriteFile(autogroup, []byte(before), 0)
		session.before = ""
		lower()
	})
}

// CalmSession gives the session its nice value from before RaiseSession, until the caller calls end. A thread with normal priority must
// call both Lower and CalmSession, because Lower changes its priority only among the threads of the session.
func CalmSession() (end func()) {
	calm := func(change int) {
		session.Lock()
		defer session.Unlock()
		if session.calm += change; session.before != "" {
			setSession()
		}
	}
	calm(1)
	return sync.OnceFunc(func() { calm(-1) })
}

// setAll sets the nice value of every thread. Meanwhile a thread may start another one,
// which appears in the list of threads later. So setAll reads the list until two reads in
// a row find no new thread. It waits by a system call and not by
// time.Sleep, because its callers hold a mutex: under testing/synctest, time.Sleep does not return while
// another goroutine waits for a mutex.
func setAll(nice int) {
	known := map[string]bool{}
	for unchanged := 0; unchanged < 2; unchanged++ {
		_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(unchanged) * 1e6}, nil) // a shorter wait does no harm
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || known[t.Name()] {
				continue
			}
			known[t.Name()], unchanged = true, -1
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice) // fails if the thread has ended
		}
	}
}

// niceOf returns a thread's nice value. Thread 0 is the calling thread.
func niceOf(thread int) int {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil {
		return 0
	}
	return 20 - raw // the system call returns 20 − nice, which is never negative
}
