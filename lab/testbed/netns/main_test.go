package netns

import (
	"fmt"
	"os"
	"testing"

	"windtunnel/lab/agent"
)

// The test binary is its own agent program.
func TestMain(m *testing.M) {
	if os.Getenv("WT_TEST_AGENT") == "1" {
		os.Unsetenv("WT_TEST_AGENT")
		if err := agent.Serve("test", os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
