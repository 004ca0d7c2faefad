package config

import "net/netip"

// Locator is the locator with which the node adds itself to a shared store: a prefix, or with
// Auto one from the pool settings.locators of the fleet. Zero: none.
type Locator struct {
	Prefix netip.Prefix
	Auto   bool
}

// UnmarshalText parses a prefix or the word auto.
func (l *Locator) UnmarshalText(text []byte) error {
	if string(text) == string(Auto) {
		*l = Locator{Auto: true}
		return nil
	}
	return l.Prefix.UnmarshalText(text)
}
