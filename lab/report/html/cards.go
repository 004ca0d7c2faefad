package html

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/lab/report"
	"windtunnel/lab/sample"
)

// card is one system's key figures beside its baseline.
type card struct {
	Paint paint
	Title string // "vxlan"
	Under string // "compared with raw"
	Lines []cardLine
}

// cardLine is one cost in percent.
type cardLine struct {
	Name  string // "throughput"
	Big   string // "−21.6 %", or "no difference"
	Small string // "[−22.1, −21.2]"
	Tone  string // "worse", "better", "none" or ""
}

// mostCards is how many a reader takes in.
const mostCards = 6

// cards makes one card for each pair of systems that the plan compares.
func (b *builder) cards() []card {
	var list []card
	index := make(map[[2]string]int)
	for i := range b.r.Comparisons {
		c := &b.r.Comparisons[i]
		name, ok := b.keyName(c)
		if !ok {
			continue
		}
		key := [2]string{group(c.Subject), group(c.Baseline)}
		if key[0] == key[1] {
			key = [2]string{c.Subject, c.Baseline}
		}
		at, known := index[key]
		if !known {
			at = len(list)
			index[key] = at
			list = append(list, card{Paint: b.paints[c.Subject], Title: key[0], Under: "compared with " + key[1]})
		}
		list[at].Lines = append(list[at].Lines, costLine(name, c))
	}
	return list[:min(len(list), mostCards)]
}

// keyName names the metric on a card; ok is false for those that a card leaves
// out, and for the CPU of endpoints that sit differently.
func (b *builder) keyName(c *report.Comparison) (string, bool) {
	subject, baseline := b.rows[c.Subject], b.rows[c.Baseline]
	if subject == nil || baseline == nil {
		return "", false
	}
	exchange := subject.Transactions != nil
	switch c.Metric {
	case sample.Throughput:
		return "throughput", !exchange
	case sample.Transactions:
		return "transactions", true
	case sample.LatencyP50:
		return "latency p50", true
	case sample.SenderCPUPerByte:
		return "sender CPU per byte", !exchange && subject.Placement == baseline.Placement
	case sample.ReceiverCPUPerByte:
		return "receiver CPU per byte", !exchange && subject.Placement == baseline.Placement
	}
	return "", false
}

func costLine(name string, c *report.Comparison) cardLine {
	line := cardLine{Name: name, Big: change(c.Ratio.Median), Small: bounds(c.Ratio)}
	info, _ := sample.Describe(c.Metric)
	switch {
	case c.Alike():
		line.Big, line.Tone = "no difference", "none"
	case !c.Distinct: // too few trials to tell dearer from cheaper
		line.Small = strings.TrimSpace(fmt.Sprintf("%s in %d trials", line.Small, c.Ratio.N))
		if c.Ratio.N == 1 {
			line.Small = "in 1 trial"
		}
	case (c.Ratio.Median-1)*float64(info.Better) < 0:
		line.Tone = "worse"
	case c.Ratio.Median != 1:
		line.Tone = "better"
	}
	return line
}

// change prints a ratio as the change that it is: 0.784 as "−21.6 %".
func change(ratio float64) string { return signed(100*(ratio-1)) + " %" }

func bounds(iv report.Interval) string {
	if iv.N < 2 {
		return ""
	}
	return fmt.Sprintf("[%s, %s]", signed(100*(iv.Low-1)), signed(100*(iv.High-1)))
}

// signed prints with a real minus and one decimal, none from 100 on.
func signed(v float64) string {
	decimals := 1
	if math.Abs(v) >= 99.95 {
		decimals = 0
	}
	text := fmt.Sprintf("%+.*f", decimals, v)
	if strings.Trim(text, "+-0.") == "" {
		return "0"
	}
	return strings.Replace(text, "-", "−", 1)
}

// group is the part of a scenario's id before "/".
func group(id string) string {
	g, _, _ := strings.Cut(id, "/")
	return g
}
