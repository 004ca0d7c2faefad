package html

import "strings"

// parts are the parts of the report's script, in the order in which they run. They
// share one closure, so a part may use the names of earlier parts.
var parts = []string{
	"kit", "bars", "cells", "latency", "ratios", "series", "roundtrips", "ladder", "trials",
	"charts", "save", "report", "draw", "choose", "tree", "flame", "profiles", "tables", "download",
}

// sheetParts are the parts of the script of comparisons and trends.
var sheetParts = []string{"kit", "ratios", "trend", "charts", "save", "sheet", "draw"}

// assemble joins parts to one script. The script defines no global names.
func assemble(parts []string) string {
	var b strings.Builder
	b.WriteString("(function () {\n'use strict';\n")
	for _, name := range parts {
		b.WriteString(asset("js/" + name + ".js"))
		b.WriteByte('\n')
	}
	b.WriteString("})();\n")
	return b.String()
}
