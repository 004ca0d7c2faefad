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

// Missed counts the dropped packets of which a reader of the log does not see an event. The zero value
// is ready for the first reading.
type Missed struct {
	counters map[dropKey]uint64 // of the last reading; nil: there was none
	due      int                // drops before the last two readings, less their events and the drops that Add reported as missed
	recent   int                // drops between the last two readings
}

type dropKey struct {
	vif    uint32
	reason string
}

// Add notes the new events of a reading of the log, and the counters, which must be read after it. It
// returns how many drops the readings have missed since the last call. An event may be in the log a
// moment after it is counted: a drop counts as missed if the next reading does not have its event.
func (m *Missed) Add(events int, counters []Drop) (missed int) {
	now, gained := map[dropKey]uint64{}, 0
	for _, d := range counters {
		k := dropKey{d.Vif, d.Reason}
		if now[k] = d.Packets; d.Packets > m.counters[k] { // lower: the counter is another vif's
			gained += int(d.Packets - m.counters[k])
		}
	}
	if m.counters != nil {
		m.due += m.recent - events
		m.recent = gained
	}
	m.counters = now
	if m.due > 0 {
		missed, m.due = m.due, 0
	}
	return missed
}
