package html

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"windtunnel/lab/profile/folded"
)

const (
	// leastFrame is the smallest share of a side's time for a separate frame. Smaller
	// frames are merged into a frame named rest.
	leastFrame = 0.0005
	// mostFlames limits all flame graphs of a page, in bytes, compressed and in
	// base64.
	mostFlames = 2 << 20
	// rest is the name of merged small frames.
	rest = "…"
	// unitsPerCore makes values whole millionths of a core, about one sample of a
	// long run.
	unitsPerCore = 1e6
)

// flames has all flame graphs of the page. Names and categories occur once.
type flames struct {
	Names      []string    `json:"names"`
	Categories []string    `json:"categories"` // in the order of their colours
	Sides      []flameSide `json:"sides"`
	Unit       float64     `json:"unit"` // values for each core
}

// flameSide is the tree of one profile: frames depth first, column by column. The
// children of a frame follow it at the next depth.
type flameSide struct {
	Scenario string  `json:"scenario"`
	Side     string  `json:"side"`
	Rate     float64 `json:"rate"`    // payload bytes per second; 0 if unknown
	Seconds  float64 `json:"seconds"` // sampled seconds
	// Table has the cores by category, as in the page's table. Wire and Idle are no
	// cost of the side and are not in the sum.
	Table    []flameRow `json:"table"`
	Name     []int      `json:"name"`
	Depth    []int      `json:"depth"`
	Value    []int      `json:"value"`
	Samples  []uint64   `json:"samples"`
	Category []int      `json:"category"`
}

// flameRow has the time of one category, in cores.
type flameRow struct {
	Category int     `json:"category"`
	Cores    float64 `json:"cores"`
}

// planter writes trees into columns.
type planter struct {
	flames
	names, categories map[string]int
}

// plant packs the profiles. Frames below the smallest part of a side are merged.
// While the result exceeds the given bytes, the smallest part is doubled. part is the
// final value.
func plant(list []decoded, most int) (packed string, part float64, err error) {
	for part = leastFrame; ; part *= 2 {
		p := planter{flames: flames{Unit: unitsPerCore}, names: make(map[string]int), categories: make(map[string]int)}
		for _, name := range palette(list) {
			p.category(name)
		}
		for i := range list {
			p.side(&list[i], part)
		}
		packed, err = squeeze(p.flames)
		if err != nil || len(packed) <= most || part > 0.1 {
			return packed, part, err
		}
	}
}

func squeeze(v any) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return "", fmt.Errorf("encode the flame graphs: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compress the flame graphs: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

func (p *planter) side(d *decoded, part float64) {
	s := flameSide{Scenario: d.Scenario, Side: d.Side, Rate: d.rate, Seconds: d.profile.Seconds, Table: []flameRow{}}
	for _, row := range d.categories {
		s.Table = append(s.Table, flameRow{p.category(row.Name), digits(row.Cores, 6)})
	}
	root := d.flame
	if root.Value > 0 {
		p.grow(&s, root, 0, root.Value*part)
	}
	p.Sides = append(p.Sides, s)
}

// grow adds a frame and its children. Small children are merged into one frame, of
// their most frequent category.
func (p *planter) grow(s *flameSide, n *folded.FlameNode, depth int, least float64) {
	p.frame(s, n.Name, depth, n.Value, n.Samples, n.Category)
	var small, largest folded.FlameNode
	for _, c := range n.Children {
		if c.Value >= least {
			p.grow(s, c, depth+1, least)
			continue
		}
		small.Value += c.Value
		small.Samples += c.Samples
		if c.Value >= largest.Value {
			largest = *c
		}
	}
	if small.Samples > 0 {
		p.frame(s, rest, depth+1, small.Value, small.Samples, largest.Category)
	}
}

func (p *planter) frame(s *flameSide, name string, depth int, value float64, samples uint64, category string) {
	s.Name = append(s.Name, index(&p.Names, p.names, name))
	s.Depth = append(s.Depth, depth)
	s.Value = append(s.Value, int(math.Round(value*unitsPerCore)))
	s.Samples = append(s.Samples, samples)
	s.Category = append(s.Category, p.category(category))
}

func (p *planter) category(name string) int { return index(&p.Categories, p.categories, name) }

// index returns the index of a string in a table, and adds the string if necessary.
func index(table *[]string, places map[string]int, text string) int {
	i, ok := places[text]
	if !ok {
		i = len(*table)
		places[text] = i
		*table = append(*table, text)
	}
	return i
}

// palette orders the categories by their time in all profiles together. So the
// largest categories get the colours that differ most.
func palette(list []decoded) []string {
	total := make(map[string]float64)
	for _, d := range list {
		for _, row := range d.categories {
			total[row.Name] += row.Cores
		}
	}
	var names []string
	for name := range total {
		names = append(names, name)
	}
	apart := func(name string) int {
		if name == folded.Idle || name == folded.Wire {
			return 1
		}
		return 0
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(apart(a), apart(b)), cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	return names
}
