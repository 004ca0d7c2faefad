package units

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

func TestParseBytesReadsSizesAsTheFieldWritesThem(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1390": 1390, "1390B": 1390, "1390 B": 1390,
		"128k": 131072, "64K": 65536, "128 KiB": 131072, "128kib": 131072,
		"2M": 2 << 20, "1m": 1 << 20, "1G": 1 << 30, "3T": 3 << 40, "1MiB": 1 << 20,
		"1.5k": 1536, "0.5M": 524288, " 8k ": 8192, "007": 7,
		"9223372036854775807": math.MaxInt64, "8388607T": 8388607 << 40,
	} {
		got, err := ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseRateReadsRatesAsTheFieldWritesThem(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000000": 1e6, "10Gbit": 1e10, "400Mbit": 4e8, "4Gbit/s": 4e9, "4G": 4e9,
		"10gbit": 1e10, "64k": 64000, "2.5Gbit": 25e8, "1 Gbit/s": 1e9, "9.18 Gbit/s": 9_180_000_000,
		"100Mbps": 1e8, "100Mb/s": 1e8, "8bit": 8, "1Tbit": 1e12, "12bits/s": 12, "1.001k": 1001,
	} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseDurationReadsGoNotation(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "15s": 15 * time.Second, "500ms": 500 * time.Millisecond, "2m30s": 150 * time.Second,
		"78µs": 78 * time.Microsecond, "78 µs": 78 * time.Microsecond, "1.5h": 90 * time.Minute, "78us": 78 * time.Microsecond,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParsePercentReadsFractionsExactly(t *testing.T) {
	for text, want := range map[string]float64{
		"2%": 0.02, "2 %": 0.02, "0.5%": 0.005, " 100 % ": 1, "0%": 0, "0.1%": 0.001, "12.5 %": 0.125, "250%": 2.5,
	} {
		got, err := ParsePercent(text)
		if err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestErrorsHaveTheTextThePlaceAndAValidExample(t *testing.T) {
	size := func(s string) error { _, err := ParseBytes(s); return err }
	rate := func(s string) error { _, err := ParseRate(s); return err }
	duration := func(s string) error { _, err := ParseDuration(s); return err }
	percent := func(s string) error { _, err := ParsePercent(s); return err }
	for _, c := range []struct {
		parse  func(string) error
		text   string
		offset int
		says   string
	}{
		{size, "", 0, `size "": is empty; write a size such as "1390"`},
		{size, "   ", 0, "is empty"},
		{size, "-1k", 0, "is negative"},
		{size, "k", 0, "does not start with a number"},
		{size, "NaN", 0, "does not start with a number"},
		{size, "+Inf", 0, "does not start with a number"},
		{size, "1e6", 1, `at character 2: "e6" is not a unit of size`},
		{size, "128x", 3, `size "128x" at character 4: "x" is not a unit of size`},
		{size, "1kB", 1, `kB may mean powers of 1000 or of 1024; write "1k" for powers of 1024`},
		{size, "4 MB", 2, `write "4M" for powers of 1024`},
		{size, "1.2.3", 3, "has a second decimal point"},
		{size, ".5k", 0, "without digits on both sides"},
		{size, "5.", 1, "without digits on both sides"},
		{size, "1.0001k", 0, "is not a whole number of bytes"},
		{size, "8388608T", 0, "exceeds 9223372036854775807 bytes"},
		{size, "99999999999999999999", 0, "exceeds"},
		{size, strings.Repeat("1", 65), 0, "is longer than any size"},
		{size, "10Gbit", 2, `"Gbit" is not a unit of size`},
		{size, "128k\n", 3, "is not a unit of size"},
		{rate, "", 0, "is empty"},
		{rate, "-4G", 0, "is negative"},
		{rate, "4GB/s", 1, `GB/s means bytes; rates are in bits per second: write "32Gbit"`},
		{rate, "1B", 1, `write "8bit"`},
		{rate, "10Gibit", 2, `"Gibit" is not a unit of rate`},
		{rate, "15s", 2, `"s" is not a unit of rate; write a rate in bits per second such as "400Mbit"`},
		{rate, "0.1", 0, "is not a whole number of bits per second"},
		{rate, "10000000T", 0, "exceeds"},
		{rate, "4ü", 1, `is not a unit of rate`},
		{percent, "", 0, "is empty"},
		{percent, "2", 1, `has no percent sign; write "2%", or "200%" if a fraction was meant`},
		{percent, "0.025", 5, `write "0.025%", or "2.5%" if a fraction was meant`},
		{percent, "2 percent", 2, `"percent" is not a percent sign`},
		{percent, "2 %%", 2, `"%%" is not a percent sign`},
		{percent, "%", 0, "does not start with a number"},
		{percent, "-2%", 0, "is negative"},
		{percent, "1..2%", 2, "has a second decimal point"},
		{percent, strings.Repeat("9", 65), 0, "is longer than any percentage"},
		{duration, "", 0, "is empty"},
		{duration, "-1s", 0, "is negative"},
		{duration, "+1s", 0, "has a sign"},
		{duration, "15", 2, `has no unit; write "15s" for seconds, or "15ms"`},
		{duration, "2.5", 3, `write "2.5s"`},
		{duration, "1d", 1, `a day is "24h"`},
		{duration, "15 sec", 3, `"sec" is not a unit of time`},
		{duration, "2m30", 0, "is not a duration"},
		{duration, "2m30x", 4, `"x" is not a unit of time`},
		{duration, "soon", 0, "does not start with a number"},
		{duration, "9999999h", 0, "longer than 292 years"},
		{duration, "9223372036854775808ns", 0, "longer than 292 years"},
	} {
		err := c.parse(c.text)
		if err == nil {
			t.Errorf("%q was accepted; want an error that says %q", c.text, c.says)
			continue
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error is a %T, want *Error", c.text, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %q does not say %q", c.text, err, c.says)
		}
		if e.Offset != c.offset {
			t.Errorf("%q: offset %d, want %d", c.text, e.Offset, c.offset)
		}
		if e.Text != c.text || e.Remedy == "" {
			t.Errorf("%q: incomplete error %+v", c.text, e)
		}
	}
}

func TestErrorShortensALongText(t *testing.T) {
	_, err := ParseBytes(strings.Repeat("ü", 100_000))
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("error of %d bytes for a text of 200 kB: want a short one", len(err.Error()))
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1390: "1390 B", 65507: "65507 B", 1024: "1 KiB", 131072: "128 KiB",
		2 << 20: "2 MiB", 1 << 40: "1 TiB", 2_480_343_613: "2.31 GiB", -1: "-1 B", -2048: "-2 KiB",
		math.MaxInt64: "8 EiB", math.MinInt64: "-8 EiB", 1<<20 + 1: "1 MiB", 1<<30 - 1: "1 GiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatRateDurationAndCount(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatRate(9.18e9), "9.18 Gbit/s"},
		{FormatRate(4e8), "400 Mbit/s"},
		{FormatRate(11.44e9), "11.4 Gbit/s"},
		{FormatRate(999.96e6), "1 Gbit/s"},
		{FormatRate(0), "0 bit/s"},
		{FormatRate(12), "12 bit/s"},
		{FormatRate(-2.5e6), "-2.5 Mbit/s"},
		{FormatRate(3e15), "3000 Tbit/s"},
		{FormatRate(math.NaN()), "—"},
		{FormatRate(math.Inf(1)), "—"},
		{FormatDuration(78_000), "78 µs"},
		{FormatDuration(78_320), "78.3 µs"},
		{FormatDuration(1_250_000), "1.25 ms"},
		{FormatDuration(2e9), "2 s"},
		{FormatDuration(59.96e9), "1m"},
		{FormatDuration(200e9), "3m20s"},
		{FormatDuration(3600e9), "1h"},
		{FormatDuration(5400e9), "1h30m"},
		{FormatDuration(0), "0 ns"},
		{FormatDuration(-78_000), "-78 µs"},
		{FormatDuration(math.MaxInt64), "2562048 h"},
		{FormatDuration(math.NaN()), "—"},
		{FormatDuration(math.Inf(-1)), "—"},
		{FormatPercent(0.02), "2 %"},
		{FormatPercent(0.001), "0.1 %"},
		{FormatPercent(0.12345), "12.3 %"},
		{FormatPercent(-0.02), "-2 %"},
		{FormatPercent(math.NaN()), "—"},
		{FormatPercent(math.MaxFloat64), "—"},
		{FormatCount(0), "0"},
		{FormatCount(8.25), "8.25"},
		{FormatCount(-0.001), "0"},
		{FormatCount(11050), "11,050"},
		{FormatCount(-11050), "-11,050"},
		{FormatCount(999.6), "1,000"},
		{FormatCount(-123456), "-123,456"},
		{FormatCount(999_999.7), "1 M"},
		{FormatCount(1_234_000), "1.23 M"},
		{FormatCount(4.5e9), "4.5 G"},
		{FormatCount(math.NaN()), "—"},
	} {
		must.Equal(t, c.want, c.got)
	}
}

func TestPrintedSizesBelow100000AndWholeMultiplesAreReadExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n := r.Int64N(100_000)
		if r.IntN(2) == 0 {
			n = r.Int64N(1024) << (10 * r.IntN(5))
		}
		text := FormatBytes(n)
		if got, err := ParseBytes(text); err != nil || got != n {
			t.Fatalf("ParseBytes(FormatBytes(%d) = %q) = %d, %v", n, text, got, err)
		}
	}
}

func TestPrintedRatesAndDurationsAreReadWithinHalfAPercent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	near := func(a, b float64) bool { return math.Abs(a-b) <= 0.005*b }
	for range 20_000 {
		f := math.Round(math.Pow(10, 3+r.Float64()*11))
		text := FormatRate(f)
		if got, err := ParseRate(text); err != nil || !near(float64(got), f) {
			t.Fatalf("ParseRate(FormatRate(%g) = %q) = %d, %v", f, text, got, err)
		}
		text = FormatDuration(f)
		if got, err := ParseDuration(text); err != nil || !near(float64(got), f) && math.Abs(float64(got)-f) > 5e8 {
			t.Fatalf("ParseDuration(FormatDuration(%g) = %q) = %v, %v", f, text, got, err)
		}
	}
}
