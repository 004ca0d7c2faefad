package main

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
)

const results = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: a message\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: tayga is not installed; get it with: apt-get install tayga\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    b_test.go:9: tayga (a translator) is not installed\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"q","Test":"TestB/x","Output":"    b_test.go:9: a first line\n"}
{"Action":"output","Package":"q","Test":"TestB/x","Output":"        of a reason: needs root\n"}
{"Action":"skip","Package":"q","Test":"TestB/x"}
{"Action":"output","Package":"q","Test":"TestD","Output":"    d_test.go:1: times depend on the machine; set WINDTUNNEL_TIMING_TESTS=1 on a quiet one\n"}
{"Action":"skip","Package":"q","Test":"TestD"}
{"Action":"skip","Package":"q","Test":"TestE"}
{"Action":"fail","Package":"q","Test":"TestF"}
{"Action":"pass","Package":"q","Test":"TestF"}
{"Action":"skip","Package":"q","Test":"TestG"}
{"Action":"pass","Package":"q","Test":"TestG"}
{"Action":"output","Package":"q","Test":"TestScripts/x","Output":"    cmd.go:380: fio is not installed\n"}
{"Action":"output","Package":"q","Test":"TestScripts/x","Output":"    testscript.go:609: WORK=$WORK\n"}
{"Action":"output","Package":"q","Test":"TestScripts/x","Output":"        PATH=/bin\n"}
{"Action":"skip","Package":"q","Test":"TestScripts/x"}
{"Action":"output","Package":"q","Test":"TestH","Output":"    h_test.go:1: takes minutes; run it with: make test-kubernetes\n"}
{"Action":"skip","Package":"q","Test":"TestH"}
{"Action":"output","Package":"q","Test":"TestI","Output":"    i_test.go:1: no kernel was found; get one with: windtunnel vm fetch\n"}
{"Action":"skip","Package":"q","Test":"TestI"}
{"Action":"output","Package":"q","Test":"TestJ","Output":"    j_test.go:1: needs CONFIG_NETKIT=y, which /root/config lacks\n"}
{"Action":"skip","Package":"q","Test":"TestJ"}
{"Action":"fail","Package":"q"}
`

const table = `
skipped  because                                                                to run them
2        tayga is not installed  apt-get install tayga
1 fio is not installed apt-get install fio
1 needs CONFIG_NETKIT=y, which /root/config lacks
1 needs root sudo make test
1 no kernel was found windtunnel vm fetch
1 no reason given
1 takes minutes make test-kubernetes
1        times depend on the machine; set WINDTUNNEL_TIMING_TESTS=1 on a quiet one  WINDTUNNEL_TIMING_TESTS=1 make test

2 passed, 1 failed, 9 skipped
`

func TestSkippedTestsAreCountedByReasonWithTheCommandThatRunsThem(t *testing.T) {
	var s summary
	must.Succeed(t, s.add(strings.NewReader(results)))
	var got strings.Builder
	must.Succeed(t, s.write(&got))
	squeeze := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
		return strings.Join(lines, "\n")
	}
	if squeeze(got.String()) != squeeze(table) {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), table)
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	var s summary
	if err := s.add(strings.NewReader(`{"Action":"pass"}` + "\n{")); err == nil {
		t.Error("no error")
	}
}
