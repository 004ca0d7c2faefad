package report

import (
	"cmp"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/hosts"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// hypothesesRule says when a hypothesis holds.
const hypothesesRule = "A hypothesis claims a range for a ratio, a difference or a value. It holds if the 95 % interval of this figure lies within this range, is refuted if the interval lies outside, and is undecided otherwise. With several subjects it must hold for all, and their intervals are wider in proportion."

// Document returns the report as its readers see it: all sections, in their order.
func Document(r *model.Report) document.Document {
	d := document.Document{Title: cmp.Or(r.Run.Title, r.Run.ID), Lead: r.Run.Description, Lines: lines(r)}
	d.Add(
		document.Section{Title: "Findings", Sentences: r.Findings, Brief: sentences.Brief(r), Drawing: "findings"},
		document.Section{Drawing: "systems"},
		document.Section{Drawing: "first-panels"},
		document.Section{Title: "Conditions", Sentences: sentences.Conditions(r)},
		document.Section{Title: "What each system costs", Drawing: "cards", Short: "Costs"},
		document.Section{Title: "Validity", Sentences: sentences.Validity(r), Style: document.Faint, Short: "Validity", Sections: tables.Invalid(r)},
		document.Section{Title: "Hypotheses", Lead: hypothesesRule, Tables: tables.Hypotheses(r), Short: "Hypotheses"},
		document.Section{Title: "Step by step: what each layer adds", Sections: ladders(r), Drawing: "ladders", Short: "Steps"},
	)
	d.Add(Matrices(r)...)
	d.Add(
		document.Section{Drawing: "other-panels"},
		document.Section{Drawing: "cells"},
		document.Section{Title: "How the figures change with the traffic", Drawing: "curves", Short: "Curves"},
		document.Section{Title: "Cost against the baseline", Drawing: "ratios", Short: "Ratios"},
		tables.Prices(r),
		document.Section{Title: "Every trial", Drawing: "trials", Short: "Trials"},
		document.Section{Title: "Where the CPU time goes", Drawing: "profiles", Short: "CPU profiles"},
		document.Section{Title: "Over time", Drawing: "series", Short: "Time"},
		document.Section{Title: "The path of the packets", Drawing: "path", Short: "Path"},
		document.Section{Title: "All figures", Lead: r.Run.Description, Sections: figureTables(r), Drawing: "figures", Short: "Figures"},
		document.Section{Title: "Skipped and failed", Sentences: troubles(r), Style: document.Alarm},
		published.Section(r),
		document.Section{Title: "Notes", Sentences: r.Notes, Style: document.Faint, Short: "Notes"},
		document.Section{Title: "Environment", Terms: Facts(r), Reference: true, Sections: []document.Section{
			{Title: "Sysctls, offloads, other settings and mitigations", Terms: Settings(r), Reference: true},
		}},
		document.Section{Title: "Method", Terms: Method(r), Reference: true, Short: "Method"},
		document.Section{Title: "To repeat", Code: []document.Code{{Lines: Repeat(r)}}, Reference: true, Short: "Repeat"},
		document.Section{Title: "To repeat a test by hand", Lead: byHandHint, Code: ByHand(r), Reference: true},
	)
	return d
}

func ladders(r *model.Report) (list []document.Section) {
	for i := range r.Ladders {
		list = append(list, tables.LadderSection(&r.Ladders[i]))
	}
	return list
}

// figureTables returns the tables of the report, and then the tables of trials at other CPU distances. A terminal does
// not show the tables of a distance that has too few trials for intervals.
func figureTables(r *model.Report) []document.Section {
	list := tables.Sections(tables.Of(r))
	for i := range r.Elsewhere {
		list = append(list, document.Section{Title: r.Elsewhere[i].Title(), Sections: tables.Sections(tables.OfElsewhere(&r.Elsewhere[i])), Reference: r.Elsewhere[i].Few()})
	}
	return list
}

// troubles returns the reasons for missing figures.
func troubles(r *model.Report) []string {
	return lists.Map(rejected.Troubles(r), func(t rejected.Trouble) string { return t.String() })
}

// lines identifies the run: its ID, name, date and machine, the note, and the command.
func lines(r *model.Report) []string {
	e := &r.Run.Environment
	facts := phrase.Lines{r.Run.ID}
	facts.SayIf(r.Run.Name != "", "%s", r.Run.Name)
	facts.SayIf(!r.Run.Started.IsZero(), "%s", r.Run.Started.UTC().Format("2 January 2006"))
	facts.SayIf(e.CPUs > 0, "%s", phrase.Count(e.CPUs, "CPU"))
	facts.SayIf(e.CPUModel != "", "%s", e.CPUModel)
	facts.SayIf(r.Run.Short, "short form")
	facts.SayIf(e.Kernel != "", "Linux %s", e.Kernel)
	facts.SayIf(r.Run.Status != "", "%s", r.Run.Status)
	lines := phrase.Lines{strings.Join(facts, ", ")}
	lines.SayIf(r.Run.Note != "", "%s", r.Run.Note)
	lines.SayIf(r.Run.Suite != "", "%s", r.Run.Command())
	return lines
}

// Matrices lists the report's matrices: of datagrams, of TCP streams, and of
// request/response, each with a row for each group and a column for each part of the scenarios'
// IDs after "/". Request/response beside a load has one matrix for each percentile of the
// latency, and one of the load. A run in a cluster has one of control groups. A run between
// pairs of hosts has a matrix of hosts for each scenario.
func Matrices(r *model.Report) (list []document.Section) {
	for i := range r.HostMatrices {
		switch x := &r.HostMatrices[i]; {
		case x.Blocks == 0: // the notes have the reason
		case len(x.Hosts) > hosts.MostMatrixHosts:
			list = append(list, hosts.ByHost(x))
		default:
			list = append(list, hosts.Section(x))
		}
	}
	if r.HostMatrices != nil {
		return list
	}
	var datagrams, streams, exchanges []*model.Scenario
	loaded := false
	for i := range r.Scenarios {
		switch s := &r.Scenarios[i]; {
		case s.Workload.Kind.Exchange():
			exchanges = append(exchanges, s)
			loaded = loaded || s.Workload.Load > 0
		case s.Workload.Kind == suite.UDPStream:
			datagrams = append(datagrams, s)
		default:
			streams = append(streams, s)
		}
	}
	add := func(rows []*model.Scenario, metrics ...sample.Metric) {
		for _, m := range metrics {
			if x, ok := tables.Matrix(r, rows, m); ok {
				list = append(list, x)
			}
		}
	}
	add(datagrams, sample.DatagramsReceived)
	add(streams, sample.Throughput)
	if loaded {
		add(exchanges, sample.LatencyP50, sample.LatencyP99, sample.LatencyP999, sample.LoadThroughput)
	} else {
		add(exchanges, sample.Transactions)
	}
	if x, ok := tables.GroupMatrix(r); ok {
		list = append(list, x)
	}
	return list
}

// Explain explains the results of the run in plain sentences: the cost of each ladder
// step, the hypotheses, figures that are missing, and the number of trials that count.
// A run without ladders has the findings in place of the ladder steps.
func Explain(r *model.Report) document.Document {
	d := document.Document{Title: r.Run.Title + " (" + r.Run.ID + ")", Lines: []string{r.Run.Command()}}
	add := func(title string, sentences []string) { d.Add(document.Section{Title: title, Sentences: sentences}) }
	for i := range r.Ladders {
		add(tables.Titled("What it costs", r.Ladders[i].Title), sentences.Ladder(r, &r.Ladders[i]))
	}
	if len(r.Ladders) == 0 {
		add("What it costs", sentences.Costs(r))
	}
	add("Conditions", sentences.Conditions(r))
	add("Hypotheses", sentences.Hypotheses(r))
	add("Published figures", published.Findings(r))
	var unsaid phrase.Lines
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		unsaid.SayIf(r.HostMatrices == nil && (s.Skipped != "" || rejected.Unmeasured(s) != ""), "%s %s.", s.ID, rejected.Lacks(s))
	}
	add("What could not be said", append(unsaid, r.Doubts...))
	add("Validity", sentences.Validity(r))
	return d
}
