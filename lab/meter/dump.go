package meter

import (
	"errors"

	"github.com/vishvananda/netlink"
)

const dumpAttempts = 3

// retryDump repeats a netlink dump that the kernel marked as inconsistent
// because of a change during the dump. If the namespace changes all the time,
// the last attempt is used: its entries are complete.
func retryDump[T any](dump func() ([]T, error)) (list []T, err error) {
	for range dumpAttempts {
		list, err = dump()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return list, nil
}
