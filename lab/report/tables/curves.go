package tables

import (
	"cmp"
	"slices"
	"strconv"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// Curve is the main figure of each system over one property of the traffic. All else is the same.
type Curve struct {
	Metric   sample.Metric
	Property string   // "connections"
	Values   []string // of the property, in ascending order: "1", "2", "4"
	Lines    []CurveLine
}

// CurveLine is one group of scenarios. It has a scenario for each value; nil: none, or not measured.
type CurveLine struct {
	Group     string
	Scenarios []*model.Scenario
}

// Rows returns the scenarios of all lines.
func (c *Curve) Rows() (rows []*model.Scenario) {
	for _, l := range c.Lines {
		for _, s := range l.Scenarios {
			if s != nil {
				rows = append(rows, s)
			}
		}
	}
	return rows
}

// leastValues is the number of values from which a curve is drawn.
const leastValues = 3

// property is a number by which scenarios can differ. without removes it, so that scenarios which
// differ in nothing else become equal.
type property struct {
	name    string
	of      func(*model.Scenario) float64
	without func(*traffic)
	print   func(float64) string
	latency bool // the p99 of the latency shows its effect
}

// traffic is what a curve's scenarios have in common.
type traffic struct {
	suite.Workload
	pairs           int
	tool, placement string
}

// lineOf identifies a line of a curve. All scenarios of the line have this group, fabric and endpoint.
type lineOf struct {
	group    string
	fabric   suite.Fabric
	endpoint suite.Endpoint
}

func decimals(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
func bytes(v float64) string    { return units.FormatBytes(int64(v)) }

var properties = []property{
	{"connections", func(s *model.Scenario) float64 { return float64(s.Workload.Streams) }, func(t *traffic) { t.Streams = 0 }, decimals, false},
	{"pairs", func(s *model.Scenario) float64 { return float64(s.Pairs) }, func(t *traffic) { t.pairs = 0 }, decimals, false},
	{"size of a send call", func(s *model.Scenario) float64 { return float64(s.Workload.Buffer) }, func(t *traffic) { t.Buffer = 0 }, bytes, false},
	{"size of a request and of its response", func(s *model.Scenario) float64 {
		if s.Workload.Request != s.Workload.Response {
			return 0
		}
		return float64(s.Workload.Request)
	}, func(t *traffic) { t.Request, t.Response = 0, 0 }, bytes, false},
	{"streams beside the requests", func(s *model.Scenario) float64 { return float64(s.Workload.Load) }, func(t *traffic) { t.Load = 0 }, decimals, true},
	{"share of the capacity", func(s *model.Scenario) float64 { return s.Workload.OfCapacity }, func(t *traffic) { t.OfCapacity = 0 }, units.FormatPercent, true},
	{"requests per second", func(s *model.Scenario) float64 { return s.Workload.Pace }, func(t *traffic) { t.Pace = 0 }, decimals, true},
}

// Curves returns a curve for each property that has three values or more in scenarios which differ
// in nothing else.
func Curves(r *model.Report) (list []Curve) {
	for _, p := range properties {
		var order []traffic
		same := map[traffic][]*model.Scenario{}
		for i := range r.Scenarios {
			s := &r.Scenarios[i]
			t := traffic{s.Workload, s.Pairs, s.Tool, s.Placement}
			t.Name = ""
			p.without(&t)
			if p.of(s) > 0 {
				if same[t] == nil {
					order = append(order, t)
				}
				same[t] = append(same[t], s)
			}
		}
		for _, t := range order {
			if c := p.curve(same[t]); len(c.Values) >= leastValues {
				list = append(list, c)
			}
		}
	}
	return list
}

// curve leaves out groups with fewer values that were measured. If a group has two scenarios with
// one value, the first counts.
func (p property) curve(scenarios []*model.Scenario) (c Curve) {
	c.Property, c.Metric = p.name, p.metric(scenarios[0].Workload.Kind)
	groups := map[lineOf]map[float64]*model.Scenario{}
	var names []lineOf
	for _, s := range scenarios {
		if s.Interval(c.Metric) == nil {
			continue
		}
		name := lineOf{suite.Group(s.ID), s.Fabric, s.Endpoint}
		if groups[name] == nil {
			names, groups[name] = append(names, name), map[float64]*model.Scenario{}
		}
		if groups[name][p.of(s)] == nil {
			groups[name][p.of(s)] = s
		}
	}
	names = slices.DeleteFunc(names, func(name lineOf) bool { return len(groups[name]) < leastValues })
	var values []float64
	for _, name := range names {
		for v := range groups[name] {
			values = append(values, v)
		}
	}
	slices.SortFunc(values, cmp.Compare[float64])
	values = slices.Compact(values)
	for _, name := range names {
		l := CurveLine{Group: name.group}
		for _, v := range values {
			l.Scenarios = append(l.Scenarios, groups[name][v])
		}
		c.Lines = append(c.Lines, l)
	}
	for _, v := range values {
		c.Values = append(c.Values, p.print(v))
	}
	return c
}

func (p property) metric(kind suite.Kind) sample.Metric {
	switch {
	case p.latency:
		return sample.LatencyP99
	case kind.Exchange():
		return sample.Transactions
	case kind == suite.UDPStream:
		return sample.DatagramsReceived
	}
	return sample.Throughput
}

// Scale returns the scale of the curve's figures.
func (c *Curve) Scale() quantity.Scale {
	scale, _ := ScaleOfRows(c.Rows(), c.Metric)
	return scale
}
