package agent

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"windtunnel/lab/meter"
	"windtunnel/lab/suite"
	"windtunnel/lab/vm/image"
)

func TestThisProgramIsInitInAGuestAndOthersKeepTheirNames(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := inGuest([]string{own, "traffic", "x"}); !slices.Equal(got, []string{image.Init, "traffic", "x"}) {
		t.Errorf("this program's: %v", got)
	}
	if got := inGuest([]string{"netperf", "-H"}); !slices.Equal(got, []string{"netperf", "-H"}) {
		t.Errorf("netperf's: %v", got)
	}
}

func TestDevicesInGuestsAndOnTheNodeKeepTheirPlacesOnThePath(t *testing.T) {
	s := &Service{guests: map[string]*guest{"c1": {}, "c2": {}}}
	by := s.divide([]meter.Device{
		{Namespace: "c1", Name: "eth0"}, {Name: "vifc1"}, {Namespace: "c2", Name: "eth0"}, {Name: "vifc2"}, {Name: "fab"},
	})
	orders := func(kernel string) (list []int) {
		for _, h := range by[kernel] {
			list = append(list, h.order)
		}
		return list
	}
	if want := [][]int{{1, 3, 4}, {0}, {2}}; !reflect.DeepEqual([][]int{orders(""), orders("c1"), orders("c2")}, want) {
		t.Errorf("places %v, %v, %v; want %v", orders(""), orders("c1"), orders("c2"), want)
	}
	read := []meter.DeviceReading{{Name: "fab", Order: 2}, {Name: "vifc1", Order: 0}}
	reorder(read, by[""])
	if read[0].Order != 4 || read[1].Order != 1 {
		t.Errorf("places after reading: %+v", read)
	}
}

func TestGuestsAreOrderedByTheirNumbers(t *testing.T) {
	names := []string{"c10", "c2", "c1"}
	slices.SortFunc(names, compareNames)
	if want := []string{"c1", "c2", "c10"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}

func TestADeviceHasAQueueForEachCPUOfItsGuestWithinABound(t *testing.T) {
	for cpus, want := range map[int]int{0: 1, 1: 1, 4: 4, 64: mostQueues} {
		if got := queuesOf(suite.Endpoint{CPUs: cpus}); got != want {
			t.Errorf("%d CPUs: %d queues; want %d", cpus, got, want)
		}
	}
}
