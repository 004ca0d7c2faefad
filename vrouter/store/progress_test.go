package store

import "testing"

func TestVersionsWithExactProgress(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": false, "3.4.23": false, "3.4.25": true, "3.5.7": false, "3.5.8": true, "3.5.21": true, "3.6.0": true, "3.7.3-rc.0": true, "4.0.0": true, "": false, "not decided": false,
	} {
		if got := isExact(version); got != want {
			t.Errorf("version %q: %v, want %v", version, got, want)
		}
	}
}
