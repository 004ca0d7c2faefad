package follow

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
)

// The store is reached from the node's network namespace, where 127.0.0.1 is another address than
// on the host. An error must say so.
func TestTheErrorOfAStoreOutsideTheNodesNamespaceSaysSo(t *testing.T) {
	t.Parallel()
	here := agenttest.NewSpace(t, "store")
	for _, c := range []config.Config{
		{Store: "etcd+insecure://127.0.0.1:2379"},
		{Store: "embedded", StoreListen: "192.0.2.7:2379", StoreInsecure: true},
	} {
		c.Node, c.Netns, c.StateDir = "a", here.Name, filepath.Join(t.TempDir(), "state")
		_, s, err := openStore(c.WithDefaults(), here)
		if err == nil {
			defer s.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			_, err = s.Read(ctx, 0)
		}
		must.Fail(t, err, "network namespace "+here.Name)
	}
}
