package tool

import (
	"errors"
	"regexp"
)

// ntttcpResult has the figures of one end of ntttcp-for-linux after its warm-up.
type ntttcpResult struct {
	bits        float64  // per second
	retransmits *float64 // segments, of the whole network namespace; nil if not printed
}

var ntttcpLines = struct{ duration, total, retransmits *regexp.Regexp }{
	duration:    regexp.MustCompile(`(?m)^\S+ INFO: test duration\s*:(\S+) seconds$`),
	total:       regexp.MustCompile(`(?m)^\S+ INFO: total bytes\s*:(\S+)$`),
	retransmits: regexp.MustCompile(`(?m)^\S+ INFO: \s*retrans segs\s*:(\S+)$`),
}

// readNTttcp reads the result of one end from its text. It divides the total bytes by
// the duration, because the printed throughput has fewer digits.
func readNTttcp(text string) (r ntttcpResult, err error) {
	duration := ntttcpLines.duration.FindStringSubmatch(text)
	total := ntttcpLines.total.FindStringSubmatch(text)
	if duration == nil || total == nil {
		return r, errors.New("the output has no totals")
	}
	seconds, err1 := figure("the test duration", duration[1])
	bytes, err2 := figure("the total bytes", total[1])
	if err := errors.Join(err1, err2); err != nil {
		return r, err
	}
	if seconds <= 0 {
		return r, errors.New("the test has a duration of 0 s")
	}
	if bytes <= 0 {
		return r, errors.New("the test transferred no data")
	}
	r.bits = bytes * 8 / seconds
	if f := ntttcpLines.retransmits.FindStringSubmatch(text); f != nil {
		n, err := figure("the retransmits", f[1])
		if err != nil {
			return r, err
		}
		r.retransmits = &n
	}
	return r, nil
}
