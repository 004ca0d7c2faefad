package fleet

import (
	"context"
	"errors"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// With roles, a node can write only the ports of this node. An operator can write
// everything. A deleted user can write nothing.
func TestANodesRoleAllowsOnlyItsOwnPorts(t *testing.T) {
	t.Parallel()
	files := storetest.NewClusterCertificates(t)
	c := storetest.Start(t, 1, files)
	address, err := store.ParseAddress("etcd://" + c.Endpoints())
	must.Succeed(t, err)
	as := func(name string) store.TLS {
		cert, key := files.Client(t, name)
		return store.TLS{CA: files.CA, Cert: cert, Key: key}
	}
	open := func(name string) *Fleet {
		s := must.Get(store.OpenEtcd(address, as(name), c.Dial))(t)
		t.Cleanup(func() { s.Close() })
		return followWith(t, s, Options{}) // a user without a role reads nothing
	}
	admin := must.Get(store.OpenAdmin(address, as("admin"), c.Dial))(t)
	t.Cleanup(func() { admin.Close() })
	ops, a, b := open("ops"), open("a"), open("b")
	s := small()
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 2, Subnets: prefixes("10.2.0.0/24")})
	apply(t, ops, s)

	if on, err := admin.RolesEnabled(ctx(t)); err != nil || on {
		t.Fatalf("before EnableRoles: RolesEnabled returns %v, %v, want false", on, err)
	}
	must.Get(admin.EnableRoles(ctx(t), "admin", false))(t)
	if on, err := admin.RolesEnabled(ctx(t)); err != nil || !on {
		t.Fatalf("after EnableRoles: RolesEnabled returns %v, %v, want true", on, err)
	}

	for role, ranges := range map[string][]store.Range{"a": NodeRole("a"), "b": NodeRole("b", "red"), "ops": OperatorRole()} {
		for i, want := range []bool{true, false} {
			if changed, err := admin.SetRole(ctx(t), admin.Role(role), ranges); err != nil || changed != want {
				t.Fatalf("SetRole(%s), call %d: changed is %v, want %v; %v", role, i+1, changed, want, err)
			}
		}
		must.Get(admin.SetUser(ctx(t), role, admin.Role(role)))(t)
	}
	x := add(t, a, port("x"))
	onB := port("y")
	onB.Node = "b"
	y := add(t, b, onB)
	must.Succeed(t, a.awaitPort(t, "y"))
	_, err = a.UpdatePort(ctx(t), "x", func(p *model.Port) error { p.Attach.Interface = "eth9"; return nil })
	must.Succeed(t, err)
	lease, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	must.Get(a.store.Hold(lease, inAlive+"a", []byte("{}"), 0, a.absence.lease))(t)

	blue := model.Port{Name: "z", Network: "blue", Node: "b", Origin: model.Added}
	for what, try := range map[string]func() error{
		"deletes node b's port": func() error { _, err := a.DeletePort(ctx(t), "y", nil); return err },
		"changes node b's port": func() error { return commit(a, portKey(y), encode(x)) },
		"adds a port of node b": func() error {
			_, _, err := a.AddPort(ctx(t), model.PortRequest{Port: func() model.Port { p := port("z"); p.Node = "b"; return p }()})
			return err
		},
		"writes the key objects":    func() error { return commit(a, keyObjects, nil) },
		"writes node b's alive key": func() error { return commit(a, inAlive+"b", []byte("{}")) },
		"holds node b's alive key": func() error {
			_, err := a.store.Hold(ctx(t), inAlive+"b", []byte("{}"), 0, a.absence.lease)
			return err
		},
		"adds a network": func() error {
			_, err := a.AddNetwork(ctx(t), model.Network{Name: "n", Subnets: prefixes("10.9.0.0/24")})
			return err
		},
		"changes the record of its node": func() error { return commit(a, inNodes+"a", encode(s.Nodes[1])) },
		"writes a policy":                func() error { return a.PutPolicy(ctx(t), model.Policy{Name: "p"}) },
		"writes a route": func() error {
			return a.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("0.0.0.0/0")[0], Discard: true})
		},
		"writes the settings":   func() error { return commit(a, keySettings, encode(model.Settings{AnySource: true})) },
		"writes the schema":     func() error { return commit(a, keySchema, encode(schema{9})) },
		"applies a document":    func() error { d := s; d.Settings.AnySource = true; return a.Apply(ctx(t), d) },
		"writes an unknown key": func() error { return commit(a, "other", nil) },
		"adds a port in a network that its role does not allow": func() error { _, _, err := b.AddPort(ctx(t), model.PortRequest{Port: blue}); return err },
		"whose certificate has no user writes an alive key":     func() error { return commit(open("nobody"), inAlive+"nobody", nil) },
		"gives the operator's role to its user": func() error {
			s, err := store.OpenAdmin(address, as("a"), c.Dial)
			must.Succeed(t, err)
			defer s.Close()
			_, err = s.SetUser(ctx(t), "a", s.Role("ops"))
			return err
		},
	} {
		if err := try(); !errors.Is(err, store.ErrDenied) {
			t.Errorf("a node %s: error %v, want ErrDenied", what, err)
		}
	}

	must.Get(ops.AddNetwork(ctx(t), model.Network{Name: "green", Subnets: prefixes("10.3.0.0/24")}))(t)
	must.Succeed(t, ops.awaitPort(t, "y"))
	must.Get(ops.DeletePort(ctx(t), "y", nil))(t)

	must.Get(admin.Revoke(ctx(t), "a", ""))(t)
	if _, err := a.DeletePort(ctx(t), "x", nil); !errors.Is(err, store.ErrDenied) {
		t.Errorf("the deleted user of node a deletes port x: error %v, want ErrDenied", err)
	}
	must.Get(ops.DeletePort(ctx(t), "x", nil))(t)
}

func commit(f *Fleet, key string, value []byte) error {
	_, err := f.store.Commit(context.Background(), store.Commit{Put: map[string][]byte{key: value}})
	return err
}

func (f *Fleet) awaitPort(t *testing.T, name string) error {
	return f.await(ctx(t), func() bool { return f.view != nil && f.view.ports[name] != nil })
}
