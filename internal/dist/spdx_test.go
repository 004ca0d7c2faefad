package main

import (
	"os"
	"slices"
	"testing"
)

func TestLicencesAreRecognised(t *testing.T) {
	for path, want := range map[string][]string{
		"../../LICENSE": {"Apache-2.0"},
		"../../lab/report/html/assets/LICENSE.echarts": {"Apache-2.0"},
		"../../lab/report/html/assets/LICENSE.zrender": {"BSD-3-Clause"},
		"../../lab/report/html/assets/NOTICE.echarts":  nil,
		"../../README.md": nil,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := identify(string(text)); !slices.Equal(got, want) {
			t.Errorf("%s has the licences %v, want %v", path, got, want)
		}
	}
	const four = redistribution + ": 2. Redistributions in binary form must reproduce the above. 3. " + advertising + " must display"
	if got := identify(four); got != nil {
		t.Errorf("BSD-4-Clause is taken for %v", got)
	}
}
