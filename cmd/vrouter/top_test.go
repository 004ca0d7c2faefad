package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"windtunnel/vrouter/inspect"
)

func stats(packets uint64) []inspect.VRFStats {
	return []inspect.VRFStats{
		{VRF: 1, Network: "red", ByEncapsulation: map[string]inspect.Traffic{"vxlan": {TxPackets: packets, TxBytes: 100 * packets}, "local": {TxPackets: 1, TxBytes: 98}}},
		{VRF: 2, Network: "blue", ByEncapsulation: map[string]inspect.Traffic{"mpls-gre": {RxPackets: packets / 2, RxBytes: 50 * packets}}},
	}
}

func TestTopShowsRatesBetweenReadings(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	var m tea.Model = topModel{node: "a", before: sample{stats(0), start}}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if !strings.Contains(m.(topModel).text(), "measuring for one second") {
		t.Errorf("before the second reading:\n%s", m.(topModel).text())
	}
	m, next := m.Update(sampled{sample: sample{stats(2000), start.Add(2 * time.Second)}})
	if next == nil {
		t.Error("no further reading is asked for")
	}
	want := `node a  03:04:07  q quits

Network  Vrf  Encapsulation  TX p/s  TX bit/s  RX p/s  RX bit/s
red        1  vxlan          1.00 k     800 k       0         0
blue       2  mpls-gre            0         0     500     400 k
red        1  local               0         0       0         0
`
	if m.(topModel).text() != want {
		t.Errorf("got\n%s\nwant\n%s", m.(topModel).text(), want)
	}
}

func TestTopSaysThatNothingWasCarriedYet(t *testing.T) {
	var m tea.Model = topModel{node: "a"}
	m, _ = m.Update(sampled{sample: sample{nil, time.Now()}})
	if !strings.HasSuffix(m.(topModel).text(), "\nno network has carried a packet yet\n") {
		t.Errorf("%s", m.(topModel).text())
	}
}

func TestTopOnALowTerminalShowsTheBusiest(t *testing.T) {
	start := time.Now()
	var m tea.Model = topModel{before: sample{stats(0), start}}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 8})
	m, _ = m.Update(sampled{sample: sample{stats(10), start.Add(time.Second)}})
	if v := m.(topModel).text(); strings.Contains(v, "local") || !strings.HasSuffix(v, "and 1 less busy\n") {
		t.Errorf("%s", v)
	}
}

func TestTopEndsOnQAndOnAnError(t *testing.T) {
	m := topModel{}
	if _, quit := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); quit == nil || quit() != (tea.QuitMsg{}) {
		t.Error("q does not leave")
	}
	gone := errors.New("the agent is gone")
	end, quit := m.Update(sampled{err: gone})
	if quit == nil || quit() != (tea.QuitMsg{}) || end.(topModel).err != gone {
		t.Errorf("an error does not end it: %+v", end)
	}
}

func TestALineOfTopLeavesIdleOnesOut(t *testing.T) {
	var b strings.Builder
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	rates := inspect.Rates(stats(0), stats(2000), time.Second)
	if err := rateLines(&b, rates, at); err != nil {
		t.Fatal(err)
	}
	if err := rateLines(&b, nil, at); err != nil {
		t.Fatal(err)
	}
	want := "03:04:05  red vxlan: tx 2.00 k p/s 1.60 M bit/s, rx 0 p/s 0 bit/s  blue mpls-gre: tx 0 p/s 0 bit/s, rx 1.00 k p/s 800 k bit/s\n03:04:05  idle\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}
