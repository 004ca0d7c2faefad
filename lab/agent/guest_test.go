package agent

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/suite"
	"windtunnel/lab/vm/image"
)

func TestThisProgramIsInitInAGuestAndOthersKeepTheirNames(t *testing.T) {
	own := must.Get(os.Executable())(t)
	must.Equal(t, []string{image.Init, "traffic", "x"}, inGuest([]string{own, "traffic", "x"}))
	must.Equal(t, []string{"netperf", "-H"}, inGuest([]string{"netperf", "-H"}))
}

func TestDevicesOfEachKernelKeepTheirPlacesOnThePath(t *testing.T) {
	s := &Service{guests: map[string]*guest{"c1": {}, "c2": {}}}
	var all []meter.Device
	for i, namespace := range []string{"c1", "", "c2", "", "c3"} {
		all = append(all, meter.Device{Namespace: namespace, Order: i})
	}
	orders := func(guest string) (list []int) {
		for _, d := range s.devicesOf(guest, all) {
			list = append(list, d.Order)
		}
		return list
	}
	if want := [][]int{{1, 3, 4}, {0}, {2}}; !reflect.DeepEqual([][]int{orders(""), orders("c1"), orders("c2")}, want) {
		t.Errorf("places %v, %v, %v; want %v", orders(""), orders("c1"), orders("c2"), want)
	}
}

func TestGuestsAreOrderedByTheirNumbers(t *testing.T) {
	names := []string{"c10", "c2", "c1"}
	slices.SortFunc(names, compareNames)
	must.Equal(t, []string{"c1", "c2", "c10"}, names)
}

func TestADeviceHasAQueueForEachCPUOfItsGuestWithinABound(t *testing.T) {
	for cpus, want := range map[int]int{0: 1, 1: 1, 4: 4, 64: mostQueues} {
		if got := queuesOf(suite.Endpoint{CPUs: cpus}); got != want {
			t.Errorf("%d CPUs: %d queues; want %d", cpus, got, want)
		}
	}
}
