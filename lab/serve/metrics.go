package serve

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"windtunnel/lab/report/compare"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// metrics reads the store on each scrape. Figures are those of the newest complete run of
// each suite and form (see sample.Form), in the unit that the metric's name ends in.
type metrics struct {
	site *Site
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("windtunnel_"+name, help, labels, nil)
}

// The metrics.
var (
	runCount    = gauge("runs", "Stored runs, by suite and status.", "suite", "status")
	runSamples  = gauge("running_samples", "Stored samples of a run in progress.", "suite", "testbed", "flags", "run", "name")
	newestInfo  = gauge("newest_run_info", "The newest complete run of a suite with a testbed and flags.", "suite", "testbed", "flags", "run", "name", "machine")
	newestStart = gauge("newest_run_start_timestamp_seconds", "Start of the newest complete run, Unix time.", "suite", "testbed", "flags")
	newestLost  = gauge("newest_run_failed_samples", "Samples without figures in the newest complete run.", "suite", "testbed", "flags")
	figure      = gauge("figure", "Median of a scenario in the newest complete run, in the unit of the metric.", "suite", "testbed", "flags", "scenario", "metric")
	figureLow   = gauge("figure_low", "Lower bound of the 95 % interval of windtunnel_figure.", "suite", "testbed", "flags", "scenario", "metric")
	figureHigh  = gauge("figure_high", "Upper bound of the 95 % interval of windtunnel_figure.", "suite", "testbed", "flags", "scenario", "metric")
	scrapeWorks = gauge("scrape_ok", "1 if this scrape could read all runs.")
)

// maxScrapes is the maximum number of concurrent scrapes.
const maxScrapes = 2

// metricsHandler serves the metrics in Prometheus' formats.
func (s *Site) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{s})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: s.options.Log, MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true})
}

func (s *Site) metricsPage(w http.ResponseWriter, r *http.Request) error {
	s.metrics.ServeHTTP(w, r)
	return nil
}

// Describe implements prometheus.Collector.
func (m metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runCount, runSamples, newestInfo, newestStart, newestLost, figure, figureLow, figureHigh, scrapeWorks} {
		out <- d
	}
}

// Collect implements prometheus.Collector. If a run cannot be read, it still sends the
// metrics of the others.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	add := func(d *prometheus.Desc, v float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "�") // else the whole scrape fails
		}
		made, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
		if err != nil {
			made = prometheus.NewInvalidMetric(d, err)
		}
		out <- made
	}
	works := 1.0
	defer func() { add(scrapeWorks, works) }()
	list, err := m.site.options.Store.Runs()
	if err != nil {
		m.site.options.Log.Printf("metrics: %v", err)
		works = 0
		return
	}
	counts := make(map[[2]string]int)
	seen := make(map[series]bool)
	for _, r := range list {
		counts[[2]string{r.Suite, string(r.Status)}]++
		if r.Status == sample.Running {
			add(runSamples, float64(r.Samples), r.Suite, r.Testbed, r.Flags, r.ID, r.Name)
		}
		if r.Status != sample.Complete || seen[seriesOf(r)] {
			continue
		}
		seen[seriesOf(r)] = true
		add(newestInfo, 1, r.Suite, r.Testbed, r.Flags, r.ID, r.Name, r.Machine)
		add(newestStart, float64(r.Started.UnixMilli())/1000, r.Suite, r.Testbed, r.Flags)
		add(newestLost, float64(r.Failures), r.Suite, r.Testbed, r.Flags)
		figures, err := m.figures(r)
		if err != nil {
			m.site.options.Log.Printf("metrics: %v", err)
			works = 0
			continue
		}
		for _, f := range figures {
			add(figure, f.Median, r.Suite, r.Testbed, r.Flags, f.scenario, f.metric)
			add(figureLow, f.Low, r.Suite, r.Testbed, r.Flags, f.scenario, f.metric)
			add(figureHigh, f.High, r.Suite, r.Testbed, r.Flags, f.scenario, f.metric)
		}
	}
	for key, n := range counts {
		add(runCount, float64(n), key[0], key[1])
	}
}

// series identifies runs that repeat one measurement: /metrics shows the newest run of each series.
type series struct{ suite, testbed, flags string }

func seriesOf(r results.RunSummary) series { return series{r.Suite, r.Testbed, r.Flags} }

// measured is one figure of a scenario.
type measured struct {
	scenario, metric string
	quantity.Interval
}

// scrapeTime is the longest time that a scrape waits until it may read a run.
const scrapeTime = 30 * time.Second

// figures returns the headline figures of a complete run.
func (m metrics) figures(r results.RunSummary) ([]measured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	state := fmt.Sprintf("%s %d %d", r.ID, r.Finished.UnixNano(), r.Samples)
	return newest(ctx, m.site, m.site.figures, fmt.Sprintf("%q", seriesOf(r)), state, func() ([]measured, error) {
		report, err := m.site.build(r.ID)
		if err != nil {
			return nil, err
		}
		return headline(report), nil
	})
}

func headline(r *model.Report) []measured {
	list := []measured{}
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		for _, name := range compare.Headline {
			if iv := sc.Interval(name); iv != nil {
				list = append(list, measured{sc.ID, string(name), *iv})
			}
		}
	}
	return list
}
