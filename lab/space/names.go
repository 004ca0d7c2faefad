package space

import (
	"fmt"
	"strings"
)

// NamePrefix starts the names of all namespaces of the lab, so that Clean finds the namespaces
// of killed runs.
const (
	NamePrefix = "wt-"
	RunPrefix  = NamePrefix + "run"  // of measuring runs
	LabPrefix  = NamePrefix + "lab-" // of testbeds that `windtunnel lab` made
)

// RunID is the id of a run's testbeds.
func RunID(pid int) string { return fmt.Sprintf("run%x", pid) }

// labName writes a suite's name without "-", which separates the parts of a namespace's name.
// Different suites have different names: each "." begins a pair.
var labName = strings.NewReplacer("-", "_", "_", "._", ".", "..")

// LabID is the id of the testbed of a suite that is brought up by hand: lab-quick_overlay of the
// suite quick-overlay. No TestbedPrefix of such an id is the beginning of another one.
func LabID(suite string) string { return "lab-" + labName.Replace(suite) }

// TestbedPrefix returns the start of the names of all namespaces of a testbed.
func TestbedPrefix(id string) string { return NamePrefix + id + "-" }
