package model

import (
	"strings"
	"testing"
)

func TestARateIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]Rate{
		"100M": 100e6, "2.5G": 2.5e9, "2500Mbit": 2.5e9, "64k": 64e3, "8000": 8e3, "0": 0, "12345": 12345, "400G": 4e11,
	} {
		got, err := parseRate(text)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
		if again, err := parseRate(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which is %d, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "M", "fast", "-1M", "1.5", "0.0001k", "1e30", "NaN", "Inf", "100 M", "100m", "2000G"} {
		if got, err := parseRate(text); err == nil || !strings.Contains(err.Error(), "is not a rate") {
			t.Errorf("%q: %d, error %v, want one that contains %q", text, got, err, "is not a rate")
		}
	}
}
