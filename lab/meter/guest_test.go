package meter

import (
	"os"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

func TestTheThreadsOfAVirtualMachineAreReadUntilItEnds(t *testing.T) {
	m := &Meter{}
	for _, emulated := range []bool{true, false} {
		m.guests = []Guest{{Name: "c1", PID: os.Getpid(), Threads: []int{os.Getpid()}, Emulated: emulated}}
		got, err := m.readGuests()
		if err != nil || len(got) != 1 || got[0].Name != "c1" {
			t.Fatalf("emulated %t: %+v, %v", emulated, got, err)
		}
		if ran := got[0].CPU > 0; ran != emulated {
			t.Errorf("emulated %t: %d ns; this test's own thread has run, and as nobody's virtual CPU", emulated, got[0].CPU)
		}
	}
	m.guests = []Guest{{Name: "c1", PID: os.Getpid(), Threads: []int{1 << 22}}}
	_, err := m.readGuests()
	must.Fail(t, err, "VM c1: it has ended")
}

func TestTheCPUOfANodeWithVMsDividesIntoTheirsAndTheNetworks(t *testing.T) {
	n := &Delta{Node: "a", Seconds: 2, CPUs: map[int]Usage{0: {Busy: 1.5, User: 1}, 1: {Busy: 0.5}}}
	must.Succeed(t, n.guests([]GuestReading{{"c1", 1e9}, {"c2", 0}}, []GuestReading{{"c1", 2e9}, {"c2", 2e8}}))
	ms := Metrics(n, nil, Facts{WireCPU: map[int]float64{1: 0.1}})
	for metric, want := range map[sample.Metric]float64{
		sample.SenderCores: 0.95, sample.SenderGuestCores: 0.6, sample.SenderNetworkCores: 0.35,
	} {
		if got := ms[metric]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v; want %v", metric, got, want)
		}
	}
	if _, ok := Metrics(&Delta{Seconds: 1, CPUs: map[int]Usage{0: {}}}, nil, Facts{})[sample.SenderGuestCores]; ok {
		t.Error("a node without VMs has CPU of theirs")
	}
	if err := (&Delta{}).guests(nil, []GuestReading{{"c1", 1}}); err == nil {
		t.Error("a VM that was not there at the window's start has figures")
	}
	if err := (&Delta{}).guests([]GuestReading{{"c1", 2}}, []GuestReading{{"c1", 1}}); err == nil {
		t.Error("time that runs backwards has figures")
	}
}
