package main

import (
	"testing"

	"windtunnel/lab/system"
	"windtunnel/lab/tool"
)

func TestTheScenariosOfOverheadsHaveASystemAndATool(t *testing.T) {
	for _, name := range []string{"vxlan", "bridge"} {
		sc := scenario(name, 1)
		if _, err := system.ByName(sc.System); err != nil {
			t.Error(err)
		}
		if _, ok := tool.ByName(sc.Tool); !ok {
			t.Errorf("tool %q is unknown", sc.Tool)
		}
	}
}
