package fleet

import (
	"context"
	"errors"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/store"
)

// leaderTTL is the time after which another client leads if the leader has died.
const leaderTTL = 15 * time.Second

// leaveWait is the maximum time for which a leader that ends waits for the store to delete its key.
const leaveWait = 3 * time.Second

// Lead calls work while this client has the key leader of the store, which only one client can
// have, until ctx ends. The context of work ends when the key is lost. name identifies the client.
func (f *Fleet) Lead(ctx context.Context, name string, work func(context.Context)) {
	for ctx.Err() == nil {
		err := f.leadOnce(ctx, name, work)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("become the leader", "error", err)
		}
		_ = pause.For(ctx, time.Second) // the loop tests ctx
	}
}

func (f *Fleet) leadOnce(ctx context.Context, name string, work func(context.Context)) error {
	if f.await(ctx, func() bool { return f.view != nil && f.view.revisions[keyLeader] == 0 }) != nil {
		return nil // ctx has ended
	}
	if err := f.refused(); err != nil {
		return err
	}
	leading, end := context.WithCancel(ctx)
	defer end()
	lost, err := f.store.Hold(leading, keyLeader, encode(name), 0, leaderTTL)
	if err != nil {
		if errors.As(err, new(*store.ConflictError)) {
			return nil // another client was faster
		}
		return err
	}
	f.log.Info("this client leads", "name", name)
	ended := make(chan struct{})
	go func() { defer close(ended); work(leading) }()
	select {
	case <-lost:
	case <-ended:
	}
	end()
	<-ended
	if ctx.Err() == nil {
		return errors.New("the key of the leader was lost")
	}
	// The next leader need not wait until the key expires.
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWait)
	defer cancel()
	_, err = f.commit(leave, store.Commit{Delete: []string{keyLeader}})
	return err
}
