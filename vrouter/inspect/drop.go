package inspect

import (
	"fmt"
	"slices"
	"time"

	"windtunnel/internal/phrase"
)

// DropTable shows drops as `dropstats` does, with a row per reason and vif.
func DropTable(rows []Drop) Table {
	t := Table{
		Empty: "no drops",
		Columns: []Column{
			{Name: "Reason"},
			{Name: "Packets", Right: true},
			{Name: "Vif", Right: true},
			{Name: "Device", Leave: 2},
			{Name: "Meaning", Least: 12, Leave: 1},
		},
	}
	for _, d := range rows {
		t.Add(d.Reason, number(d.Packets), number(d.Vif), orNone(d.Device), d.Meaning)
	}
	return t
}

// String is one line of `vrouter dropstats --log`.
func (e DropEvent) String() string {
	device, meaning := orNone(e.Device), e.Meaning
	if e.Denied != "" {
		meaning += ": " + e.Denied
	}
	return phrase.Printable(fmt.Sprintf("%s  %s  vif %d (%s)  vrf %d  %d bytes  %s  (%s)",
		e.Time.Local().Format("15:04:05.000000"), e.Reason, e.Vif, device, e.VRF, e.Length, e.Packet, meaning))
}

// Later returns the events that are new in the later of two readings of the
// log. Both readings are sorted, oldest first.
func Later(before, after []DropEvent) []DropEvent {
	if len(before) == 0 {
		return after
	}
	last := before[len(before)-1].Time
	at, _ := slices.BinarySearchFunc(after, last, func(e DropEvent, t time.Time) int { return e.Time.Compare(t) })
	seen := 0
	for i := len(before) - 1; i >= 0 && before[i].Time.Equal(last); i-- {
		seen++
	}
	// Several events can have the time last. Skip those that before already
	// has.
	for ; seen > 0 && at < len(after) && after[at].Time.Equal(last); seen-- {
		at++
	}
	return after[at:]
}
