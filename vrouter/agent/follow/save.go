package follow

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// saveShare limits the CPU time for writing slice.json to 1/saveShare of a CPU.
const saveShare = 20

// saving writes the node's files after changes. It writes slice.json in the background,
// because a large slice takes longer to write than to apply.
type saving struct {
	node   []byte           // contents of node.json
	offers *fib.Offers      // contents of offers.json
	slices chan model.Slice // the newest slice that is not written yet; its capacity is 1
	mu     sync.Mutex       // held while slice.json is written
	ended  bool             // the node has been removed
}

// KeepSlice writes the ids and the offers to disk. It hands the desired state to saveSlices,
// which writes it in the background. An agent that starts while the store is unreachable reads
// these files.
func (f *Follower) KeepSlice() {
	if self, ok := f.reconciler.Want.Self(); ok {
		f.Own.Underlay = self.Underlay
	}
	f.Peek(func(v *fleet.View) { f.Own.Store = v.ID() })
	text, err := json.Marshal(f.Own, jsonv1.DefaultOptionsV1())
	if err == nil && !bytes.Equal(text, f.saving.node) {
		if err = f.Kept.saveText(f.Kept.nodePath(), text); err == nil {
			f.saving.node = text
		}
	}
	if offers := f.reconciler.Offers; offers != f.saving.offers {
		if failed := f.Kept.saveOffers(offers); failed == nil {
			f.saving.offers = offers
		} else {
			err = errors.Join(err, failed)
		}
	}
	f.warnUnsaved(err)
	if f.isRemote() {
		select {
		case <-f.saving.slices: // an older slice
		default:
		}
		f.saving.slices <- f.reconciler.Want.Slice
	}
}

func (f *Follower) warnUnsaved(err error) {
	if err != nil {
		f.log.Warn("cannot save the desired state: if the agent starts while the store is unreachable, it uses an older state", "error", err)
	}
}

// saveSlices writes the newest slices until ctx ends.
func (f *Follower) saveSlices(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case s := <-f.saving.slices:
			began := time.Now()
			f.saveSlice(s)
			_ = pause.For(ctx, saveShare*time.Since(began)) // the loop tests ctx
		case <-ctx.Done():
		}
	}
}

// saveLastSlice writes the newest slice if it is not written yet.
func (f *Follower) saveLastSlice() {
	select {
	case s := <-f.saving.slices:
		f.saveSlice(s)
	default:
	}
}

func (f *Follower) saveSlice(s model.Slice) {
	f.saving.mu.Lock()
	defer f.saving.mu.Unlock()
	if !f.saving.ended {
		f.warnUnsaved(f.Kept.saveSlice(s))
	}
}

// EndSaving ends the writing of slice.json. Call it before the node's files are deleted.
func (f *Follower) EndSaving() {
	f.saving.mu.Lock()
	defer f.saving.mu.Unlock()
	f.saving.ended = true
}
