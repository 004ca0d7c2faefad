package document_test

import (
	"fmt"
	"os"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/text"
)

// A document has no form of its own: each writer chooses one. A section without content is left
// out, and a terminal has neither the lead nor the chart of the trials.
func Example() {
	table := document.Table{Columns: append(document.Words("scenario"), document.Column{Name: "throughput", Unit: "Gbit/s"})}
	table.Add("bridge", "17.9")
	table.Add("vxlan", "").Cells[1] = document.Cell{Text: "14.3", Range: "[14.1, 14.6]"}

	d := document.Document{Title: "Two systems"}
	d.Add(
		document.Section{Title: "Findings", Sentences: []string{"VXLAN carries 20.1 % less than the bridge."}},
		document.Section{Title: "Notes"},
		document.Section{Title: "Every trial", Drawing: "trials"},
		document.Section{Title: "Figures", Lead: "Medians of six trials.", Tables: table.List()},
	)
	if err := text.Write(os.Stdout, d, text.Options{Width: 60}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("-----")
	if err := markdown.Write(os.Stdout, d); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Two systems
	//
	// Findings
	// • VXLAN carries 20.1 % less than the bridge.
	//
	// Figures
	//                  throughput
	// scenario             Gbit/s
	// ───────────────────────────
	// bridge                 17.9
	// vxlan     14.3 [14.1, 14.6]
	// -----
	// # Two systems
	//
	// ## Findings
	//
	// - VXLAN carries 20.1 % less than the bridge.
	//
	// ## Figures
	//
	// Medians of six trials.
	//
	// | scenario | throughput in Gbit/s |
	// | --- | ---: |
	// | bridge | 17.9 |
	// | vxlan | 14.3 \[14.1, 14.6\] |
}
