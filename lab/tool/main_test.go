package tool

import (
	"os"
	"testing"

	"windtunnel/lab/traffic"
)

// TestMain lets the test program stand in for windtunnel, whose NTttcp form
// the live tests plan.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "ntttcp" {
		os.Exit(traffic.NTttcp(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
