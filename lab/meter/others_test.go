package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

func TestTheOtherCPUsAreThoseThatAreOnlineAndNotTaken(t *testing.T) {
	stat := []byte("cpu  9 0 9 9 0 0 0 0 0 0\ncpu0 1 0 1 1\ncpu1 1 0 1 1\ncpu3 1 0 1 1\ncpu12 1 0 1 1\nintr 5\n")
	for _, c := range []struct{ taken, want []int }{
		{nil, []int{0, 1, 3, 12}},
		{[]int{1, 2, 12}, []int{0, 3}},
		{[]int{0, 1, 3, 12}, nil},
	} {
		got := must.Get(otherCPUs(stat, c.taken))(t)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("without %v: %s", c.taken, d)
		}
	}
	if _, err := otherCPUs([]byte("cpux 1 2 3 4\n"), nil); err == nil {
		t.Error("a line that names no CPU was accepted")
	}
}

func TestNoMeterIsOpenedWhereEveryCPUIsTaken(t *testing.T) {
	every := make([]int, 8192)
	for i := range every {
		every[i] = i
	}
	if m, err := NewOthers(every); m != nil || err != nil {
		t.Errorf("the meter is %v (%v), want none", m, err)
	}
}

func TestTheOtherCPUsAreMetered(t *testing.T) {
	all := testprogram.CPUs(t)
	if len(all) < 2 {
		t.Skip("a second CPU is needed")
	}
	m := must.Get(NewOthers(all[:1]))(t)
	defer m.Close()
	a := read(t, m)
	time.Sleep(50 * time.Millisecond)
	d := window(t, a, read(t, m))
	shares := d.SoftirqShares()
	if _, ok := shares[all[0]]; ok || len(shares) < len(all)-1 {
		t.Errorf("shares of %v are given; CPU %d was taken of %v", shares, all[0], all)
	}
	for cpu, share := range shares {
		if share < 0 || share > 1 {
			t.Errorf("CPU %d spent %v of the window on softirqs", cpu, share)
		}
	}
}

func TestSoftirqSharesAreOfTheWindow(t *testing.T) {
	d := Delta{Seconds: 2, CPUs: map[int]Usage{3: {Busy: 1.5, Softirq: 1}, 4: {Busy: 2}}}
	must.Equal(t, map[int]float64{3: 0.5, 4: 0}, d.SoftirqShares())
}
