package html

import (
	"fmt"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// topology is the picture of one scenario: drawn twice, wide for a desk and
// tall for a telephone; style.css shows one of them.
type topology struct {
	ID, Title string
	Caption   string
	Alt       string // what the picture shows, in a sentence
	Pictures  []picture
	Hops      []hopRow
}

// picture is a drawing in pixels.
type picture struct {
	Class         string // wide or tall
	Width, Height int
	Frames        []frame
	Boxes         []box
	Links         []link
	Texts         []text
}

// frame is a node, or the wire.
type frame struct {
	X, Y, W, H int
	Title      string
	Note       string // at the right of the title
	Class      string
}

// Right is the right edge.
func (f frame) Right() int { return f.X + f.W }

// box is one device with its counters, or the pill of a workload.
type box struct {
	X, Y, W, H int
	Name, Role string
	NX, RX, NY int // where name (from the left) and role (to the right) are written
	Lines      []text
	Drops      string // "2 dropped", or empty
	DX, DY     int
	Class      string
}

// Radius of the corners.
func (b box) Radius() int {
	if b.Class == "pill" {
		return b.H / 2
	}
	return 8
}

// link joins two boxes. Heads are the arrow heads' paths.
type link struct {
	Path  string
	Heads []string
}

// text is a line of writing.
type text struct {
	X, Y   int
	Text   string
	Class  string
	Anchor string
}

// hopRow is a device in the table that says what the picture shows.
type hopRow struct {
	Place, Device, Role string
	RxPackets, RxBytes  string
	TxPackets, TxBytes  string
	Drops               string
	Dropped             bool
}

// topologies draws every scenario that has hops, from its median trial.
func (b *builder) topologies() []topology {
	var list []topology
	for i := range b.r.Scenarios {
		row := &b.r.Scenarios[i]
		trial := b.kept.median[row.ID]
		p, ok := pathOf(trial)
		if !ok {
			continue
		}
		d := drawing{path: p, row: row, trial: trial}
		d.forward, d.backward = ways(row)
		list = append(list, topology{
			ID: row.ID, Title: row.Title, Caption: d.caption(), Alt: d.alt(),
			Pictures: []picture{d.wide(), d.tall()}, Hops: hopRows(trial),
		})
	}
	return list
}

// drawing is what both pictures of a scenario are made from.
type drawing struct {
	path              path
	row               *model.Scenario
	trial             *sample.Sample
	forward, backward bool
}

func (d drawing) caption() string {
	text := fmt.Sprintf("Block %d", d.trial.Block+1)
	if w, ok := d.trial.Metrics[sample.WindowSeconds]; ok {
		text += ", counted over " + model.Scale{Unit: "s", By: 1}.Print(w)
	}
	return text + "."
}

func (d drawing) alt() string {
	names := ""
	var drops uint64
	for i, s := range d.path.stops() {
		if i > 0 {
			names += ", "
		}
		names += s.Name
		drops += s.Drops()
	}
	return fmt.Sprintf("The way of the packets of %s: %s. Dropped on the way: %s.", d.row.ID, names, amount(drops, "pkts"))
}

// headline is the main figure of the trial.
func (d drawing) headline() string {
	m := mainMetric(d.row)
	v, ok := d.trial.Metrics[m]
	if !ok {
		return ""
	}
	scale := model.ScaleOf(m, v)
	if m == sample.Transactions {
		scale.Unit = strings.TrimSuffix(scale.Unit, "/s") + " transactions/s"
	}
	return strings.ReplaceAll(scale.Print(v), "  ", " ")
}

// spent is the CPU of a side, "CPU 81.0 %"; empty where it was not measured.
func (d drawing) spent(side int) string {
	m := []sample.Metric{sample.SenderCPU, sample.ReceiverCPU}[side]
	v, ok := d.trial.Metrics[m]
	if !ok {
		return ""
	}
	return fmt.Sprintf("CPU %.0f %%", v)
}

func hopRows(s *sample.Sample) []hopRow {
	var list []hopRow
	for _, h := range s.Hops {
		place := h.Node
		if h.Endpoint != "" {
			place += " / " + h.Endpoint
		}
		drops := h.RxDropped + h.TxDropped + h.QdiscDrop
		list = append(list, hopRow{
			Place: place, Device: h.Device, Role: h.Role,
			RxPackets: amount(h.RxPackets, ""), RxBytes: amount(h.RxBytes, "B"),
			TxPackets: amount(h.TxPackets, ""), TxBytes: amount(h.TxBytes, "B"),
			Drops: amount(drops, ""), Dropped: drops > 0,
		})
	}
	return list
}
