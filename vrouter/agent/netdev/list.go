package netdev

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// maxListRetries is the maximum number of retries if objects change while list reads
// them.
const maxListRetries = 10

// list reads objects from the kernel by netlink. It retries if the objects changed
// while it read them (NLM_F_DUMP_INTR).
func list[T any](what string, ask func() ([]T, error)) ([]T, error) {
	for try := 0; ; try++ {
		all, err := ask()
		if err == nil {
			return all, nil
		}
		if !errors.Is(err, netlink.ErrDumpInterrupted) || try == maxListRetries {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
	}
}

// Links lists the devices of a namespace.
func Links(h *netlink.Handle) ([]netlink.Link, error) {
	return list("devices", h.LinkList)
}

// Routes lists the routes of a family in a namespace.
func Routes(h *netlink.Handle, family int) ([]netlink.Route, error) {
	return list("routes", func() ([]netlink.Route, error) { return h.RouteList(nil, family) })
}

func listAddresses(h *netlink.Handle) ([]netlink.Addr, error) {
	return list("addresses", func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
}

func listQueues(h *netlink.Handle) ([]netlink.Qdisc, error) {
	return list("queueing disciplines", func() ([]netlink.Qdisc, error) { return h.QdiscList(nil) })
}
