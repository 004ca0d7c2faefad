package program

import "testing"

func TestAVersionIsComparedByItsNumbers(t *testing.T) {
	for _, c := range []struct {
		least, said string
		want        bool
	}{
		{"", "anything", true},
		{"3.4", "etcd Version: 3.4.23", true},
		{"3.4", "etcd Version: 3.3.25", false},
		{"0.26.7", "v0.26.7-dirty", true},
		{"0.26.7", "v0.26", false},
		{"2.13", "2.9", false},
		{"2.13", "ovs-vswitchd (Open vSwitch) 3.1.0", true},
		{"1.2", "no version at all", true},
		{"20.10", "Docker version 20.10.24+dfsg1, build 297e128", true},
		{"4.29.3", "fio-3.33", false},
		{"3", "3..1", true},
	} {
		if got := (Program{Least: c.least}).Serves(c.said); got != c.want {
			t.Errorf("%q with at least %q: %v, want %v", c.said, c.least, got, c.want)
		}
	}
}
