package document

// Charts is the data that the script of a run's page draws, in SI units.
type Charts struct {
	Panels []Panel  `json:"panels"`
	Ratios []Ratios `json:"ratios"`
	Series []Series `json:"series"`
	// Older runs have no data for these fields; they are omitted then.
	Ladders []Ladder    `json:"ladders,omitempty"`
	Curves  []Curve     `json:"curves,omitempty"`
	Trials  *Strips     `json:"trials,omitempty"`
	Cells   []CellChart `json:"cells,omitempty"`
}

// Panel is one chart of bars, or of latency percentiles, by scenario.
type Panel struct {
	ID     string     `json:"id"`
	Kind   string     `json:"kind"` // bars or latency
	Title  string     `json:"title"`
	Unit   string     `json:"unit"`
	By     float64    `json:"by"`            // factor from Unit to the SI unit
	Max    float64    `json:"max,omitempty"` // end of the axis, in Unit; 0: choose it from the data
	Beside bool       `json:"beside"`        // the panel to the left has the labels of the rows
	Rows   []PanelRow `json:"rows"`
	Sides  []string   `json:"sides"`
	Alt    string     `json:"-"`
}

// PanelRow is one scenario of a panel.
type PanelRow struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Paint
	Absent string `json:"absent,omitempty"` // the reason why the row has no bars
	Bars   []*Bar `json:"bars"`             // one for each side, nil if not measured
}

// Bar is a median with its interval and the values of all trials. In a panel of latency
// each bar is one percentile.
type Bar struct {
	Name   string       `json:"name,omitempty"`
	Median float64      `json:"median"`
	Low    float64      `json:"low"`
	High   float64      `json:"high"`
	Text   string       `json:"text"`
	Points [][2]float64 `json:"points,omitempty"` // block, value
}

// CellChart shows throughput and CPU of one system with several settings. The traffic
// goes in one direction (half duplex), or in both at once (full duplex). Figures are in
// SI units; By is the factor from Unit to the SI unit.
type CellChart struct {
	ID    string    `json:"id"`
	Title string    `json:"title"`
	Unit  string    `json:"unit"`
	By    float64   `json:"by"`
	Max   float64   `json:"max"` // end of the axis, in Unit: the same in both charts of a system
	Rows  []CellRow `json:"rows"`
	Alt   string    `json:"-"`
}

// CellRow is one scenario.
type CellRow struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Paint
	Bar *Bar    `json:"bar"` // throughput
	CPU [2]*Bar `json:"cpu"` // sender, receiver; %; nil if not measured
}

// Curve is a chart with a line for each system. Figures are in SI units; By is the factor from
// Unit to the SI unit.
type Curve struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Property string      `json:"property"`
	Values   []string    `json:"values"`
	Unit     string      `json:"unit"`
	By       float64     `json:"by"`
	Lines    []CurveLine `json:"lines"`
	Alt      string      `json:"-"`
}

type CurveLine struct {
	Name string `json:"name"`
	Paint
	Dash int    `json:"dash"` // number of lines before it that have the same colour
	Bars []*Bar `json:"bars"` // one for each value, nil if not measured
}

// Ladder shows a ladder of the report: a chart for each metric.
type Ladder struct {
	ID      string      `json:"id"`
	Title   string      `json:"title"`
	Metrics []Waterfall `json:"metrics"`
	Alt     string      `json:"-"`
}

// Waterfall is the waterfall chart of one metric. Figures are in SI units; By is the
// factor from Unit to the SI unit.
type Waterfall struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	By    float64 `json:"by"`
	Rungs []Rung  `json:"rungs"`
}

// Rung is one step of a waterfall chart.
type Rung struct {
	Name     string `json:"name"`
	Scenario string `json:"scenario"`
	Figure   *Span  `json:"figure,omitempty"` // the scenario's figure; nil if not measured
	Added    *Span  `json:"added,omitempty"`  // figure less that of the rung before; nil for the first rung
	Verdict  Mark   `json:"verdict"`
	Tone     string `json:"tone"`            // worse, better or neither
	Ratio    string `json:"ratio,omitempty"` // the change in percent, with its interval
	Share    string `json:"share,omitempty"` // cost of the step as a share of the last rung's figure
	Paint    Paint  `json:"paint"`
}

// Span is a median with its interval, as numbers and as text.
type Span struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Text   string  `json:"text"`
	Range  string  `json:"range,omitempty"`
}

// Series is the time series of a scenario's kept trials.
type Series struct {
	ID string `json:"id"`
	Paint
	Trials []TimeSeries `json:"trials"`
}

// TimeSeries is one time series, column by column.
type TimeSeries struct {
	Block  int          `json:"block"`
	Median bool         `json:"median"`
	Window float64      `json:"window"` // s; 0 if unknown
	At     []float64    `json:"at"`
	Bits   []float64    `json:"bps"`
	CPU    [2][]float64 `json:"cpu"` // sender, receiver
	// Latency has two columns: the mean and the longest round trip in the time before each
	// point, in ns. They are 0 where no transaction ended. Latency is nil for other workloads.
	Latency [][]float64  `json:"latency,omitempty"`
	Out     [][2]float64 `json:"out"` // start and end, s, of each slice that the figures omit
}

// Strips has the data of the chart "Every trial".
type Strips struct {
	Metrics []StripMetric `json:"metrics"`
	Rows    []Strip       `json:"rows"`
}

// StripMetric is a metric that the reader can choose for the chart.
type StripMetric struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	By   float64 `json:"by"`
}

// Strip has the trials of one scenario, with one list for each property.
type Strip struct {
	ID string `json:"id"`
	Paint
	Block   []int    `json:"block"`
	Attempt []int    `json:"attempt"`
	State   []string `json:"state"`
	Why     []string `json:"why"` // the reason why a trial does not count, or the flags of a trial that counts
	// Values has the figures by metric, then by trial; nil if not measured.
	Values  [][]*float64 `json:"values"`
	Summary []*Span      `json:"summary"` // by metric
	Failed  []string     `json:"failed"`  // a text for each trial without figures
}
