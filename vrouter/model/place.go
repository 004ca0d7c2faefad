package model

import "cmp"

// Place is where a port is attached. Two ports cannot have the same place.
type Place struct {
	node    string
	network string // of a port that connects the node itself
	netns   string
	device  string
}

// Place returns the place of a port; false: the port is not attached yet.
func (p *Port) Place() (at Place, attached bool) {
	a := &p.Attach
	at = Place{node: p.Node, netns: a.Netns, device: a.Device}
	switch {
	case a.Host:
		at.network = p.Network
	case a.Netns != "":
		at.device = cmp.Or(a.Device, a.Interface, DefaultInterface)
	}
	return at, a.Host || a.Netns+a.Device != ""
}
