package store

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store/storetest"
)

// The embedded store accepts certain requests only from an administrator. It refuses them from
// the user of a node, and from a client with a certificate but without a user, such as a
// revoked node.
func TestANodeDoesNotUseAnAdministratorsRequests(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	listen := free.Addr().String()
	free.Close()
	files := storetest.NewCertificates(t, "127.0.0.1")
	server, err := OpenEmbedded(EmbeddedOptions{Dir: t.TempDir(), Listen: listen, TLS: TLS{CA: files.CA, Cert: files.ServerCert, Key: files.ServerKey}})
	must.Succeed(t, err)
	defer server.Close()
	a := must.Get(ParseAddress("etcd://" + listen))(t)
	as := func(name string) TLS {
		cert, key := files.Client(t, name)
		return TLS{CA: files.CA, Cert: cert, Key: key}
	}
	admin := must.Get(OpenAdmin(a, as("admin"), nil))(t)
	defer admin.Close()
	must.Get(admin.EnableRoles(ctx, "admin", false))(t)
	role := admin.Role("node/b")
	_, err = admin.SetRole(ctx, role, []Range{{Prefix: true}, {Key: "node-ports/b/", Prefix: true, Write: true}})
	must.Succeed(t, err)
	must.Get(admin.SetUser(ctx, "b", role))(t)
	must.Get(admin.Hold(ctx, "alive/a", nil, 0, time.Minute))(t)
	got := must.Get(admin.client.Get(ctx, admin.prefix+"alive/a"))(t)
	lease := clientv3.LeaseID(got.Kvs[0].Lease)

	for _, user := range []string{"b", "stranger"} {
		e := must.Get(OpenEtcd(a, as(user), nil))(t)
		defer e.Close()
		x, at := e.client, "https://"+listen
		for what, try := range map[string]func() error{
			"ties a port to the lease of another node": func() error {
				_, err := x.Put(ctx, e.prefix+"node-ports/b/x", "", clientv3.WithLease(lease))
				return err
			},
			"ends the lease of another node":   func() error { _, err := x.Revoke(ctx, lease); return err },
			"renews the lease of another node": func() error { _, err := x.KeepAliveOnce(ctx, lease); return err },
			"reads keys outside the fleet":     func() error { _, err := x.Get(ctx, "\x00", clientv3.WithFromKey()); return err },
			"compares keys outside the fleet": func() error {
				_, err := x.Txn(ctx).If(clientv3.Compare(clientv3.Version("/other"), "=", 0)).Commit()
				return err
			},
			"watches keys outside the fleet": func() error {
				r := <-x.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCreatedNotify())
				return r.Err()
			},
			"compacts the history":  func() error { _, err := x.Compact(ctx, got.Header.Revision); return err },
			"defragments the store": func() error { _, err := x.Defragment(ctx, at); return err },
			"copies the store": func() error {
				r, err := x.Snapshot(ctx)
				if err == nil {
					_, err = r.Read(make([]byte, 1))
				}
				return err
			},
			"raises the alarm that stops all writes": func() error {
				_, err := pb.NewMaintenanceClient(x.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
					Action: pb.AlarmRequest_ACTIVATE, MemberID: got.Header.MemberId, Alarm: pb.AlarmType_NOSPACE,
				})
				return err
			},
			"moves the leader":             func() error { _, err := x.MoveLeader(ctx, 1); return err },
			"adds a member":                func() error { _, err := x.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:1"}); return err },
			"removes a member":             func() error { _, err := x.MemberRemove(ctx, got.Header.MemberId); return err },
			"adds a user":                  func() error { _, err := x.UserAdd(ctx, "q", "q"); return err },
			"lists the users":              func() error { _, err := x.UserList(ctx); return err },
			"changes the password of root": func() error { _, err := x.UserChangePassword(ctx, RootUser, "q"); return err },
			"gives itself a password":      func() error { _, err := x.UserChangePassword(ctx, user, "q"); return err },
			"becomes root":                 func() error { _, err := x.UserGrantRole(ctx, user, RootUser); return err },
			"extends its role": func() error {
				_, err := x.RoleGrantPermission(ctx, role, "\x00", "\x00", clientv3.PermissionType(clientv3.PermReadWrite))
				return err
			},
			"disables the roles": func() error { _, err := x.AuthDisable(ctx); return err },
		} {
			if try() == nil {
				t.Errorf("user %s %s", user, what)
			}
		}
		tls := must.Get(as(user).config(a))(t)
		h := http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
		answer := must.Get(h.Post(at+"/v3/kv/put", "application/json", strings.NewReader(`{"key": "L3Zyb3V0ZXIvbmV0d29ya3Mveg==", "value": "eA=="}`)))(t)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Errorf("user %s writes a network over HTTP", user)
		}
	}
	i := must.Get(admin.Read(ctx, 0))(t)
	must.Equal(t, 1, len(i.Entries))
	if _, err := admin.Commit(ctx, Commit{Put: put("networks/n", "1")}); err != nil {
		t.Errorf("the administrator writes afterwards: %v", err)
	}
}
