package fleet

import (
	"crypto/rand"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// draft builds a commit: the keys that the commit depends on, writes and
// deletes.
type draft struct {
	view    *View
	commit  store.Commit
	refused error // the reason why the commit must not be made
}

// draft begins a commit that fails if an object that is not a port has changed since the
// view.
func (v *View) draft() *draft {
	d := &draft{view: v, commit: store.Commit{Exact: map[string]int64{}, Ranges: map[string]int64{}, Put: map[string][]byte{}}}
	return d.exact(keyObjects)
}

// exact makes the commit fail if one of the keys has another revision than in
// the view.
func (d *draft) exact(keys ...string) *draft {
	for _, key := range keys {
		d.commit.Exact[key] = d.view.revisionOf(key)
	}
	return d
}

// within makes the commit fail if a key under one of the prefixes was written
// after the view. It does not detect deletions.
func (d *draft) within(prefixes ...string) *draft {
	for _, prefix := range prefixes {
		d.commit.Ranges[prefix] = d.view.revision
	}
	return d
}

func (d *draft) put(key string, value any) *draft {
	d.commit.Put[key] = encode(value)
	return d
}

// object says that the commit changes an object that is not a port.
func (d *draft) object() *draft {
	d.commit.Put[keyObjects] = nil
	return d
}

// list puts the key of a place, unless it exists. The commit fails if another commit deletes
// or creates that key.
func (d *draft) list(p place) *draft {
	if d.exact(p.key()); d.view.revisions[p.key()] == 0 {
		d.commit.Put[p.key()] = nil
	}
	return d
}

func (d *draft) delete(keys ...string) *draft {
	d.commit.Delete = append(d.commit.Delete, keys...)
	return d
}

// valid refuses an invalid state.
func valid(s model.State) error {
	if err := s.Validate(); err != nil {
		return &Refusal{Invalid, err}
	}
	return nil
}

// validWith refuses a change that makes the state invalid. If the state is invalid before
// the change, validWith ignores the invalid objects, and nodes that cannot reach each other:
// if a node writes an invalid port, other nodes must still be able to change their objects.
// change must not modify the slices of its argument.
func validWith(before model.State, change func(model.State) model.State) error {
	err := valid(change(before))
	if err == nil {
		return nil
	}
	if before.Validate() == nil {
		return err
	}
	sound, _ := before.Sound()
	if _, err := change(sound).Sound(); err != nil {
		return &Refusal{Invalid, err}
	}
	return nil
}

// checkSchema makes a commit fail if the store's schema has changed. If the
// store has no schema, the commit also writes it, and the store's id. It does not change an empty
// commit.
func (v *View) checkSchema(c *store.Commit) {
	if len(c.Put)+len(c.Delete) == 0 {
		return
	}
	c.Exact[keySchema] = v.revisions[keySchema]
	if v.revisions[keySchema] == 0 {
		if c.Put == nil {
			c.Put = map[string][]byte{}
		}
		c.Put[keySchema], c.Put[keyID] = encode(schema{schemaVersion}), encode(rand.Text())
	}
}
