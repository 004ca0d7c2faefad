package traffic

import (
	"os"
	"testing"
)

// asProgram makes the test binary behave as the program with these arguments.
const asProgram = "WINDTUNNEL_TRAFFIC_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "traffic":
		os.Exit(Worker(os.Args[1:], os.Stdout, os.Stderr))
	case "ntttcp":
		os.Exit(NTttcp(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
