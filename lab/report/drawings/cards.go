package drawings

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// card compares the key figures of one system, or of one scenario, with a baseline.
type card struct {
	Paint document.Paint
	Title string // "vxlan"
	Under string // "against raw"
	Parts []cardPart
}

// cardPart has the costs of one workload.
type cardPart struct {
	Name  string // "stream"; empty if the card has only one part
	Lines []cardLine
}

// cardLine is one cost in percent.
type cardLine struct {
	Name  string        // "throughput"
	Big   string        // "−21.6 %", or "no difference"
	Small string        // "[−22.1, −21.2]"
	Tone  string        // "worse", "better", "none" or ""
	Mark  document.Mark // verdict of the comparison
	noisy bool          // the verdict is TooNoisy: the line is last
}

// mostCards is the largest number of cards. More do not fit on a screen.
const mostCards = 6

// cards makes one card for each pair of systems that the plan compares, and for
// each pair of scenarios that differ in more than the system.
func (b *builder) cards() []card {
	var list []card
	index := make(map[[2]string]int)
	for i := range b.r.Comparisons {
		c := &b.r.Comparisons[i]
		name, ok := b.keyName(c)
		if !ok {
			continue
		}
		subject, baseline, _ := model.Names(c.Subject, c.Baseline)
		key := [2]string{subject, baseline}
		at, known := index[key]
		if !known {
			at = len(list)
			index[key] = at
			list = append(list, card{Paint: b.paints[c.Subject], Title: key[0], Under: "against " + key[1]})
		}
		list[at].add(suite.Part(c.Subject), costLine(name, c))
	}
	list = list[:min(len(list), mostCards)]
	for i := range list {
		for _, part := range list[i].Parts {
			slices.SortStableFunc(part.Lines, func(a, b cardLine) int { return model.After(a.noisy, b.noisy) })
		}
		if parts := list[i].Parts; len(parts) == 1 {
			parts[0].Name = ""
		}
	}
	return list
}

// add adds a line to the part of the workload. It makes the part if necessary.
func (c *card) add(workload string, line cardLine) {
	i := slices.IndexFunc(c.Parts, func(p cardPart) bool { return p.Name == workload })
	if i < 0 {
		i = len(c.Parts)
		c.Parts = append(c.Parts, cardPart{Name: workload})
	}
	c.Parts[i].Lines = append(c.Parts[i].Lines, line)
}

// keyName returns the name of the comparison's metric on a card. ok is false for metrics
// that cards omit.
func (b *builder) keyName(c *model.Comparison) (name string, ok bool) {
	subject := b.r.Row(c.Subject)
	if subject == nil || b.r.Row(c.Baseline) == nil {
		return "", false
	}
	name = map[sample.Metric]string{
		sample.Throughput: "throughput", sample.Transactions: "transactions", sample.LatencyP50: "latency p50",
		sample.SenderCPUPerByte: "sender CPU per byte", sample.ReceiverCPUPerByte: "receiver CPU per byte",
	}[c.Metric]
	ok = c.Metric == sample.Transactions || c.Metric == sample.LatencyP50 || subject.Transactions == nil
	return name, ok && name != ""
}

func costLine(name string, c *model.Comparison) cardLine {
	v := c.Verdict
	line := cardLine{Name: name, Big: change(c.Ratio.Median), Small: bounds(c.Ratio), Mark: markOfComparison(c), noisy: v == model.TooNoisy}
	line.Tone = tables.Tone(c.Metric, v, c.Ratio.Median-1)
	switch v {
	case model.TooNoisy:
		line.Big, line.Tone, line.Mark = "too noisy to judge", "none", document.Mark{}
	case model.Alike:
		line.Big, line.Tone = "no difference", "none"
		line.Mark = document.Mark{} // Big already says "no difference"
		if d := c.Detectable; d != nil && *d > 0 {
			line.Mark = document.Mark{Sign: verdicts.Marks[v], Word: "detectable: " + quantity.Percentage(*d), Class: "alike"}
		}
	case model.TooFew:
		line.Small = strings.TrimSpace(fmt.Sprintf("%s in %d trials", line.Small, c.Ratio.N))
		if c.Ratio.N == 1 {
			line.Small = "in 1 trial"
		}
	}
	return line
}

func change(ratio float64) string { return quantity.Change(ratio, 99.95) }

func bounds(iv quantity.Interval) string {
	if iv.N < 2 {
		return ""
	}
	return strings.ReplaceAll("["+change(iv.Low)+", "+change(iv.High)+"]", " %", "")
}
