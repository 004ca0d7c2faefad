package model

import (
	"fmt"
	"net/netip"
	"time"
)

// FlowExport configures the export of the flows of all nodes to an IPFIX collector (RFC 7011) over UDP. Zero: no export.
type FlowExport struct {
	Collector Collector `yaml:"collector" json:"collector,omitzero"`
	Active    Duration  `yaml:"active" json:"active,omitzero"` // interval between two records of a flow that has packets
	Idle      Duration  `yaml:"idle" json:"idle,omitzero"`     // a flow without a packet for this time is exported
}

// Defaults and limits of FlowExport.
const (
	defaultExportActive = Duration(time.Minute)
	defaultExportIdle   = Duration(15 * time.Second)
	leastExportTime     = Duration(time.Second)
	mostExportTime      = Duration(time.Hour)
)

// IsOn reports whether flows are exported.
func (f FlowExport) IsOn() bool { return f.Collector.IsValid() }

func (f FlowExport) withDefaults() FlowExport {
	if f.IsOn() && f.Active == 0 {
		f.Active = defaultExportActive
	}
	if f.IsOn() && f.Idle == 0 {
		f.Idle = defaultExportIdle
	}
	return f
}

func (v *validation) checkFlowExport() {
	f := v.s.Settings.FlowExport
	fail := func(format string, args ...any) {
		v.errs = append(v.errs, fmt.Errorf("settings: flow_export: "+format, args...))
	}
	if !f.IsOn() {
		if f != (FlowExport{}) {
			fail("collector is missing; write the address and UDP port of the collector, such as 192.0.2.9:4739")
		}
		return
	}
	if a := f.Collector.Addr(); f.Collector.Port() == 0 || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() || a.Zone() != "" {
		fail("collector: %s is not the address and UDP port of a host; write one such as 192.0.2.9:4739 or [2001:db8::9]:4739", f.Collector)
	}
	for i, d := range []Duration{f.Active, f.Idle} {
		if d != 0 && (d < leastExportTime || d > mostExportTime) {
			fail("%s: %s is not between %s and %s; choose a duration in this range", []string{"active", "idle"}[i], d, leastExportTime, mostExportTime)
		}
	}
}

// Collector is the address and UDP port of a collector.
type Collector struct{ netip.AddrPort }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Collector) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 { // MarshalText writes the zero value so
		*c = Collector{}
		return nil
	}
	if c.AddrPort, err = netip.ParseAddrPort(string(text)); err != nil {
		return fmt.Errorf("%q is not an address with a port; write one such as 192.0.2.9:4739 or [2001:db8::9]:4739", text)
	}
	return nil
}

// Duration is a duration such as 1m30s. In JSON it is a string.
type Duration time.Duration

// String formats a duration in the syntax of time.ParseDuration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number and a unit, such as 15s or 1m", text)
	}
	*d = Duration(parsed)
	return nil
}
