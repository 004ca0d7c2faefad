package foreign

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestBetweenSumsTheCPUsAndLeavesOutIdleTasks(t *testing.T) {
	before := map[int]Usage{
		0: {Foreign: 1, Top: []Task{{"old", 7, 0.6}, {"both", 9, 0.4}}},
		1: {Foreign: 2, Top: []Task{{"both", 9, 2}}},
		2: {Foreign: 5, Top: []Task{{"other CPU", 11, 5}}},
	}
	after := map[int]Usage{
		0: {Foreign: 1.25, Top: []Task{{"old", 7, 0.6}, {"both", 9, 0.65}}},
		1: {Foreign: 3, Top: []Task{{"both", 9, 2.5}, {"new", 12, 0.5}}},
		2: {Foreign: 9, Top: []Task{{"other CPU", 11, 9}}},
	}
	want := Usage{Foreign: 1.25, Top: []Task{{"both", 9, 0.75}, {"new", 12, 0.5}}}
	must.Equal(t, want, Between(before, after, []int{0, 1}), cmpopts.EquateApprox(0, 1e-12))
}

// The kernel forgets processes when there are too many of them.
func TestATaskThatWasForgottenCountsFromItsReturn(t *testing.T) {
	before := map[int]Usage{0: {Foreign: 3, Top: []Task{{"cc1", 5, 3}}}}
	after := map[int]Usage{0: {Foreign: 4, Top: []Task{{"cc1", 5, 0.5}}}}
	want := Usage{Foreign: 1, Top: []Task{{"cc1", 5, 0.5}}}
	must.Equal(t, want, Between(before, after, []int{0}))
}

// The kernel keeps 15 bytes of a program's name.
func TestSplitSeparatesTheUsageOfSomePrograms(t *testing.T) {
	u := Usage{Foreign: 1.5, Top: []Task{{"kube-controller", 3, 0.5}, {"cc1", 4, 0.4}, {"etcd", 5, 0.3}, {"etcdctl", 6, 0.2}}}
	of, others := u.Split([]string{"etcd", "kube-controller-manager"})
	wantOf := Usage{Foreign: 0.8, Top: []Task{{"kube-controller", 3, 0.5}, {"etcd", 5, 0.3}}}
	wantOthers := Usage{Foreign: 0.7, Top: []Task{{"cc1", 4, 0.4}, {"etcdctl", 6, 0.2}}}
	must.Equal(t, []Usage{wantOf, wantOthers}, []Usage{of, others}, cmpopts.EquateApprox(0, 1e-12))
}

func TestTheCulpritIsAProgramWithAllItsProcesses(t *testing.T) {
	u := Usage{Foreign: 1, Top: []Task{{"ffmpeg", 3, 0.3}, {"cc1", 4, 0.2}, {"cc1", 5, 0.2}}}
	if name, s := u.Culprit(); name != "cc1" || s != 0.4 {
		t.Errorf("%s with %v s", name, s)
	}
	if name, s := (Usage{}).Culprit(); name != "" || s != 0 {
		t.Errorf("nobody is called %q with %v s", name, s)
	}
}
