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
	// leastFrame is the part of a side's time below which a frame is put
	// together with its like to one frame called rest.
	leastFrame = 0.0005
	// mostFlames bounds all flame graphs of a page, compressed and in base64.
	mostFlames = 2 << 20
	// rest is the name of the frames that are too small to stand alone.
	rest = "…"
	// unitsPerCore: values are whole millionths of a core, as one sample of a
	// long run is.
	unitsPerCore = 1e6
)

// flames is every flame graph of the page; names and categories stand once.
type flames struct {
	Names      []string    `json:"names"`
	Categories []string    `json:"categories"` // in the order of their colours
	Sides      []flameSide `json:"sides"`
	Unit       float64     `json:"unit"` // values a core
}

// flameSide is the tree of one profile: its frames depth first, column by
// column. A frame's children follow it and are one deeper.
type flameSide struct {
	Scenario string  `json:"scenario"`
	Side     string  `json:"side"`
	Rate     float64 `json:"rate"`    // payload bytes a second; 0 unknown
	Seconds  float64 `json:"seconds"` // that were sampled
	// Table is cores by category, as the page's table has them; Wire and Idle
	// are no cost of the side and stand apart there.
	Table    []flameRow `json:"table"`
	Name     []int      `json:"name"`
	Depth    []int      `json:"depth"`
	Value    []int      `json:"value"`
	Samples  []uint64   `json:"samples"`
	Category []int      `json:"category"`
}

// flameRow is what one category took, in cores.
type flameRow struct {
	Category int     `json:"category"`
	Cores    float64 `json:"cores"`
}

// planter puts trees into columns.
type planter struct {
	flames
	names, categories map[string]int
}

// plant packs the profiles, with frames below the least part of a side put
// together. Where that yields more than this many bytes the least part doubles;
// part is what it came to.
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

// grow adds a frame and what is below it. Children too small to stand alone
// become one frame, of the category that most of them are in.
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

// index returns a string's place in a table, which it joins if need be.
func index(table *[]string, places map[string]int, text string) int {
	i, ok := places[text]
	if !ok {
		i = len(*table)
		places[text] = i
		*table = append(*table, text)
	}
	return i
}

// palette orders the categories by what they took in all profiles together, so
// that the dearest have the colours that are told apart best.
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
