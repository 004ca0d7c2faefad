package agent

import "time"

const (
	// guestPatience is the maximum wait for an answer of a guest's agent. It is
	// long, because a busy emulated guest answers slowly.
	guestPatience = 10 * time.Second
	// nodePatience is the maximum wait for an answer of a node's agent. It is longer
	// than guestPatience, so that the node's agent can report a guest that does not
	// answer.
	nodePatience = 15 * time.Second
)

// slow has the maximum durations of methods that may take longer than the client's
// patience.
var slow = map[string]time.Duration{
	"Hello":          bootTime, // a guest answers after its boot
	"ConfigureGuest": bootTime,
	"Attach":         2 * time.Minute, // daemons start one after the other; VMs boot
	"ProfileStop":    time.Minute,     // symbols are resolved
	"Survey":         time.Minute,     // kernel features are tried, programs are asked for their versions
	"Prepare":        time.Minute,     // a NIC that changes its namespace negotiates its link again
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
