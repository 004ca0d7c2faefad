package agent

import "time"

const (
	// guestPatience is long, because a busy emulated guest answers slowly.
	guestPatience = 10 * time.Second
	// nodePatience exceeds guestPatience, so that a node's agent can report a silent
	// guest.
	nodePatience = 15 * time.Second
)

// slow are the methods that may take longer than an agent's patience.
var slow = map[string]time.Duration{
	"Hello":       bootTime, // of a guest
	"Dress":       bootTime,
	"Attach":      2 * time.Minute, // daemons start one after the other; VMs boot
	"ProfileStop": time.Minute,     // symbols are resolved
}

// waiting is implemented by arguments that ask the agent to wait.
type waiting interface{ wait() time.Duration }

func (a FollowArgs) wait() time.Duration { return a.Wait }
func (a ListenArgs) wait() time.Duration { return a.Wait }
func (a ReachArgs) wait() time.Duration  { return a.Wait }

// deadline returns the maximum duration of a call.
func (c *Client) deadline(method string, args any) time.Duration {
	limit := max(c.patience, slow[method])
	if w, ok := args.(waiting); ok {
		limit += max(w.wait(), 0)
	}
	return limit
}
