package fleet

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

func TestARepeatedRequestMakesOneObject(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	p := port("x")
	p.Origin, p.Owner = model.CNI, "net/1234/eth0"
	first := add(t, f, p)
	again, isNew, err := f.AddPort(ctx(t), model.PortRequest{Port: p})
	if err != nil || isNew || again.IPs[0] != first.IPs[0] || again.MAC != first.MAC {
		t.Errorf("%v, new %v, %v", again, isNew, err)
	}
	p.Owner = "net/other/eth0"
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p}); !IsWhy(err, Exists) {
		t.Errorf("another's port of that name: %v", err)
	}
}

func TestAnInvalidPortIsRefusedAndNothingIsWritten(t *testing.T) {
	f := open(t)
	s := small()
	s.Routes = []model.Route{{Network: "red", Prefix: prefixes("10.1.0.40/32")[0], Discard: true}}
	apply(t, f, s)
	x := add(t, f, port("x", "10.1.0.9"))
	before := state(t, f)
	change := func(c func(*model.Port)) model.Port {
		p := port("y", "10.1.0.10")
		c(&p)
		return p
	}
	for want, p := range map[string]model.Port{
		`there is no network "rad"; did you mean "red"?`: change(func(p *model.Port) { p.Network = "rad" }),
		`there is no node "c"`:                           change(func(p *model.Port) { p.Node = "c" }),
		`there is no policy "wob"; did you mean "web"?`:  change(func(p *model.Port) { p.Policies = []string{"wob"} }),
		`10.1.0.9 is already used by port "x"`:           change(func(p *model.Port) { p.IPs = x.IPs }),
		`is already used by port "x"`:                    change(func(p *model.Port) { p.MAC = x.MAC }),
		`is in no subnet of network "red"`:               change(func(p *model.Port) { p.IPs = []model.Port{port("", "10.2.0.1")}[0].IPs }),
		`is the gateway of subnet`:                       change(func(p *model.Port) { p.IPs = []model.Port{port("", "10.1.0.1")}[0].IPs }),
		`already leads to 10.1.0.40/32`:                  change(func(p *model.Port) { p.IPs = []model.Port{port("", "10.1.0.40")}[0].IPs }),
		`port "x" is already attached there`:             change(func(p *model.Port) { p.Attach = x.Attach }),
		`up to 63 letters`:                               change(func(p *model.Port) { p.Name = "no/name" }),
		`port "x" already exists, on node a`:             change(func(p *model.Port) { p.Name = "x" }),
	} {
		if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if after := state(t, f); len(after.Ports) != len(before.Ports) {
		t.Errorf("%d ports", len(after.Ports))
	}
}

func TestAPortThatOthersNeedStays(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	add(t, f, port("x"))
	must.Succeed(t, f.PutRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.9.0.0/16")[0], Via: []model.Via{{Port: "x"}}}))
	if _, err := f.DeletePort(ctx(t), "x", nil); !IsWhy(err, InUse) || !strings.Contains(err.Error(), "10.9.0.0/16") {
		t.Errorf("a route leads through it: %v", err)
	}
	must.Succeed(t, f.DeleteRoute(ctx(t), model.Route{Network: "red", Prefix: prefixes("10.9.0.0/16")[0]}))
	if _, err := f.DeletePort(ctx(t), "x", nil); err != nil {
		t.Error(err)
	}
	if _, err := f.DeletePort(ctx(t), "x", nil); !IsWhy(err, NotFound) {
		t.Errorf("a second time: %v", err)
	}
	state(t, f)
}

func TestUpdatePortChangesOnlyTheAttachment(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	p := port("x")
	p.Attach = model.Attachment{}
	add(t, f, p)
	got, err := f.UpdatePort(ctx(t), "x", func(p *model.Port) error { p.Attach.Device = "tap0"; return nil })
	if err != nil || got.Attach.Device != "tap0" || state(t, f).Ports[0].Attach.Device != "tap0" {
		t.Errorf("the port is %v (%v), want device tap0", got, err)
	}
	if _, err := f.UpdatePort(ctx(t), "x", func(p *model.Port) error { p.IPs = nil; return nil }); !IsWhy(err, Invalid) {
		t.Errorf("its addresses changed: %v", err)
	}
}
