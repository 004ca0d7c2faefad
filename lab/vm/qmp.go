package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"windtunnel/internal/pause"
)

// qmp is a connection to a running QEMU (docs/interop/qmp-spec.txt in QEMU's
// source). Both directions carry one JSON object per line, and events come between
// answers. The lab sends one command only, so it uses no library.
type qmp struct {
	conn net.Conn
	in   *json.Decoder
}

// qmpTime limits each exchange.
const qmpTime = 5 * time.Second

// dialQMP connects and completes the negotiation.
func dialQMP(ctx context.Context, path string) (*qmp, error) {
	conn, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	q := &qmp{conn, json.NewDecoder(conn)}
	if err := conn.SetDeadline(time.Now().Add(qmpTime)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var greeting struct {
		QMP json.RawMessage `json:"QMP"`
	}
	if err := q.in.Decode(&greeting); err != nil || greeting.QMP == nil {
		return nil, errors.Join(fmt.Errorf("QEMU does not greet: %w", err), conn.Close())
	}
	if err := q.do("qmp_capabilities", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return q, nil
}

// do runs a command; result may be nil.
func (q *qmp) do(command string, result any) error {
	if err := q.conn.SetDeadline(time.Now().Add(qmpTime)); err != nil {
		return err
	}
	if err := json.NewEncoder(q.conn).Encode(map[string]string{"execute": command}); err != nil {
		return fmt.Errorf("send QEMU the command %s: %w", command, err)
	}
	for {
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct {
				Class, Desc string
			} `json:"error"`
		}
		if err := q.in.Decode(&answer); err != nil {
			return fmt.Errorf("read QEMU's answer to %s: %w", command, err)
		}
		switch {
		case answer.Error != nil:
			return fmt.Errorf("QEMU refuses %s: %s (%s)", command, answer.Error.Desc, answer.Error.Class)
		case answer.Return == nil: // an event
		case result == nil:
			return nil
		default:
			if err := json.Unmarshal(answer.Return, result); err != nil {
				return fmt.Errorf("understand QEMU's answer to %s: %w", command, err)
			}
			return nil
		}
	}
}

// vcpus returns the thread ids of the virtual CPUs, in the order of the CPUs.
func (q *qmp) vcpus() ([]int, error) {
	var cpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}
	if err := q.do("query-cpus-fast", &cpus); err != nil {
		return nil, err
	}
	threads := make([]int, len(cpus))
	for _, c := range cpus {
		if c.Index < 0 || c.Index >= len(cpus) || c.Thread <= 0 {
			return nil, fmt.Errorf("QEMU names CPU %d of %d with thread %d", c.Index, len(cpus), c.Thread)
		}
		threads[c.Index] = c.Thread
	}
	return threads, nil
}

// dial connects to a unix socket that a starting program will make soon.
func dial(ctx context.Context, path string) (net.Conn, error) {
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		if pause.For(ctx, 5*time.Millisecond) != nil {
			return nil, fmt.Errorf("connect to %s: %w", path, err)
		}
	}
}
