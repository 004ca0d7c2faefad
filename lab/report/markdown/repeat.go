package markdown

import "windtunnel/lab/report/model"

// byHand writes the lines that repeat each scenario, folded away.
func (m *markdown) byHand(list []model.ByHand) {
	if len(list) == 0 {
		return
	}
	m.line("## To repeat a test by hand")
	m.line("%s", escape(model.ByHandHint))
	for _, h := range list {
		m.line("<details><summary>%s</summary>", escape(h.Scenario))
		m.fenced("", h.Lines)
		m.line("</details>")
	}
}
