package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store/storetest"
)

// openAdmin starts a cluster and connects to it as the user admin.
func openAdmin(t *testing.T, files *storetest.Certificates) (*Admin, TLS) {
	t.Helper()
	c := storetest.Start(t, 1, files)
	a := must.Get(ParseAddress("etcd://" + c.Endpoints()))(t)
	cert, key := files.Client(t, "admin")
	tls := TLS{CA: files.CA, Cert: cert, Key: key}
	admin := must.Get(OpenAdmin(a, tls, c.Dial))(t)
	t.Cleanup(func() { admin.Close() })
	return admin, tls
}

// If etcd ignores client certificates, enabled roles would lock out all clients. So
// EnableRoles must disable them again.
func TestRolesAreNotEnabledWithoutCertificates(t *testing.T) {
	t.Parallel()
	files := storetest.NewClusterCertificates(t)
	files.Anonymous = true
	admin, _ := openAdmin(t, files)
	ctx := context.Background()
	_, err := admin.EnableRoles(ctx, "admin", false)
	must.Fail(t, err, "--client-cert-auth")
	if on, err := admin.RolesEnabled(ctx); err != nil || on {
		t.Errorf("after EnableRoles has failed: RolesEnabled returns %v, %v, want false", on, err)
	}
	if users, err := admin.client.UserList(ctx); err != nil || strings.Contains(fmt.Sprint(users.Users), trialUser) {
		t.Errorf("after EnableRoles has failed: users %v, error %v, want no user %s", users.Users, err, trialUser)
	}
	commit(t, admin, Commit{Put: put("a", "1")})
}

// HasForeignKeys finds keys of other programs, so that `vrouter store init` does not
// lock out their clients.
func TestKeysOfOtherProgramsAreNoticed(t *testing.T) {
	t.Parallel()
	admin, tls := openAdmin(t, storetest.NewClusterCertificates(t))
	if name, err := tls.CommonName(); err != nil || name != "admin" {
		t.Errorf("common name %q, %v, want \"admin\"", name, err)
	}
	commit(t, admin, Commit{Put: put("a", "1")})
	ctx := context.Background()
	if foreign, err := admin.HasForeignKeys(ctx); err != nil || foreign {
		t.Errorf("with keys of the fleet alone: HasForeignKeys returns %v, %v, want false", foreign, err)
	}
	must.Get(admin.client.Put(ctx, "/registry/x", "1"))(t)
	if foreign, err := admin.HasForeignKeys(ctx); err != nil || !foreign {
		t.Errorf("with another program's key: HasForeignKeys returns %v, %v, want true", foreign, err)
	}
	for _, text := range []string{"etcd+insecure://10.0.0.1", "embedded", "file"} {
		a := must.Get(ParseAddress(text))(t)
		if _, err := OpenAdmin(a, tls, nil); err == nil {
			t.Errorf("OpenAdmin of %s succeeds, but this store has no roles", text)
		}
	}
}

// Before the roles are enabled, every client can add users and roles. After the roles are
// enabled, these users and roles must give no rights.
func TestUsersThatExistedBeforeRolesHaveNoRights(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		files := storetest.NewClusterCertificates(t)
		admin, tls := openAdmin(t, files)
		ctx := context.Background()
		grant := func(role string, users ...string) {
			t.Helper()
			_, err := admin.client.RoleAdd(ctx, role)
			must.Succeed(t, err)
			_, err = admin.client.RoleGrantPermission(ctx, role, "\x00", "\x00", clientv3.PermissionType(clientv3.PermReadWrite))
			must.Succeed(t, err)
			for _, user := range users {
				must.Get(admin.client.UserGrantRole(ctx, user, role))(t)
			}
		}
		for _, user := range []string{RootUser, "admin", "b", "ghost", "other"} {
			must.Get(admin.client.UserAdd(ctx, user, "known"))(t)
		}
		grant(RootUser, RootUser, "b")
		grant(admin.Role("node/b"), "ghost")
		grant("other", "other", "ghost")
		kept := must.Get(admin.EnableRoles(ctx, "admin", others))(t)
		if want := map[bool]string{false: "[]", true: "[other]"}[others]; fmt.Sprint(kept) != want {
			t.Errorf("kept users %v, want %s", kept, want)
		}
		if has, err := admin.HasRole(ctx, admin.Role("node/b")); err != nil || has {
			t.Errorf("role node/b exists: %v, %v; want false", has, err)
		}
		for _, user := range []string{RootUser, "admin", "b", "ghost"} {
			a := admin.address
			a.User, a.Password = user, "known"
			e, err := OpenEtcd(a, tls, admin.dial)
			if err == nil {
				_, err = e.Read(ctx, 0)
				e.Close()
			}
			if err == nil {
				t.Errorf("user %s reads the store with the password that it had before EnableRoles", user)
			}
		}
		cert, key := files.Client(t, "b")
		b := must.Get(OpenEtcd(admin.address, TLS{CA: files.CA, Cert: cert, Key: key}, admin.dial))(t)
		defer b.Close()
		if _, err := b.Commit(ctx, Commit{Put: put("networks/n", "1")}); !errors.Is(err, ErrDenied) {
			t.Errorf("user b writes a network: error %v, want ErrDenied", err)
		}
	}
}

// Revoke deletes the role of a node only if no other user has it.
func TestRevokeKeepsARoleThatAnotherUserHas(t *testing.T) {
	t.Parallel()
	admin, _ := openAdmin(t, storetest.NewClusterCertificates(t))
	ctx := context.Background()
	must.Get(admin.EnableRoles(ctx, "admin", false))(t)
	must.Get(admin.SetRole(ctx, admin.Role("node/c"), []Range{{Prefix: true}}))(t)
	for _, user := range []string{"old", "new"} {
		must.Get(admin.SetUser(ctx, user, admin.Role("node/c")))(t)
	}
	for _, c := range []struct {
		user, deleted string
		remains       bool
	}{{"old", "[]", true}, {"new", "[c]", false}} {
		deleted, err := admin.Revoke(ctx, c.user, admin.Role("node/"))
		if err != nil || fmt.Sprint(deleted) != c.deleted {
			t.Errorf("Revoke(%s): deleted roles %v, %v; want %s", c.user, deleted, err, c.deleted)
		}
		if has, err := admin.HasRole(ctx, admin.Role("node/c")); err != nil || has != c.remains {
			t.Errorf("after Revoke(%s): the role exists: %v, %v; want %v", c.user, has, err, c.remains)
		}
	}
}
