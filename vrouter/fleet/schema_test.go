package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// A store with a newer schema is refused. A fleet that follows it stops writing.
func TestANewerStoreIsRefusedAndUnchanged(t *testing.T) {
	s := fileStore(t)
	f := New(s, Options{})
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx(t)) }()
	apply(t, f, small())
	must.Get(f.AddNetwork(ctx(t), model.Network{Name: "blue", Subnets: prefixes("10.2.0.0/16")}))(t)
	var written int64
	if !f.Peek(func(v *View) { written = v.revisions[keySchema] }) || written == 0 {
		t.Fatal("the store's schema was not written")
	}
	if _, err := s.Commit(context.Background(), store.Commit{Put: map[string][]byte{keySchema: []byte(`{"version": 5}`)}}); err != nil {
		t.Fatal(err)
	}
	var newer *SchemaError
	select {
	case err := <-ended:
		if !errors.As(err, &newer) || newer.Version != 5 {
			t.Errorf("Run of a store with schema 5: %v, want a SchemaError", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it is followed on")
	}
	before, _ := s.Read(context.Background(), 0)
	for what, err := range map[string]error{
		"a network": func() error {
			_, err := f.AddNetwork(ctx(t), model.Network{Name: "x", Subnets: prefixes("10.3.0.0/16")})
			return err
		}(),
		"a document": f.Apply(ctx(t), model.State{}),
		"a new copy": New(s, Options{}).Run(ctx(t)),
	} {
		if !errors.As(err, &newer) {
			t.Errorf("%s: error %v, want that the store is newer", what, err)
		}
	}
	if after, _ := s.Read(context.Background(), 0); after.Revision != before.Revision {
		t.Error("it was written to")
	}
}

// A store with an older schema is refused, and the error has a remedy.
func TestAnOlderStoreIsRefused(t *testing.T) {
	s := fileStore(t)
	must.Get(s.Commit(ctx(t), store.Commit{Put: map[string][]byte{keySchema: encode(schema{3})}}))(t)
	var other *SchemaError
	if err := New(s, Options{}).Run(ctx(t)); !errors.As(err, &other) || other.Version != 3 || !strings.Contains(err.Error(), "vrouter state") {
		t.Errorf("Run of a store with schema 3: %v, want a SchemaError with a remedy", err)
	}
}
