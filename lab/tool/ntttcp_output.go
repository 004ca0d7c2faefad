package tool

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ntttcpResult is what one end of ntttcp-for-linux measured after its warm-up.
type ntttcpResult struct {
	bits        float64  // per second
	bytes       float64  // in the measured part; 0 where not told
	seconds     float64  // length of the measured part
	retransmits *float64 // segments, of the whole network namespace; nil where not told
	errors      *float64 // nil where not told
}

// readNTttcp reads one end's result from its text, or from the XML (-x) or
// JSON (-j) document that it writes.
func readNTttcp(text string) (ntttcpResult, error) {
	var r ntttcpResult
	var err error
	switch trimmed := strings.TrimSpace(text); {
	case strings.HasPrefix(trimmed, "<"):
		r, err = readNTttcpXML(trimmed)
	case strings.HasPrefix(trimmed, "{"):
		r, err = readNTttcpJSON(trimmed)
	default:
		r, err = readNTttcpText(text)
	}
	if err == nil && r.bits <= 0 {
		err = errors.New("it carried nothing")
	}
	return r, err
}

var ntttcpLines = struct{ duration, total, retransmits *regexp.Regexp }{
	duration:    regexp.MustCompile(`(?m)^\S+ INFO: test duration\s*:(\S+) seconds$`),
	total:       regexp.MustCompile(`(?m)^\S+ INFO: total bytes\s*:(\S+)$`),
	retransmits: regexp.MustCompile(`(?m)^\S+ INFO: \s*retrans segs\s*:(\S+)$`),
}

// readNTttcpText divides the total by the duration: the printed throughput has
// fewer digits than they have.
func readNTttcpText(text string) (r ntttcpResult, err error) {
	duration := ntttcpLines.duration.FindStringSubmatch(text)
	total := ntttcpLines.total.FindStringSubmatch(text)
	if duration == nil || total == nil {
		return r, errors.New("there are no totals")
	}
	r.seconds, err = figure("the test duration", duration[1])
	if err != nil {
		return r, err
	}
	r.bytes, err = figure("the total bytes", total[1])
	if err != nil {
		return r, err
	}
	if r.seconds <= 0 {
		return r, errors.New("the test took no time")
	}
	r.bits = r.bytes * 8 / r.seconds
	if f := ntttcpLines.retransmits.FindStringSubmatch(text); f != nil {
		n, err := figure("the retransmits", f[1])
		if err != nil {
			return r, err
		}
		r.retransmits = &n
	}
	return r, nil
}

// readNTttcpXML reads a document with root ntttcps or ntttcpr.
func readNTttcpXML(text string) (r ntttcpResult, err error) {
	type measured struct {
		Metric string `xml:"metric,attr"`
		Value  string `xml:",chardata"`
	}
	var d struct {
		XMLName     xml.Name
		Seconds     string     `xml:"realtime"`
		Total       measured   `xml:"total_bytes"`
		Throughputs []measured `xml:"throughput"`
		Retransmits *string    `xml:"packets_retransmitted"`
		Errors      *string    `xml:"errors"`
	}
	if err := xml.Unmarshal([]byte(text), &d); err != nil {
		return r, fmt.Errorf("the XML is cut short or damaged: %w", err)
	}
	if d.XMLName.Local != "ntttcps" && d.XMLName.Local != "ntttcpr" {
		return r, fmt.Errorf("the XML's root is %s, not ntttcps or ntttcpr", d.XMLName.Local)
	}
	by := map[string]string{}
	for _, t := range d.Throughputs {
		by[t.Metric] = t.Value
	}
	return ntttcpDocument(by, d.Seconds, d.Total.Value, d.Retransmits, d.Errors)
}

// readNTttcpJSON reads the same from JSON, where every number is a string.
func readNTttcpJSON(text string) (r ntttcpResult, err error) {
	type measured struct {
		Metric string `json:"metric"`
		Value  string `json:"value"`
	}
	var d map[string]struct {
		Seconds     measured   `json:"realTime"`
		Total       measured   `json:"totalBytes"`
		Throughputs []measured `json:"throughputs"`
		Retransmits *string    `json:"packets_retransmitted"`
		Errors      *string    `json:"errors"`
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return r, fmt.Errorf("the JSON is cut short or damaged: %w", err)
	}
	for _, root := range []string{"ntttcps", "ntttcpr"} {
		end, ok := d[root]
		if !ok {
			continue
		}
		by := map[string]string{}
		for _, t := range end.Throughputs {
			by[t.Metric] = t.Value
		}
		return ntttcpDocument(by, end.Seconds.Value, end.Total.Value, end.Retransmits, end.Errors)
	}
	return r, errors.New("the JSON holds neither ntttcps nor ntttcpr")
}

// ntttcpDocument turns the texts of a document into figures. Throughput is
// taken in bytes per second where told, else in mbps, which are decimal bits.
func ntttcpDocument(throughput map[string]string, seconds, total string, retransmits, failures *string) (r ntttcpResult, err error) {
	if text, told := throughput["Bps"]; told {
		r.bits, err = figure("the throughput", text)
		r.bits *= 8
	} else if text, told := throughput["mbps"]; told {
		r.bits, err = figure("the throughput", text)
		r.bits *= 1e6
	} else {
		err = errors.New("the document holds no throughput")
	}
	if err != nil {
		return r, err
	}
	if r.seconds, err = figure("the real time", seconds); err != nil {
		return r, err
	}
	if total != "" {
		megabytes, err := figure("the total", total)
		if err != nil {
			return r, err
		}
		r.bytes = megabytes * 1e6 // decimal here, binary in NTttcp itself
	}
	if r.retransmits, err = optional("the retransmits", retransmits); err != nil {
		return r, err
	}
	r.errors, err = optional("the errors", failures)
	return r, err
}

// optional reads a figure that may be absent.
func optional(name string, text *string) (*float64, error) {
	if text == nil {
		return nil, nil
	}
	v, err := figure(name, *text)
	if err != nil {
		return nil, err
	}
	return &v, nil
}
