package main

import (
	"testing"

	"windtunnel/internal/must"
)

func TestSettingsNameTheScenariosThatDiffer(t *testing.T) {
	s := settings{}
	s.add("raw/stream", map[string]string{"a fab/flush": "50000", "a net.ipv4.ip_forward": "1"})
	s.add("vxlan/rr", map[string]string{"a fab/flush": "0", "a net.ipv4.ip_forward": "1", "a vxlan0 rx-gro": "on"})
	s.add("bridge/rr", map[string]string{"a fab/flush": "0"})
	s.add("bridge/stream", map[string]string{"a fab/flush": "50000"})
	want := map[string]string{
		"a fab/flush":           "0; 50000 in bridge/stream, raw/stream", // as many as have 0, so the values' order decides
		"a net.ipv4.ip_forward": "1",
		"a vxlan0 rx-gro":       "on",
	}
	must.Equal(t, want, s.merge(nil))
	s.add("raw/long", map[string]string{"a fab/flush": "50000"})
	if got, want := s.merge(nil)["a fab/flush"], "50000; 0 in bridge/rr, vxlan/rr"; got != want {
		t.Errorf("%q, want %q: the value of most scenarios stands first", got, want)
	}
}

func TestAResumedRunKeepsItsEarlierSettings(t *testing.T) {
	s := settings{}
	s.add("raw/rr", map[string]string{"rmem": "2", "wmem": "1"})
	before := map[string]string{"rmem": "1", "wmem": "1", "sack": "1"}
	want := map[string]string{"rmem": "1; after the run was resumed: 2", "wmem": "1", "sack": "1"}
	for range 2 {
		must.Equal(t, want, s.merge(before))
	}
}
