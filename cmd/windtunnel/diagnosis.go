package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/remote"
	"windtunnel/lab/tool"
	"windtunnel/suites"
)

// diagnosis is the result of `windtunnel doctor`. Its fields are those of the JSON
// output, which docs/operating.md documents. New fields may be added; fields are never
// renamed or removed.
type diagnosis struct {
	Version  string        `json:"version"` // of windtunnel
	Revision string        `json:"revision"`
	Facts    *probe.Facts  `json:"facts"`
	Layout   *layout       `json:"layout,omitempty"` // omitted if this machine has too few CPUs
	Distance string        `json:"cpu_distance"`     // for a person
	Tools    []foundTool   `json:"tools"`
	Systems  []foundSystem `json:"systems"`
	Suites   []foundSuite  `json:"suites"`
	Missing  []missing     `json:"missing"`      // missing programs and kernel features, each once
	Packages []string      `json:"apt_packages"` // Debian packages of the missing programs

	noLayout string // why there is no layout
}

// layout lists the CPUs of a testbed of two nodes.
type layout struct {
	Nodes  [][]int `json:"nodes"`
	Wire   []int   `json:"wire"`   // empty: the wire shares the sender's CPUs
	Engine []int   `json:"engine"` // empty: the engine shares the nodes' CPUs
}

// foundTool is a traffic tool and its programs.
type foundTool struct {
	Name     string          `json:"name"`
	Runs     bool            `json:"runs"`
	Programs []probe.Program `json:"programs"` // empty where the tool is built in
}

// foundSystem is a system under test.
type foundSystem struct {
	Name     string   `json:"name"`
	Describe string   `json:"description"`
	Runs     bool     `json:"runs"`
	Lacks    []string `json:"lacks"` // names of the missing programs and features
}

// foundSuite is a suite that is part of the program.
type foundSuite struct {
	Name      string            `json:"name"`
	Title     string            `json:"title"`
	Scenarios int               `json:"scenarios"`
	Skipped   map[string]string `json:"skipped"` // scenario → why it cannot run here
}

// missing is a kernel feature or a program that this machine lacks.
type missing struct {
	Name    string `json:"name"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy"`
	Package string `json:"apt_package,omitempty"` // Debian package with the program

	longs []string // texts with reason and remedy, as skipped scenarios have them
}

// diagnose finds out which tools, systems and suites can run on this machine.
func diagnose(f *probe.Facts, distance string) (*diagnosis, error) {
	d := &diagnosis{Version: version, Revision: revision, Facts: f, Distance: distance, Packages: []string{}, Missing: []missing{}}
	l, err := testbed.PlanCPUs(f.UsableCPUs(), 2)
	if err != nil {
		d.noLayout = err.Error()
	} else {
		d.Layout = &layout{l.Nodes, orEmpty(l.Wire), orEmpty(l.Engine)}
		if warning := backlogWarning(f, &l); warning != "" {
			f.Warnings = append(f.Warnings, warning)
		}
	}
	for _, x := range f.Features {
		if !x.Works {
			d.addMissing(missing{Name: x.Name, Reason: x.Reason, Remedy: x.Remedy, longs: []string{x.Reason + "; " + x.Remedy}})
		}
	}
	for _, t := range tool.Registry() {
		lacks := d.addMissingPrograms(t.Programs())
		d.Tools = append(d.Tools, foundTool{t.Name(), len(lacks) == 0, orEmpty(f.Programs(t.Programs()))})
	}
	for _, s := range system.Registry() {
		features, programs := s.Needs()
		lacks := d.addMissingPrograms(programs)
		for _, name := range features {
			if _, _, absent := f.Missing(name); absent {
				lacks = append(lacks, name)
			}
		}
		if s.About().InCluster {
			lacks = append(lacks, "a Kubernetes cluster (--testbed k8s)")
		}
		d.Systems = append(d.Systems, foundSystem{s.Name(), s.About().Description, len(lacks) == 0, orEmpty(lacks)})
	}
	d.addMissingPrograms(remote.Programs)
	for _, name := range suites.Names() {
		plan, err := loadPlan(name, suite.ExpandOptions{})
		if err != nil {
			return nil, err
		}
		d.Suites = append(d.Suites, foundSuite{name, plan.Title, len(plan.Scenarios), d.shortened(experiment.Skips(plan, executorHere(f), f))})
	}
	return d, nil
}

// orEmpty replaces nil by an empty list, so that the JSON has [] and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// addMissing adds a missing feature or program to the list. If the list has its name,
// addMissing only adds the texts.
func (d *diagnosis) addMissing(m missing) {
	if known := d.findMissing(m.Name); known != nil {
		known.longs = append(known.longs, m.longs...)
		return
	}
	if pkg := aptPackage(m.Remedy); pkg != "" {
		m.Package = pkg
		// Omit packages outside Debian's main component: if such a package is not
		// available, apt-get installs none of the others.
		if !strings.Contains(m.Remedy, "component") && !slices.Contains(d.Packages, pkg) {
			d.Packages = append(d.Packages, pkg)
			slices.Sort(d.Packages)
		}
	}
	d.Missing = append(d.Missing, m)
}

// findMissing returns the entry with this name in the list of missing features and
// programs; nil if there is none.
func (d *diagnosis) findMissing(name string) *missing {
	for i := range d.Missing {
		if d.Missing[i].Name == name {
			return &d.Missing[i]
		}
	}
	return nil
}

// addMissingPrograms adds the programs that this machine cannot run, and returns their
// names.
func (d *diagnosis) addMissingPrograms(programs []program.Program) (names []string) {
	for _, p := range programs {
		if long := d.Facts.Lacks(p); long != "" {
			reason, _, _ := strings.Cut(long, "; get it with: ")
			d.addMissing(missing{Name: p.Name, Reason: reason, Remedy: strings.TrimPrefix(p.Remedy(), "none; "), longs: []string{long}})
			names = append(names, p.Name)
		}
	}
	return names
}

// shortened replaces the reason and remedy of a missing feature by its name. The
// diagnosis prints both once, in a list of their own.
func (d *diagnosis) shortened(skips map[string]string) map[string]string {
	var pairs []string
	for _, m := range d.Missing {
		for _, long := range m.longs {
			pairs = append(pairs, long, lacksMark+m.Name)
		}
	}
	short := strings.NewReplacer(pairs...)
	for id, why := range skips {
		var lacks, others []string
		for part := range strings.SplitSeq(short.Replace(why), "; ") {
			if name, lack := strings.CutPrefix(part, lacksMark); lack {
				lacks = append(lacks, name)
			} else {
				others = append(others, part)
			}
		}
		if len(lacks) > 0 {
			slices.Sort(lacks)
			others = append(others, "lacks "+strings.Join(slices.Compact(lacks), ", "))
		}
		skips[id] = strings.Join(others, "; ")
	}
	return skips
}

// lacksMark is the text before the missing features in the reasons that shortened
// parses.
const lacksMark = "\x00"

var (
	aptCommand = regexp.MustCompile(`^apt-get install (?:--\S+ )*([a-z0-9][a-z0-9+.-]*)`)
	aptName    = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]*)(?: \(|;|,|$)`)
)

// aptPackage is the Debian package in a remedy; empty where apt has none.
func aptPackage(remedy string) string {
	for _, form := range []*regexp.Regexp{aptCommand, aptName} {
		if m := form.FindStringSubmatch(remedy); m != nil {
			return m[1]
		}
	}
	return ""
}

// explained returns a remedy without its apt command, which the last line of the
// diagnosis has. It is empty if the remedy is only that command.
func (m missing) explained() string {
	if m.Package == "" {
		return m.Remedy
	}
	_, rest, _ := strings.Cut(m.Remedy, m.Package)
	if rest == "" {
		return ""
	}
	return fmt.Sprintf("package %s%s", m.Package, rest)
}
