package folded

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"windtunnel/internal/must"
)

// sample is 2 s of two CPUs, in which 1.5 s were busy, half a second of it with
// the wire.
func sample() *Profile {
	return &Profile{
		Node: "a", Side: "sender", CPUs: []int{0, 1}, Seconds: 2, Rate: 1000, Clock: "cpu-clock", Samples: 4000, Lost: 3, Throttled: 1,
		Warnings: []string{"a warning"},
		Stacks: []Stack{
			{Comm: "gen", Frames: []string{"main", "send_[k]", "tcp_sendmsg_[k]"}, Category: "TCP", Count: 600, Nanos: 600e6},
			{Comm: "gen", Frames: []string{"main", "send_[k]"}, Category: "syscall and copy", Count: 300, Nanos: 300e6},
			{Comm: "gen", Frames: []string{"main"}, Category: Generator, Count: 100, Nanos: 100e6},
			{Comm: "gen", Frames: []string{"main", "send_[k]", "veth_xmit_[k]"}, Category: Wire, Count: 500, Nanos: 500e6},
			{Comm: "idle", Frames: []string{"do_idle_[k]"}, Category: Idle, Count: 2500, Nanos: 2500e6},
		},
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

func TestCategoriesWithoutIdleAndTheWireAddUpToTheBusyTime(t *testing.T) {
	p := sample()
	s := Sum(p)
	near(t, "busy", s.Busy, 0.5)
	near(t, "wire", s.Wire, 0.25)
	near(t, "idle", s.Idle, 1.25)
	rows := Categories(p)
	var names []string
	cores, percent := 0.0, 0.0
	for _, r := range rows {
		names = append(names, r.Name)
		if r.Name != Idle && r.Name != Wire {
			cores += r.Cores
			percent += r.Percent
		}
	}
	near(t, "sum of cores", cores, 0.5)
	near(t, "sum of percent", percent, 100)
	must.Equal(t, []string{"TCP", "syscall and copy", Generator, Wire, Idle}, names)
	must.Equal(t, 600, rows[0].Samples)
}

func TestAnEmptyProfileHasNoFigures(t *testing.T) {
	p := &Profile{}
	if s := Sum(p); s != (Totals{}) {
		t.Errorf("the sum of an empty profile is %+v, want zero", s)
	}
	if rows := Categories(p); len(rows) != 0 {
		t.Errorf("the categories of an empty profile are %+v, want none", rows)
	}
	p.Stacks = sample().Stacks // without a length there are no cores, and no division by zero
	for _, r := range Categories(p) {
		if r.Cores != 0 || r.Percent != 0 {
			t.Errorf("the category is %+v, want no CPU time", r)
		}
	}
	if f := Flame(p); f.Value != 0 || len(f.Children) != 0 {
		t.Errorf("the flame graph of an empty profile is %+v, want no frame", f)
	}
}

func TestStacksWithoutTimesGetThePeriodsOfTheirSamples(t *testing.T) {
	p := sample()
	for i := range p.Stacks {
		p.Stacks[i].Nanos = 0
	}
	near(t, "busy", Sum(p).Busy, 0.5)
}

func TestFoldedTextIsParsedUnchanged(t *testing.T) {
	p := sample()
	p.Stacks[0].Frames[0] = "go.shape.struct { a int; b int }"
	stacks := must.Get(parseFolded(p.Folded()))(t)
	if len(stacks) != len(p.Stacks) {
		t.Fatalf("%d stacks, want %d", len(stacks), len(p.Stacks))
	}
	for i, s := range stacks {
		want := p.Stacks[i]
		want.Category, want.Nanos = "", 0
		if i == 0 {
			want.Frames[0] = "go.shape.struct { a int: b int }"
		}
		must.Equal(t, want, s)
	}
	if !strings.Contains(p.Folded(), "gen;main;send_[k] 300\n") {
		t.Errorf("text: %s", p.Folded())
	}
	for text, want := range map[string]string{"a;b 1\nc": "line 2", "a;b x": `"x" is not a number`, "a;b -1": "not a number"} {
		_, err := parseFolded(text)
		must.Fail(t, err, want)
	}
}

func TestThePprofFileHasTheSameTime(t *testing.T) {
	var b bytes.Buffer
	must.Succeed(t, PProf(sample()).Write(&b))
	p := must.Get(profile.Parse(&b))(t)
	must.Succeed(t, p.CheckValid())
	samples, nanos := int64(0), int64(0)
	for _, s := range p.Sample {
		samples, nanos = samples+s.Value[0], nanos+s.Value[1]
		if s.Label["side"][0] != "sender" || s.Label["category"][0] == Idle {
			t.Errorf("labels %v", s.Label)
		}
	}
	if samples != 1500 || nanos != 1500e6 || p.Period != 1e6 || p.DurationNanos != 2e9 {
		t.Errorf("%d samples, %d ns, period %d, duration %d", samples, nanos, p.Period, p.DurationNanos)
	}
	leaf := p.Sample[0].Location[0].Line[0].Function.Name
	must.Equal(t, "tcp_sendmsg", leaf)
}

func find(n *FlameNode, path ...string) *FlameNode {
	for _, name := range path {
		var next *FlameNode
		for _, c := range n.Children {
			if c.Name == name {
				next = c
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

func TestAFlameGraphsBoxesContainTheirChildren(t *testing.T) {
	f := Flame(sample())
	near(t, "all", f.Value, 0.75)
	if f.Name != "sender" || f.Samples != 1500 {
		t.Errorf("root %q with %d samples", f.Name, f.Samples)
	}
	send := find(f, "gen", "main", "send_[k]")
	if send == nil {
		t.Fatal("send is missing")
	}
	near(t, "send", send.Value, 0.7)
	if send.Category != "TCP" { // 600 of 1400
		t.Errorf("send is mostly %q", send.Category)
	}
	if find(f, "idle") != nil {
		t.Error("idle time is in the graph")
	}
}

func TestMergedProfilesAreAveragesByTime(t *testing.T) {
	m, err := Merge(sample(), sample(), sample())
	must.Succeed(t, err)
	if m.Seconds != 6 || m.Samples != 12000 || m.Lost != 9 || len(m.Stacks) != 5 || len(m.Warnings) != 1 {
		t.Errorf("the merged profile is %+v, want 6 s, 12000 samples, 9 lost, 5 stacks and 1 warning", m)
	}
	near(t, "busy", Sum(m).Busy, 0.5)
	other := sample()
	other.Side = "receiver"
	_, err = Merge(sample(), other)
	must.Fail(t, err, "number 2 (receiver")
	if _, err := Merge(); err == nil {
		t.Error("nothing was merged")
	}
}
