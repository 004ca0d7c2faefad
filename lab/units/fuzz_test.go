package units

import (
	"errors"
	"math"
	"testing"
)

// seeds are what people write, and what they write by mistake.
var seeds = []string{
	"", "0", "1390", "128k", "64K", "2M", "1G", "1.5k", "1kB", "10Gbit", "4Gbit/s", "4GB/s", "9.18 Gbit/s",
	"15", "15s", "78 µs", "2m30s", "-1", "+1", "1e9", "NaN", "Inf", "..", "1.", ".1", "9223372036854775808",
	"2%", "0.5 %", "1e2%", "%", "2 %%", "9223372036854775808ns", "\x00", "\xff\xfe", "1\xff", "  ", "0x10", "１２", "1 1s",
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseBytes(s)
		check(t, s, n, err)
		if err == nil {
			if got, err := ParseBytes(FormatBytes(n)); n < 100_000 && (err != nil || got != n) {
				t.Fatalf("%q is %d, printed as %q, which reads back as %d, %v", s, n, FormatBytes(n), got, err)
			}
		}
	})
}

func FuzzParseRate(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseRate(s)
		check(t, s, n, err)
		if err == nil && n >= 1000 {
			if _, err := ParseRate(FormatRate(float64(n))); err != nil {
				t.Fatalf("%q is %d, which does not read back: %v", s, n, err)
			}
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		check(t, s, int64(d), err)
		if err == nil && d.Hours() < 2_000_000 {
			if _, err := ParseDuration(FormatDuration(float64(d))); err != nil {
				t.Fatalf("%q is %v, which does not read back: %v", s, d, err)
			}
		}
	})
}

func FuzzParsePercent(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePercent(s)
		check(t, s, int64(min(p, 1)), err)
		if err != nil && p != 0 || math.IsNaN(p) || math.IsInf(p, 0) || p < 0 {
			t.Fatalf("%q is %v, %v", s, p, err)
		}
		if err == nil {
			if _, err := ParsePercent(FormatPercent(p)); err != nil {
				t.Fatalf("%q is %v, which does not read back: %v", s, p, err)
			}
		}
	})
}

// check asserts what holds for every text: a value that is not negative, or a
// complete *Error that can be printed.
func check(t *testing.T, s string, n int64, err error) {
	t.Helper()
	if err == nil {
		if n < 0 {
			t.Fatalf("%q gave %d: negative", s, n)
		}
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%q: error is a %T", s, err)
	}
	if e.Text != s || e.Problem == "" || e.Remedy == "" || e.Offset < 0 || e.Offset > len(s) || err.Error() == "" {
		t.Fatalf("%q: incomplete error %#v", s, e)
	}
}
