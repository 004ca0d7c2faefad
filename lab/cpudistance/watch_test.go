package cpudistance

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

// at makes readings 1 s apart.
func at(trips ...float64) []Reading {
	var list []Reading
	for i, r := range trips {
		list = append(list, Reading{Mono: int64(i) * 1e9, RoundTrip: r})
	}
	return list
}

func TestSummaryCountsTheChanges(t *testing.T) {
	for want, list := range map[string][]Reading{
		"CPU 0 and 1: 52 ns or 335 ns; changed 2 times in 9 s: the host moves this machine's CPUs":                        at(52, 52, 335, 335, 335, 0, 335, 52, 52, 52),
		"CPU 0 and 1: 371 ns, the same for 4 s":                                                                           at(371, 371, 0, 371, 371),
		"CPU 0 and 1: not known: the measuring threads never ran at the same time in 2 s; end what keeps these CPUs busy": at(0, 0, 0),
	} {
		must.Equal(t, want, Summary(0, 1, list))
	}
}

// The probe on any machine: a round trip takes longer than an L1 hit and
// shorter than a system call.
func TestAProbeReadsPlausibleFigures(t *testing.T) {
	cpus := testprogram.CPUs(t)
	if len(cpus) < 2 {
		t.Skip("this machine has one CPU; a distance needs two")
	}
	list := must.Get(Watch(cpus[0], cpus[1], 2*time.Second, 10*time.Millisecond))(t)
	trips := RoundTrips(list)
	if len(trips) == 0 {
		t.Skip("the CPUs were too busy for the threads to meet")
	}
	if least := slices.Min(trips); least < 5 || least > 5000 {
		t.Errorf("the shortest round trip took %v ns", least)
	}
	if speed := CopySpeed(list); speed < 1e8 || speed > 1e12 {
		t.Errorf("memory is copied at %v bytes a second", speed)
	}
}

func TestAProbeOfAbsentCPUsIsRefused(t *testing.T) {
	for _, cpus := range [][2]int{{0, 0}, {0, 8191}, {8191, 0}} {
		if p, err := Open(cpus[0], cpus[1]); err == nil {
			p.Close()
			t.Errorf("CPUs %v were accepted", cpus)
		}
	}
}

// A thread at real-time priority preempts a caller on its CPU. Both threads
// must still run.
func TestACallerOnEitherCPUGetsReadings(t *testing.T) {
	cpus := testprogram.CPUs(t)
	if len(cpus) < 2 {
		t.Skip("the distance of CPUs needs two")
	}
	p := must.Get(Open(cpus[0], cpus[1]))(t)
	defer p.Close()
	for _, cpu := range cpus[:2] {
		met := make(chan int)
		go func() {
			runtime.LockOSThread() // and never handed back: it is bound
			var one unix.CPUSet
			one.Set(cpu)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
			}
			n := 0
			for range 20 {
				if r, err := p.Persist(); err != nil {
					t.Error(err)
				} else if r.RoundTrip > 0 {
					n++
				}
			}
			met <- n
		}()
		if n := <-met; n < 10 {
			t.Errorf("a caller on CPU %d got %d readings of 20", cpu, n)
		}
	}
}
