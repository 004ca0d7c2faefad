package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func smallState() model.State {
	return model.State{
		Nodes:    []model.Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}},
		Networks: []model.Network{{Name: "red", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}},
		Ports: []model.Port{{
			Name: "p", Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 0, 1},
			IPs: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, Attach: model.Attachment{Netns: "n"},
		}},
	}
}

func TestKeptFilesAreReadAsTheyWereWritten(t *testing.T) {
	k := Kept{filepath.Join(t.TempDir(), "deep", "a"), "a"}
	if slice, err := k.loadSlice(); err != nil || slice != nil {
		t.Fatalf("of nothing: %v, %v", slice, err)
	}
	fresh, err := k.LoadNode()
	if err != nil || len(fresh.Instance) < 20 || fresh.Node != "a" {
		t.Fatalf("of nothing: %+v, %v", fresh, err)
	}
	must.Succeed(t, fresh.IDs.UnmarshalJSON([]byte(`{"nexthop":{"x":1}}`)))
	fresh.Leaving, fresh.Underlay = []string{"p"}, smallState().Nodes[0].Underlay
	must.Succeed(t, errors.Join(k.saveSlice(smallState().Slice("a")), k.saveNode(fresh)))
	slice := must.Get(k.loadSlice())(t)
	must.Equal(t, smallState(), slice.Whole(), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}))
	node := must.Get(k.LoadNode())(t)
	must.Equal(t, fresh, node, cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(fib.IDs{}))
	if text, err := json.Marshal(node.IDs); err != nil || string(text) != `{"nexthop":{"x":1}}` {
		t.Errorf("the numbers are %s (%v)", text, err)
	}
	if info, err := os.Stat(k.slicePath()); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the state: %v %v", info.Mode(), err)
	}
}

func TestAnUnusableFileIsRefusedAndUnchanged(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"cut short":      {`{"version":1,"node":"a","state":{"no`, "the file is damaged"},
		"empty":          {``, "the file is damaged"},
		"no version":     {`{"node":"a","state":{}}`, "version is missing or 0"},
		"version 0":      {`{"version":0,"node":"a","state":{}}`, "version is missing or 0"},
		"newer":          {`{"version":3,"node":"a","state":{},"more":1}`, "the file has version 3, but this agent supports only versions up to 2"},
		"another node's": {`{"version":1,"node":"b","state":{}}`, `the file belongs to node "b", but this agent runs node "a"`},
		"unknown field":  {`{"version":1,"node":"a","state":{"colour":1}}`, `unknown field "colour"`},
		"two values":     {`{"version":1,"node":"a","state":{}} {}`, "the file is damaged"},
		"wrong type":     {`{"version":1,"node":"a","state":{"nodes":3}}`, "field state.nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			k := Kept{t.TempDir(), "a"}
			must.Succeed(t, os.WriteFile(k.slicePath(), []byte(c.text), 0o600))
			_, err := k.loadSlice()
			must.Fail(t, err, c.want, k.slicePath(), "move the file to another directory")
			if now, err := os.ReadFile(k.slicePath()); err != nil || string(now) != c.text {
				t.Errorf("the file is now %q (%v)", now, err)
			}
		})
	}
}

func TestANodeWithoutNumbersIsDamaged(t *testing.T) {
	k := Kept{t.TempDir(), "a"}
	for text, want := range map[string]string{
		`{"version":1,"node":"a","instance":"i","ids":null}`:                           "ids or instance is missing",
		`{"version":1,"node":"a","instance":"","ids":{}}`:                              "ids or instance is missing",
		`{"version":1,"node":"a","instance":"i","ids":{"nexthop":{"x":1,"y":1}}}`:      "which is 0 or used twice",
		`{"version":1,"node":"a","instance":"i","ids":{"nexthop":{"x":1}},"state":{}}`: `unknown field "state"`,
		`{"version":1,"node":"a","instance":"i","ids":{},"underlay":["no address"]}`:   "damaged",
	} {
		must.Succeed(t, os.WriteFile(k.nodePath(), []byte(text), 0o600))
		_, err := k.LoadNode()
		must.Fail(t, err, want)
	}
}

func TestAFullDiskRefusesAndLeavesTheOldFile(t *testing.T) {
	k := Kept{agenttest.TinyDisk(t), "a"}
	must.Succeed(t, k.saveSlice(smallState().Slice("a")))
	large := smallState()
	for i := range 8000 {
		large.Networks = append(large.Networks, model.Network{Name: fmt.Sprint("network-", i), ID: uint32(i + 2)})
	}
	err := k.saveSlice(large.Slice("a"))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "free disk space or repair the directory") {
		t.Fatalf("error %v", err)
	}
	old, err := k.loadSlice()
	if err != nil || len(old.Networks) != 1 {
		t.Errorf("kept %+v, %v; want the old state", old, err)
	}
	left, err := os.ReadDir(k.dir)
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestPartialFilesOfACrashAreDeletedAndOtherFilesStay(t *testing.T) {
	k := Kept{t.TempDir(), "a"}
	stranger := filepath.Join(k.dir, "notes.txt")
	for _, path := range []string{filepath.Join(k.dir, ".node.json123"), stranger} {
		must.Succeed(t, os.WriteFile(path, []byte("{"), 0o600))
	}
	must.Succeed(t, k.saveSlice(smallState().Slice("a")))
	k.removePartialFiles()
	names := func() (all []string) {
		entries := must.Get(os.ReadDir(k.dir))(t)
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	must.Equal(t, []string{"notes.txt", "slice.json"}, names())
	must.Succeed(t, k.Remove())
	must.Equal(t, []string{"notes.txt"}, names())
	if err := k.Remove(); err != nil {
		t.Errorf("removing again: %v", err)
	}
}

func FuzzSliceFile(f *testing.F) {
	for _, text := range []string{`{"version":1,"node":"a","state":{}}`, `{"version":1,"node":"a","state":{"ports":[{"name":"p","mac":"02:00:00:00:00:01"}]}}`, `{"version":9}`, `[]`, `nul`} {
		f.Add([]byte(text))
	}
	k := Kept{f.TempDir(), "a"}
	f.Fuzz(func(t *testing.T, text []byte) {
		must.Succeed(t, os.WriteFile(k.slicePath(), text, 0o600))
		slice, err := k.loadSlice()
		if (slice == nil) == (err == nil) {
			t.Fatalf("state %v, error %v", slice, err)
		}
	})
}

// Without the file, the agent would believe that an operator made its entry in the store, and would
// never change the entry's addresses.
func TestANodeIsNotAddedWithoutItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	k := Kept{filepath.Join(file, "a"), "a"}
	if err := k.noteRegistered(func() error { t.Error("the node was added"); return nil }); err == nil || k.isRegistered() {
		t.Errorf("where no directory can be made: %v", err)
	}
	k = Kept{filepath.Join(t.TempDir(), "a"), "a"}
	refused := errors.New("refused")
	for _, want := range []error{refused, nil} {
		err := k.noteRegistered(func() error {
			if !k.isRegistered() {
				t.Error("the node was added before its file")
			}
			return want
		})
		if !errors.Is(err, want) || k.isRegistered() != (want == nil) {
			t.Errorf("the store's answer was %v: the error is %v, registered %v", want, err, k.isRegistered())
		}
	}
}

// A removal with the embedded store must also delete the file registeredPath. Otherwise the next removal would delete a
// node that an operator added to another store.
func TestWithItsEmbeddedStoreANodesNoteIsDeleted(t *testing.T) {
	c := config.Config{Node: "a", StateDir: filepath.Join(t.TempDir(), "a"), Store: "embedded"}
	k := KeptOf(c)
	must.Succeed(t, errors.Join(k.noteRegistered(func() error { return nil }), k.Remove()))
	if !k.isRegistered() {
		t.Error("the file that the agent added the node is deleted before the node has left the fleet")
	}
	must.Equal(t, 0, must.Get(LeaveFleet(t.Context(), c))(t))
	if _, err := os.Stat(c.StateDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state directory after the removal: %v", err)
	}
}
