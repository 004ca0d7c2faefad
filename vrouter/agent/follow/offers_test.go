package follow

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func TestOffersAreKept(t *testing.T) {
	k := Kept{dir: t.TempDir(), node: "a"}
	if none, err := k.loadOffers(); err != nil || len(none.Pairs) != 0 {
		t.Fatalf("without a file the offers are %+v, %v, want none", none, err)
	}
	nodes := func(e model.Encapsulation) []model.Node {
		return []model.Node{{Name: "a", Encapsulations: []model.Encapsulation{e}}, {Name: "b", Encapsulations: []model.Encapsulation{e}}}
	}
	reached := func(model.Node) bool { return true }
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := (&fib.Offers{}).Next(nodes(model.VXLAN), "a", reached, now).Next(nodes(model.MPLSoUDP), "a", reached, now)
	must.Succeed(t, k.saveOffers(want))
	got, err := k.loadOffers()
	if d := cmp.Diff(want, got, cmp.Comparer(func(x, y netip.Prefix) bool { return x == y })); err != nil || d != "" {
		t.Errorf("the offers that were read differ, %v (-want +got):\n%s", err, d)
	}
	must.Succeed(t, os.WriteFile(k.offersPath(), []byte("{"), 0o600))
	_, err = k.loadOffers()
	must.Fail(t, err, k.offersPath())
	must.Succeed(t, k.Remove())
	if _, err := os.Stat(k.dir); !os.IsNotExist(err) {
		t.Errorf("after Remove the directory is still there: %v", err)
	}
}
