package tool

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ntttcpFile is NTttcp's XML document of one run: 5.33's form, or 5.40's, which
// adds the throughput in Bps.
type ntttcpFile struct {
	XMLName    xml.Name
	Version    string        `xml:"version,attr"`
	UDP        string        `xml:"parameters>udp"`
	Threads    []ntttcpEntry `xml:"thread"`
	Bytes      string        `xml:"total_bytes"`
	Seconds    string        `xml:"realtime"`
	FrameSize  string        `xml:"avg_frame_size"`
	Rates      ntttcpRates   `xml:"throughput"`
	Buffers    string        `xml:"total_buffers"`
	Interrupts string        `xml:"interrupts"`
	DPCs       string        `xml:"dpcs"`
	Cycles     string        `xml:"cycles"`
	Sent       string        `xml:"packets_sent"`
	Received   string        `xml:"packets_received"`
	Retrans    string        `xml:"packets_retransmitted"`
	Errors     string        `xml:"errors"`
	CPU        string        `xml:"cpu"`
	Processors string        `xml:"num_processors"`
	Tested     string        `xml:"conns_tested"` // by ntttcp-for-linux only, whose roots are called the same
}

type ntttcpEntry struct {
	Index   string      `xml:"index,attr"`
	Seconds string      `xml:"realtime"`
	Rates   ntttcpRates `xml:"throughput"`
	PerCall string      `xml:"avg_bytes_per_compl"`
}

type ntttcpRates []struct {
	Metric string `xml:"metric,attr"`
	Value  string `xml:",chardata"`
}

// bits returns the rate in bits per second, from the finest unit that is told.
func (rates ntttcpRates) bits(name string) (float64, error) {
	for _, unit := range []struct {
		metric string
		bits   float64
	}{{"Bps", 8}, {"mbps", 1e6}, {"MB/s", 8 * ntttcpMB}} {
		for _, r := range rates {
			if r.Metric == unit.metric {
				v, err := figure(name, r.Value)
				return v * unit.bits, err
			}
		}
	}
	return 0, fmt.Errorf("%s is not told in Bps, mbps or MB/s", name)
}

// readNTttcpFile reads the last of the documents in a file. Roots stand one
// after another, which is no XML document, so they are read one by one.
func readNTttcpFile(text string) (NTttcpReport, error) {
	d := xml.NewDecoder(strings.NewReader(text))
	var last ntttcpFile
	n := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return NTttcpReport{}, fmt.Errorf("the XML is cut short or damaged: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "ntttcps", "ntttcpr":
		case "samples":
			return NTttcpReport{}, errors.New("the XML holds samples of one run (-sam), not its totals; run NTttcp without -sam")
		default:
			return NTttcpReport{}, fmt.Errorf("the XML's root is %s, not ntttcps or ntttcpr", start.Name.Local)
		}
		last = ntttcpFile{}
		if err := d.DecodeElement(&last, &start); err != nil {
			return NTttcpReport{}, fmt.Errorf("the XML is cut short or damaged: %w", err)
		}
		n++
	}
	if n == 0 {
		return NTttcpReport{}, errors.New("the XML holds no run: NTttcp did not finish its work, and its exit code does not say so")
	}
	r, err := last.report()
	if n > 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the file holds %d runs, since NTttcp's -xml appends; the last is read", n))
	}
	return r, err
}

func (f ntttcpFile) report() (r NTttcpReport, err error) {
	if f.Tested != "" {
		return r, fmt.Errorf("the document is ntttcp-for-linux's, whose megabytes are 10^6 bytes; read it as tool %s's", NTttcp{}.Name())
	}
	r.Version, r.UDP, r.Side = f.Version, strings.EqualFold(f.UDP, "true"), OnReceiver
	if f.XMLName.Local == "ntttcps" {
		r.Side = OnSender
	}
	var megabytes float64
	for _, v := range []struct {
		name, text string
		to         *float64
	}{
		{"total_bytes", f.Bytes, &megabytes}, {"realtime", f.Seconds, &r.Seconds}, {"avg_frame_size", f.FrameSize, &r.FrameSize},
		{"total_buffers", f.Buffers, &r.Buffers}, {"interrupts", f.Interrupts, &r.InterruptsPerSecond}, {"dpcs", f.DPCs, &r.DPCsPerSecond},
		{"Cycles/Byte", f.Cycles, &r.CyclesPerByte},
	} {
		if *v.to, err = ntttcpFigure(v.name, v.text); err != nil {
			return r, err
		}
	}
	r.Bytes = megabytes * ntttcpMB
	if r.Throughput, err = f.Rates.bits("the throughput"); err != nil {
		return r, err
	}
	if err := f.counts(&r); err != nil {
		return r, err
	}
	if r.Threads, err = f.threads(); err != nil {
		return r, err
	}
	return r, r.setCPU(f.CPU)
}

func (f ntttcpFile) counts(r *NTttcpReport) error {
	var processors int64
	for _, v := range []struct {
		name, text string
		to         *int64
	}{
		{"packets_sent", f.Sent, &r.PacketsSent}, {"packets_received", f.Received, &r.PacketsReceived},
		{"packets_retransmitted", f.Retrans, &r.Retransmits}, {"errors", f.Errors, &r.Errors},
		{"num_processors", f.Processors, &processors},
	} {
		var err error
		if *v.to, err = count(v.name, v.text); err != nil {
			return err
		}
	}
	r.Processors = int(processors)
	return nil
}

func (f ntttcpFile) threads() (threads []NTttcpThread, err error) {
	for _, e := range f.Threads {
		index, err := count("a thread's index", e.Index)
		if err != nil {
			return nil, err
		}
		t := NTttcpThread{Index: int(index)}
		if t.Seconds, err = figure("a thread's realtime", e.Seconds); err != nil {
			return nil, err
		}
		if t.Throughput, err = e.Rates.bits("a thread's throughput"); err != nil {
			return nil, err
		}
		if t.PerCompletion, err = figure("a thread's avg_bytes_per_compl", e.PerCall); err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	return threads, nil
}
