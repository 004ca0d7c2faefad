package drawings

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
	// leastFrame is the smallest share of a side's time that a separate frame can have.
	// Smaller frames are merged into one frame.
	leastFrame = 0.0005
	// mostFlames limits the size of all flame graphs of a page together, in bytes after
	// compression and base64.
	mostFlames = 2 << 20
	// rest is the name of a frame that merges small frames.
	rest = "…"
	// unitsPerCore is the resolution of the values: one millionth of a core. That is
	// about one sample of a long run.
	unitsPerCore = 1e6
)

// flames has all flame graphs of the page. Frames refer to names and categories by index.
type flames struct {
	Names      []string    `json:"names"`
	Categories []string    `json:"categories"` // in the order of their colours
	Sides      []flameSide `json:"sides"`
	Unit       float64     `json:"unit"` // the value that means one core
}

// flameSide is the tree of one profile. It has one list for each property of the frames.
// The frames are in depth-first order, so a frame's children follow the frame.
type flameSide struct {
	Scenario string  `json:"scenario"`
	Side     string  `json:"side"`
	Rate     float64 `json:"rate"`    // payload bytes per second; 0 if unknown
	Seconds  float64 `json:"seconds"` // sampled seconds
	// Table has the cores of each category, as the page's table does. The sum does not
	// contain Wire and Idle, because they are not a cost of the side.
	Table    []flameRow `json:"table"`
	Name     []int      `json:"name"`
	Depth    []int      `json:"depth"`
	Value    []int      `json:"value"`
	Samples  []uint64   `json:"samples"`
	Category []int      `json:"category"`
}

// flameRow has the CPU time of one category, in cores.
type flameRow struct {
	Category int     `json:"category"`
	Cores    float64 `json:"cores"`
}

// flamePacker converts the trees of profiles into flames.
type flamePacker struct {
	flames
	names, categories map[string]int
}

// packFlames converts and compresses the profiles. It merges frames whose share of a
// side's time is below part, which starts at leastFrame. While the result is larger than
// most bytes, it doubles part. It returns the last part.
func packFlames(list []decoded, most int) (packed string, part float64, err error) {
	for part = leastFrame; ; part *= 2 {
		p := flamePacker{flames: flames{Unit: unitsPerCore}, names: make(map[string]int), categories: make(map[string]int)}
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

func (p *flamePacker) side(d *decoded, part float64) {
	s := flameSide{Scenario: d.Scenario, Side: d.Side, Rate: d.rate, Seconds: d.profile.Seconds, Table: []flameRow{}}
	for _, row := range d.categories {
		s.Table = append(s.Table, flameRow{p.category(row.Name), digits(row.Cores, 6)})
	}
	root := d.flame
	if root.Value > 0 {
		p.addFrame(&s, root, 0, root.Value*part)
	}
	p.Sides = append(p.Sides, s)
}

// addFrame adds a frame and its children. It merges small children into one frame, with
// the category that has most of their time.
func (p *flamePacker) addFrame(s *flameSide, n *folded.FlameNode, depth int, least float64) {
	p.frame(s, n.Name, depth, n.Value, n.Samples, n.Category)
	var small, largest folded.FlameNode
	for _, c := range n.Children {
		if c.Value >= least {
			p.addFrame(s, c, depth+1, least)
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

func (p *flamePacker) frame(s *flameSide, name string, depth int, value float64, samples uint64, category string) {
	s.Name = append(s.Name, index(&p.Names, p.names, name))
	s.Depth = append(s.Depth, depth)
	s.Value = append(s.Value, int(math.Round(value*unitsPerCore)))
	s.Samples = append(s.Samples, samples)
	s.Category = append(s.Category, p.category(category))
}

func (p *flamePacker) category(name string) int { return index(&p.Categories, p.categories, name) }

// index returns the index of a string in a table. It adds a missing string to the table.
func index(table *[]string, places map[string]int, text string) int {
	i, ok := places[text]
	if !ok {
		i = len(*table)
		places[text] = i
		*table = append(*table, text)
	}
	return i
}

// palette returns the categories in the order of their colours. The category with the
// most time in all profiles together is first: the first colours differ most.
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
