package datapath

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"windtunnel/vrouter/layout"
)

// DropEvent is one dropped packet.
type DropEvent struct {
	Time    time.Time
	Reason  uint32
	Vif     uint32 // 0: the fabric
	VRF     uint32
	Ifindex uint32
	Length  uint32
	Data    []byte // its first bytes, from the Ethernet header on
}

// DropLog calls f for each dropped packet until ctx is done. If the reader is too slow,
// drops are missing here, but not in the counters.
func (d *Datapath) DropLog(ctx context.Context, f func(DropEvent)) error {
	r, err := ringbuf.NewReader(d.maps.DropLog)
	if err != nil {
		return fmt.Errorf("read the drop log: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	defer r.Close()
	var record ringbuf.Record
	for {
		if err := r.ReadInto(&record); errors.Is(err, os.ErrClosed) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the drop log: %w", err)
		}
		e, err := decodeDropEvent(record.RawSample)
		if err != nil {
			return err
		}
		f(e)
	}
}

func decodeDropEvent(raw []byte) (DropEvent, error) {
	var v layout.DropEvent
	if err := binary.Read(bytes.NewReader(raw), binary.NativeEndian, &v); err != nil {
		return DropEvent{}, fmt.Errorf("read an entry of the drop log: %w", err)
	}
	now, err := monotonic()
	if err != nil {
		return DropEvent{}, err
	}
	return DropEvent{
		Time: time.Now().Add(-since(now, v.TimeNs)), Reason: v.Reason, Vif: v.Vif, VRF: v.VRF, Ifindex: v.Ifindex,
		Length: v.Length, Data: v.Data[:min(v.Captured, uint32(len(v.Data)))],
	}, nil
}
