package meter

import (
	"errors"

	"github.com/vishvananda/netlink"
)

const dumpAttempts = 3

// retryDump repeats a netlink dump that the kernel marked as torn by a change
// meanwhile. A namespace that never rests is read as it is after a few
// attempts: the entries that are there are whole.
func retryDump[T any](dump func() ([]T, error)) (list []T, err error) {
	for range dumpAttempts {
		list, err = dump()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return list, nil
}
