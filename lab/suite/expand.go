package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Vocabulary has the valid names of systems and tools. A nil list accepts every name.
type Vocabulary struct {
	Systems []string
	Tools   []string
	MTUs    map[string]int // by system: the smallest MTU of a fabric on which the system works
}

// ExpandOptions override settings of a suite file. The zero value changes nothing.
type ExpandOptions struct {
	Vocabulary Vocabulary
	// Scenarios selects scenarios: each entry is an ID, a group (the part before
	// "/"), or a pattern of path.Match. Comparisons, ladders, hypotheses and
	// published figures of other scenarios are dropped.
	Scenarios []string
	// Tool replaces the tool of every scenario.
	Tool string
	// Duration replaces the measured duration of every scenario.
	Duration time.Duration
	// Short selects the suite's short form. The other options override the short form.
	Short bool
	// Trials replaces the number of trials. If the suite has a precision, it replaces
	// the minimum number.
	Trials int
	// Precision replaces or sets the suite's precision: the relative half-width of
	// intervals, 0.001 to 0.5.
	Precision float64
	// MaxTrials and MaxTime replace the limits of a run with a precision.
	MaxTrials int
	MaxTime   time.Duration
}

// Expand returns the suite's plan. If the file has a mistake, such as a system that
// opts.Vocabulary does not have, the error is an Errors. Otherwise the error names the
// wrong option.
func (s *Suite) Expand(opts ExpandOptions) (*Plan, error) {
	if err := opts.check(s.Name); err != nil {
		return nil, err
	}
	if err := opts.checkShort(&s.spec); err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	opts = opts.withShortForm(&s.spec)
	if err := opts.checkStop(&s.spec); err != nil {
		return nil, fmt.Errorf("suite %s: %w", s.Name, err)
	}
	j := &journal{file: s.file, lines: s.lines}
	plan := expand(j, &s.spec, opts, checkVocabulary(j, &s.spec, opts))
	if err := j.result(); err != nil {
		return nil, err
	}
	if opts.Short {
		if err := plan.keepShort(&s.spec); err != nil {
			return nil, err
		}
	}
	whole := len(plan.Scenarios)
	if err := plan.keep(opts.Scenarios); err != nil {
		return nil, err
	}
	if len(plan.Scenarios) < whole {
		plan.Title += " (only " + strings.Join(opts.Scenarios, ", ") + ")"
	}
	return plan, nil
}

func (o ExpandOptions) check(suite string) error {
	if o.Duration != 0 && (o.Duration < leastDuration || o.Duration > mostDuration) {
		return fmt.Errorf("suite %s: --duration %v is out of bounds: choose %v to %v", suite, o.Duration, leastDuration, mostDuration)
	}
	if o.Trials < 0 || o.Trials > mostTrials {
		return fmt.Errorf("suite %s: --trials %d is out of bounds: choose 1 to %d", suite, o.Trials, mostTrials)
	}
	if known := o.Vocabulary.Tools; o.Tool != "" && known != nil && !slices.Contains(known, o.Tool) {
		return fmt.Errorf("suite %s: --tool %s: there is no tool of this name; %s", suite, clip(o.Tool), Suggest(o.Tool, "tools", known))
	}
	return nil
}

// checkSystems adds an error for each unknown system, and reports whether all
// are known.
func checkSystems(j *journal, s *spec, known []string) bool {
	good := true
	for _, e := range s.scenarios.V {
		if e.V.encap.Set && known != nil && !checkFamilies(j, e.V.system.V, known) {
			good = false
			continue
		}
		for _, n := range e.V.systems() {
			good = checkName(j, "system", n, known) && good
		}
	}
	return good
}

// checkFamilies adds an error for each system that no known system has before an
// encapsulation, and reports whether all have one.
func checkFamilies(j *journal, systems []at[string], known []string) bool {
	var families []string
	for _, k := range known {
		if family, _, found := strings.Cut(k, "-"); found && !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	good := true
	for _, n := range systems {
		if n.V != "" && !slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, n.V+"-") }) {
			j.fail(n.Pos, fmt.Sprintf("there is no system %q with encapsulations", n.V), Suggest(n.V, "systems with encapsulations", families))
			good = false
		}
	}
	return good
}

// checkName adds an error for a name that is not in known. If known is nil,
// every name is valid. The name is "" if the parser has reported it.
func checkName(j *journal, what string, a at[string], known []string) bool {
	if known == nil || a.V == "" || slices.Contains(known, a.V) {
		return true
	}
	j.fail(a.Pos, fmt.Sprintf("there is no %s %q", what, a.V), Suggest(a.V, what+"s", known))
	return false
}

// checkVocabulary adds an error for each unknown system and tool, and reports whether all
// systems are known.
func checkVocabulary(j *journal, s *spec, opts ExpandOptions) bool {
	tools := opts.Vocabulary.Tools
	if s.tool.Set && opts.Tool == "" {
		checkName(j, "tool", s.tool, tools)
	}
	if s.short.V.tool.Set {
		checkName(j, "tool", s.short.V.tool, tools)
	}
	for _, e := range s.scenarios.V {
		for _, n := range e.V.tool.V {
			if opts.Tool == "" {
				checkName(j, "tool", n, tools)
			}
		}
	}
	return checkSystems(j, s, opts.Vocabulary.Systems)
}

// expand makes the plan of s and adds all errors to j. After an error the plan is not
// usable. systems reports whether all systems are known.
func expand(j *journal, s *spec, opts ExpandOptions, systems bool) *Plan {
	p := &Plan{Suite: s.name.V, Title: s.title.V, Description: s.description.V, Nodes: s.nodes.V, Short: opts.Short}
	if p.Title == "" {
		p.Title = p.Suite
	}
	p.Trials, p.Stop = stopOf(s, opts)
	for _, n := range s.notes.V {
		p.Notes = append(p.Notes, n.V)
	}
	x := expansion{j: j, s: s, opts: opts, plan: p, defined: map[string]position{}}
	x.partial = opts.Tool != "" || !systems || len(s.scenarios.V) == 0
	for _, e := range s.scenarios.V {
		if e.V.faulty {
			x.partial = true
		} else if !x.scenario(e) {
			return p
		}
	}
	x.groups()
	x.comparisons()
	x.ladders()
	x.hypotheses()
	x.tables()
	x.published()
	x.causes()
	if !x.partial {
		x.short()
	}
	return p
}

// expansion is the state of expand.
type expansion struct {
	j       *journal
	s       *spec
	opts    ExpandOptions
	plan    *Plan
	defined map[string]position // scenario ID → position of the entry that makes it
	// partial reports that the plan may lack scenarios, because the tool is replaced, or
	// because of mistakes that are reported. Then a reference to a missing scenario is not
	// an error.
	partial bool
}

// systems returns the systems of an entry, combined with each of its encapsulations. A
// result has the position of its encapsulation.
func (s scenarioSpec) systems() []at[string] {
	if !s.encap.Set {
		return s.system.V
	}
	var all []at[string]
	for _, system := range s.system.V {
		for _, encap := range s.encap.V {
			if system.V != "" && encap.V != "" { // else unreadable
				encap.V = system.V + "-" + encap.V
				all = append(all, encap)
			}
		}
	}
	return all
}

// cell is one combination of an entry's lists.
type cell struct {
	system, tool string
	placement    Placement
	workload     named[workloadSpec]
	fabric       named[fabricSpec]
	endpoint     named[endpointSpec]
}

// scenario adds all combinations (cells) of one entry. It returns false if the suite
// has too many scenarios.
func (x *expansion) scenario(e at[scenarioSpec]) bool {
	systems := valuesOf(e.V.systems(), "")
	placements := valuesOf(e.V.placement.V, TwoNodes)
	tools := valuesOf(e.V.tool.V, x.s.tool.V)
	if x.opts.Tool != "" {
		tools = []string{x.opts.Tool}
	}
	workloads := pick(e.V.workload.V, x.s.workloads.V)
	fabrics := orDefault(pick(e.V.fabric.V, x.s.fabrics.V), defaultFabric, fabricKeys)
	endpoints := orDefault(pick(e.V.endpoint.V, x.s.endpoints.V), defaultEndpoint, endpointKeys)
	if len(x.plan.Scenarios)+len(systems)*len(placements)*len(tools)*len(workloads)*len(fabrics)*len(endpoints) > mostScenarios {
		x.j.fail(e.Pos, fmt.Sprintf("the suite expands into more than %d scenarios", mostScenarios), "shorten the lists, or split the suite")
		return false
	}
	for _, fabric := range fabrics {
		x.checkMTU(e, systems, fabric)
	}
	for _, system := range systems {
		for _, placement := range placements {
			for _, workload := range workloads {
				for _, fabric := range fabrics {
					for _, endpoint := range endpoints {
						for _, tool := range tools {
							x.add(e, cell{system, tool, placement, workload, fabric, endpoint})
						}
					}
				}
			}
		}
	}
	return true
}

func (x *expansion) add(e at[scenarioSpec], c cell) {
	sc := Scenario{
		System: c.system, Placement: c.placement, Pairs: e.V.pairs.V, Tool: c.tool, Workload: workloadOf(c.workload),
	}
	sc.Fabric, sc.OffloadSet = fabricOf(c.fabric, sc.Workload), c.fabric.value.keys.has("offload")
	if len(x.s.endpoints.V) > 0 {
		sc.Endpoint = endpointOf(c.endpoint)
	}
	sc.Timing = timingOver(Timing{defaultWarmup, defaultDuration, defaultCooldown}, x.s.timing, c.workload.value.timing, e.V.timing)
	if x.opts.Short {
		sc.Timing = timingOver(sc.Timing, x.s.short.V.timing)
	}
	if x.opts.Duration > 0 {
		sc.Timing.Duration = x.opts.Duration
	}
	sc.ID = x.id(e, c)
	malformed := e.V.id.Set && e.V.id.V == "" // the parser has reported it
	if _, problem, _ := ref.parse(sc.ID); problem != "" && !malformed {
		x.j.fail(or(e.V.id.Pos, e.Pos), fmt.Sprintf("%q cannot be an id", clip(sc.ID)), `use letters, digits, ".", "_" and "-"; let it start with a letter or digit, and have at most one "/" and 200 characters before and behind it`)
	}
	sc.Title = x.title(e, c, sc)
	x.checkCell(e, c)
	if first, taken := x.defined[sc.ID]; taken && !malformed {
		x.duplicate(e, sc.ID, first)
		return
	}
	x.defined[sc.ID] = e.Pos
	x.plan.Scenarios = append(x.plan.Scenarios, sc)
}

func (x *expansion) duplicate(e at[scenarioSpec], id string, first position) {
	pos := e.Pos
	if e.V.id.Set {
		pos = e.V.id.Pos
	}
	if x.opts.Tool != "" {
		x.j.fail(pos, fmt.Sprintf("with tool %s two scenarios have the id %q", x.opts.Tool, id), "select scenarios with --scenario, and omit --tool")
		return
	}
	remedy := fmt.Sprintf(`give one of them another id, such as "%s-2"`, id)
	if first == e.Pos {
		remedy = "put every part that is a list into the id: {" + strings.Join(x.partsWithLists(e), "}, {") + "}"
	}
	x.j.fail(pos, fmt.Sprintf("two scenarios have the id %q, the first from line %d", id, first.line), remedy)
}

// partsWithLists returns the names of an entry's parts that have several values.
func (x *expansion) partsWithLists(e at[scenarioSpec]) []string {
	counts := []int{len(e.V.systems()), len(e.V.placement.V), len(e.V.workload.V), len(e.V.fabric.V), len(e.V.endpoint.V), len(e.V.tool.V)}
	var out []string
	for i, n := range counts {
		if n > 1 {
			out = append(out, parts[i])
		}
	}
	return out
}

// checkCell reports errors in the combination of a cell's parts.
func (x *expansion) checkCell(e at[scenarioSpec], c cell) {
	if x.plan.Nodes == 1 && c.placement != Colocated {
		x.j.fail(or(e.V.placement.Pos, e.Pos), "the scenario needs two nodes, the suite has 1", `set "nodes: 2", or "placement: colocated"`)
	}
	for _, key := range []string{"loss", "of_capacity"} {
		if c.workload.value.keys.has(key) && e.V.pairs.V > 1 {
			x.j.fail(or(e.V.pairs.Pos, e.Pos), fmt.Sprintf("workload %q searches for its rate, but several pairs would disturb each other's search", c.workload.name), "remove pairs and set streams in the workload, or remove "+key)
		}
	}
	if c.endpoint.value.HostVNIC && (e.V.pairs.V < 2 || c.placement != TwoNodes) {
		x.j.fail(or(c.endpoint.value.keys["host_vnic"], e.Pos), fmt.Sprintf("the host's virtual NIC of endpoint %q needs other pairs beside it, on two nodes", c.endpoint.name), "set pairs: 2 or more and placement: two-nodes in the scenario, or remove host_vnic")
	}
	if c.fabric.value.MTU > 0 { // else unreadable; already reported
		x.checkPacket(e, c)
	}
}

// checkMTU reports an error if a fabric's MTU is too small for a system. The error names the system that needs the
// largest MTU.
func (x *expansion) checkMTU(e at[scenarioSpec], systems []string, f named[fabricSpec]) {
	least := x.opts.Vocabulary.MTUs
	most := slices.MaxFunc(systems, func(a, b string) int { return cmp.Compare(least[a], least[b]) })
	if mtu := f.value.MTU; mtu > 0 && mtu < least[most] {
		x.j.fail(or(f.value.keys["mtu"], e.Pos), fmt.Sprintf("an MTU of %d is too small for the headers of %s: IPv6 needs %d bytes inside them", mtu, most, LeastMTU),
			fmt.Sprintf("set mtu to %d or more, or remove %s from the scenario", least[most], most))
	}
}

// checkPacket reports a workload whose buffers must be packets and do not fit one.
func (x *expansion) checkPacket(e at[scenarioSpec], c cell) {
	w := workloadOf(c.workload)
	headers := 20 + 32 // IPv4, and TCP with timestamps
	if w.IPVersion == 6 {
		headers += 20
	}
	if most := c.fabric.value.MTU - headers; w.PacketPerSend && w.Buffer > int64(most) {
		x.j.fail(or(c.workload.value.keys["buffer"], e.Pos), fmt.Sprintf("a buffer of %d bytes does not fit a packet of fabric %q, as packet_per_send of workload %q needs", w.Buffer, c.fabric.name, c.workload.name),
			fmt.Sprintf("set buffer to %d or less (a tunnel takes more), a larger mtu, or packet_per_send: false", most))
	}
}

// id returns the id of a cell. It fills the template of the entry. Without a template
// the id is "system/workload" and all other parts that have several values.
func (x *expansion) id(e at[scenarioSpec], c cell) string {
	if e.V.id.Set {
		return c.fill(e.V.id.V)
	}
	id := c.system
	if c.placement != TwoNodes {
		id += "-" + string(c.placement)
	}
	id += "/" + c.workload.name
	if len(e.V.fabric.V) > 1 {
		id += "-" + c.fabric.name
	}
	if len(e.V.endpoint.V) > 1 {
		id += "-" + c.endpoint.name
	}
	if len(e.V.tool.V) > 1 {
		id += "-" + c.tool
	}
	return id
}

func (x *expansion) title(e at[scenarioSpec], c cell, sc Scenario) string {
	if e.V.title.Set {
		return c.fill(e.V.title.V)
	}
	t := c.system
	switch c.placement {
	case Colocated:
		t += " on one node"
	case Gateway:
		t += " to a host outside"
	}
	t += ": " + sc.Workload.String()
	if len(e.V.fabric.V) > 1 {
		t += ", fabric " + c.fabric.name
	}
	if len(e.V.endpoint.V) > 1 {
		t += ", endpoint " + c.endpoint.name
	}
	if len(e.V.tool.V) > 1 {
		t += ", by " + c.tool
	}
	return t
}

// fill replaces the placeholders in text by the parts of c.
func (c cell) fill(text string) string {
	return strings.NewReplacer("{system}", c.system, "{placement}", string(c.placement),
		"{workload}", c.workload.name, "{fabric}", c.fabric.name, "{endpoint}", c.endpoint.name, "{tool}", c.tool).Replace(text)
}

// Group is the part of a scenario's id before "/".
func Group(id string) string {
	group, _, _ := strings.Cut(id, "/")
	return group
}

// Part is the part of a scenario's id after "/".
func Part(id string) string {
	_, part, _ := strings.Cut(id, "/")
	return part
}

// groups reports IDs that are equal to the name of a group.
func (x *expansion) groups() {
	for _, sc := range x.plan.Scenarios {
		g, rest := Group(sc.ID), Part(sc.ID)
		if pos, taken := x.defined[g]; taken && rest != "" {
			x.j.fail(pos, fmt.Sprintf("%q is a scenario and also the group of %q", g, sc.ID), "give the scenario an id with a part after a \"/\", such as "+fmt.Sprintf("%q", g+"/"+sc.Workload.Name))
		}
	}
}
