package tool

import (
	"fmt"
	"regexp"
	"strings"
)

// netperfOutput has the output of one netperf process: the values of its selectors,
// and its interim results.
type netperfOutput struct {
	values   map[string]string
	interims steps   // amounts in bits or transactions; times by the wall clock, seconds since 1970
	rate     float64 // THROUGHPUT in bits or transactions per second
	begin    float64 // start of traffic by the wall clock; 0 if no interim result has it
}

// netperfUnits converts THROUGHPUT_UNITS to bits or transactions per second.
// Netperf's KBytes are binary; its 10^3 bits are decimal.
var netperfUnits = map[string]float64{
	"10^3bits/s":  1e3,
	"10^6bits/s":  1e6,
	"10^9bits/s":  1e9,
	"10^12bits/s": 1e12,
	"KBytes/s":    8 << 10,
	"MBytes/s":    8 << 20,
	"GBytes/s":    8 << 30,
	"Trans/s":     1,
}

// netperfInterim is an interim result in the classic form, as TCP_SENDFILE
// prints it even with -P 0.
var netperfInterim = regexp.MustCompile(`^Interim result: +(\S+) (\S+) over (\S+) seconds ending at (\S+)$`)

// readNetperf parses one process's output. unit is the unit of THROUGHPUT if the
// output has none.
func readNetperf(text, unit string) (*netperfOutput, error) {
	o := &netperfOutput{values: map[string]string{}}
	pending := map[string]string{} // selectors of an incomplete interim result
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if m := netperfInterim.FindStringSubmatch(line); m != nil {
			if err := o.interim(m[1], m[2], m[3], m[4]); err != nil {
				return nil, err
			}
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			o.classic(line)
			continue
		}
		name, _, numbered := strings.Cut(key, "[")
		if !numbered {
			o.values[key] = value
			continue
		}
		pending[name] = value
		if name != "NETPERF_ENDING" {
			continue
		}
		err := o.interim(pending["NETPERF_INTERIM_RESULT"], pending["NETPERF_UNITS"], pending["NETPERF_INTERVAL"], value)
		if err != nil {
			return nil, err
		}
		clear(pending)
	}
	return o, o.settle(unit)
}

// interim adds one interim result.
func (o *netperfOutput) interim(rate, unit, length, ending string) error {
	scale, known := netperfUnits[unit]
	if !known {
		return fmt.Errorf("an interim result has the unknown unit %q", unit)
	}
	r, err := figure("an interim result", rate)
	if err != nil {
		return err
	}
	seconds, err := figure("the length of an interim result", length)
	if err != nil {
		return err
	}
	end, err := figure("the end of an interim result", ending)
	if err != nil {
		return err
	}
	if len(o.interims) == 0 {
		o.begin = end - seconds
	}
	o.interims = append(o.interims, step{from: end - seconds, to: end, amount: r * scale * seconds})
	return nil
}

// classic parses the result line of a test without selectors: socket sizes, message
// size, seconds, throughput, and CPU figures if requested.
func (o *netperfOutput) classic(line string) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return
	}
	for i, f := range fields[:5] {
		if _, err := figure("", f); err != nil {
			return
		}
		if i < 3 && strings.Contains(f, ".") { // sizes are whole
			return
		}
	}
	o.values["ELAPSED_TIME"], o.values["THROUGHPUT"] = fields[3], fields[4]
	for i, key := range []string{"LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD"} {
		if 5+i < len(fields) {
			o.values[key] = fields[5+i]
		}
	}
}

// settle parses the final result. It adds a step for the time after the last interim
// result, so that the steps cover the whole run.
func (o *netperfOutput) settle(unit string) error {
	text, found := o.values["THROUGHPUT"]
	if !found {
		return fmt.Errorf("the output has no THROUGHPUT")
	}
	throughput, err := figure("THROUGHPUT", text)
	if err != nil {
		return err
	}
	if u := o.values["THROUGHPUT_UNITS"]; u != "" {
		unit = u
	}
	scale, known := netperfUnits[unit]
	if !known {
		return fmt.Errorf("THROUGHPUT has the unknown unit %q", unit)
	}
	o.rate = throughput * scale
	elapsed, found, err := o.number("ELAPSED_TIME")
	if err != nil || !found || len(o.interims) == 0 {
		return err
	}
	last := o.interims[len(o.interims)-1].to
	counted, _ := o.interims.over(o.begin, last)
	if rest := o.rate*elapsed - counted; rest > 0 && o.begin+elapsed > last {
		o.interims = append(o.interims, step{from: last, to: o.begin + elapsed, amount: rest})
	}
	return nil
}

// number returns a selector's value. found is false if netperf did not print the
// selector.
func (o *netperfOutput) number(key string) (v float64, found bool, err error) {
	text, found := o.values[key]
	if !found {
		return 0, false, nil
	}
	v, err = figure(key, text)
	return v, err == nil, err
}
