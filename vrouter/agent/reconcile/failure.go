package reconcile

import (
	"math/rand/v2"
	"time"
)

// Object is a part of the node that can fail while the others work.
type Object struct{ Kind, Name string }

// Kinds of objects.
const (
	kindPort    = "port"
	kindNetwork = "network"
	kindDevice  = "device"
	kindNode    = "node"
)

// Objects of the node.
var (
	theState      = Object{kindNode, "state"}
	theDevices    = Object{kindNode, "devices"}
	theUnderlay   = Object{kindNode, "underlay"}
	thePins       = Object{kindNode, "pins"}
	theLocator    = Object{kindNode, "locator"}
	theTables     = Object{kindNode, "tables"}
	theLabels     = Object{kindNode, "labels"}
	thePrograms   = Object{kindNode, "programs"}
	theNeighbours = Object{kindNode, "neighbours"}
	theAccess     = Object{kindNode, "node_access"}
	theVXLANPort  = Object{kindNode, "vxlan_port"}
)

func portObject(name string) Object { return Object{kindPort, name} }

// isMild reports whether the node forwards correctly although the object is not applied.
func (o Object) isMild() bool { return o == theLocator || o == theVXLANPort }

// Failure is an object that is not in force.
type Failure struct {
	Text  string    // names the object and the reason
	Tries int       // number of failed attempts in a row
	Next  time.Time // next attempt; zero: after a change of the desired state, or at the next check for drift
	tried time.Time // last attempt
	kept  bool      // this pass made no attempt
}

// firstRetry is the wait after the first failure of an object. It doubles with each further
// failure, up to the interval of checks for drift.
const firstRetry = 100 * time.Millisecond

// fail records that an object is not in force, and when the agent tries again.
func (p *Pass) fail(o Object, err error) {
	f := Failure{Text: err.Error(), Tries: 1, tried: time.Now()}
	if o.Kind == kindPort {
		f.Text = "port " + o.Name + ": " + f.Text
	}
	was := p.failureBefore(o)
	if f.Tries = was.Tries + 1; f.tried.Before(was.Next) {
		f.Tries, f.Next = was.Tries, was.Next // an attempt for another reason does not delay the next one
	} else {
		wait := min(firstRetry<<min(was.Tries, 20), p.r.config.RepairInterval)
		f.Next = f.tried.Add(wait/2 + rand.N(wait/2+1))
	}
	p.note(o, f)
}

// block records that an object is not in force until the desired state or the kernel's state
// changes. The agent does not try again before that.
func (p *Pass) block(o Object, text string) { p.note(o, Failure{Text: text, Tries: 1}) }

// note records a failure. It adds the text to an earlier failure of the object in this pass.
func (p *Pass) note(o Object, f Failure) {
	if has, failed := p.Failures[o]; failed {
		f.Text = has.Text + "; " + f.Text
	}
	p.Failures[o] = f
}

// failed reports whether an object is not in force.
func (p *Pass) failed(o Object) bool {
	_, failed := p.Failures[o]
	return failed
}

// waits reports whether the next attempt for an object that failed in an earlier pass is not
// due. Then the object keeps its failure. Passes that check everything try all objects.
func (p *Pass) waits(o Object) bool {
	if has, failed := p.Failures[o]; failed {
		return has.kept
	}
	was := p.failureBefore(o)
	if !p.isPartial() || !time.Now().Before(was.Next) {
		return false
	}
	was.kept = true
	p.Failures[o] = was
	return true
}

// failureBefore returns the failure of an object in the last pass; zero: it had none.
func (p *Pass) failureBefore(o Object) Failure {
	if p.r.Last == nil {
		return Failure{}
	}
	return p.r.Last.Failures[o]
}

// NextRetry returns the time until the next attempt for objects that failed; false: there is
// none. Passes for retries use at most 1/4 of a CPU. The time does not depend on when NextRetry
// is called, so frequent requests do not delay the attempt.
func (r *Reconciler) NextRetry() (wait time.Duration, is bool) {
	var next time.Time
	for _, f := range r.Last.Failures {
		if !f.Next.IsZero() && (next.IsZero() || f.Next.Before(next)) {
			next = f.Next
		}
	}
	return max(time.Until(next), time.Until(r.retryFrom)), !next.IsZero() && !r.ended
}

// RetrySoon is called after the kernel has reported a change. The next attempt of each failed
// object is then due at once, but not within firstRetry after its last attempt.
func (r *Reconciler) RetrySoon() {
	for o, f := range r.Last.Failures {
		if soon := f.tried.Add(firstRetry); soon.Before(f.Next) {
			f.Next = soon
			r.Last.Failures[o] = f
		}
	}
}
