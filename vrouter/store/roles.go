package store

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Range is a set of keys that a role may read. If Write is set, the role may also
// write them.
type Range struct {
	Key    string // relative to the store's prefix
	Prefix bool   // true: all keys that begin with Key; false: only Key
	Write  bool
}

// RootUser is etcd's administrator. The role of an administrator has the same name.
// Other users can have this role too.
const RootUser = "root"

// trialUser is an administrator with a password. It exists only while EnableRoles
// checks that etcd recognises certificates.
const trialUser = "vrouter-store-init"

// Admin changes the users and roles of an etcd cluster.
type Admin struct {
	*Etcd
	address Address
	tls     TLS
	dial    Dialer
}

// OpenAdmin connects to an etcd cluster. t must contain the certificate of an
// administrator. dial may be nil.
func OpenAdmin(a Address, t TLS, dial Dialer) (*Admin, error) {
	if a.Kind != KindEtcd || a.insecure() {
		return nil, fmt.Errorf("change the roles of store %s: only etcd with TLS has roles; write its address as etcd://HOST:PORT", a)
	}
	if t.Cert == "" {
		return nil, fmt.Errorf("change the roles of store %s: it needs the certificate of an administrator; add --tls-cert and --tls-key", a)
	}
	e, err := OpenEtcd(a, t, dial)
	return &Admin{e, a, t, dial}, err
}

// CommonName returns the common name of the client certificate. etcd uses it as the
// client's user name.
func (t TLS) CommonName() (string, error) {
	text, err := os.ReadFile(t.Cert)
	if err != nil {
		return "", fmt.Errorf("read the client certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", fmt.Errorf("read the client certificate %s: it has no PEM block", t.Cert)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err == nil && c.Subject.CommonName == "" {
		err = errors.New("it has no common name, but etcd uses the common name as the user name; use another certificate")
	}
	if err != nil {
		return "", fmt.Errorf("read the client certificate %s: %w", t.Cert, err)
	}
	return c.Subject.CommonName, nil
}

// SetRole adds a role, or changes it, so that it has exactly these ranges. changed is
// false if the role had exactly these ranges before.
func (e *Admin) SetRole(ctx context.Context, role string, ranges []Range) (changed bool, err error) {
	current := map[string]*authpb.Permission{} // by first key
	got, err := e.client.RoleGet(ctx, role)
	switch {
	case errors.Is(err, rpctypes.ErrRoleNotFound):
		if _, err := e.client.RoleAdd(ctx, role); err != nil {
			return false, e.failed("add role "+role+" to", err)
		}
		changed = true
	case err != nil:
		return false, e.failed("read the roles of", err)
	default:
		for _, p := range got.Perm {
			current[string(p.Key)] = p
		}
	}
	for _, r := range ranges {
		key, end, kind := e.prefix+r.Key, "", clientv3.PermRead
		if r.Prefix {
			end = clientv3.GetPrefixRangeEnd(key)
		}
		if r.Write {
			kind = clientv3.PermReadWrite
		}
		old := current[key]
		delete(current, key)
		if old != nil && string(old.RangeEnd) == end && old.PermType == authpb.Permission_Type(kind) {
			continue
		}
		changed = true
		if _, err := e.client.RoleGrantPermission(ctx, role, key, end, clientv3.PermissionType(kind)); err != nil {
			return false, e.failed("add a key range to role "+role+" in", err)
		}
	}
	for _, p := range current {
		changed = true
		if _, err := e.client.RoleRevokePermission(ctx, role, string(p.Key), string(p.RangeEnd)); err != nil {
			return false, e.failed("remove a key range from role "+role+" in", err)
		}
	}
	return changed, nil
}

// SetUser gives a role to a user. It adds a missing user. The new user has no
// password, so its client must have a certificate. changed is false if the user had
// the role before.
func (e *Admin) SetUser(ctx context.Context, user, role string) (changed bool, err error) {
	got, err := e.client.UserGet(ctx, user)
	switch {
	case errors.Is(err, rpctypes.ErrUserNotFound):
		if _, err := e.client.UserAddWithOptions(ctx, user, "", &clientv3.UserAddOptions{NoPassword: true}); err != nil {
			return false, e.failed("add user "+user+" to", err)
		}
	case err != nil:
		return false, e.failed("read the users of", err)
	case slices.Contains(got.Roles, role):
		return false, nil
	}
	if _, err := e.client.UserGrantRole(ctx, user, role); err != nil {
		return false, e.failed("give user "+user+" a role in", err)
	}
	return true, nil
}

// DeleteUser deletes a user. etcd refuses all later requests of the user.
func (e *Admin) DeleteUser(ctx context.Context, user string) error {
	if _, err := e.client.UserDelete(ctx, user); err != nil {
		return e.failed("delete user "+user+" from", err)
	}
	return nil
}

// DeleteRole deletes a role. Users lose the role. A missing role is no error.
func (e *Admin) DeleteRole(ctx context.Context, role string) error {
	if _, err := e.client.RoleDelete(ctx, role); err != nil && !errors.Is(err, rpctypes.ErrRoleNotFound) {
		return e.failed("delete role "+role+" from", err)
	}
	return nil
}

// HasForeignKeys reports whether the cluster has keys of other programs. After
// EnableRoles the clients of these programs need users too.
func (e *Admin) HasForeignKeys(ctx context.Context) (bool, error) {
	all, err := e.client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return false, e.failed("read", err)
	}
	own, err := e.client.Get(ctx, e.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return false, e.failed("read", err)
	}
	return all.Count > own.Count, nil
}

// RolesEnabled reports whether etcd checks the roles of users.
func (e *Admin) RolesEnabled(ctx context.Context) (bool, error) {
	// etcd 3.4 has no request that returns this. The error of a login shows it.
	_, err := e.client.Authenticate(ctx, trialUser, "x")
	switch {
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return false, nil
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return true, nil
	}
	return false, e.failed("read the users of", err)
}

// EnableRoles makes etcd check the roles. self is the user of this client's
// certificate; it becomes an administrator. If etcd ignores client certificates, no
// client would have access. EnableRoles then disables the roles and returns an error.
//
// Before the roles are enabled, every client can add users and roles. So EnableRoles deletes
// all users except root and self, and all roles except root. If others is true, it keeps the
// users and roles of other programs, and returns the names of these users.
func (e *Admin) EnableRoles(ctx context.Context, self string, others bool) (kept []string, err error) {
	if _, err := e.client.RoleAdd(ctx, RootUser); err != nil && !errors.Is(err, rpctypes.ErrRoleAlreadyExist) {
		return nil, e.failed("add role root to", err)
	}
	for _, user := range []string{RootUser, self} { // etcd requires a user root
		if _, err := e.SetUser(ctx, user, RootUser); err != nil {
			return nil, err
		}
	}
	password := rand.Text()
	if _, err := e.client.UserDelete(ctx, trialUser); err != nil && !errors.Is(err, rpctypes.ErrUserNotFound) {
		return nil, e.failed("delete user "+trialUser+" from", err)
	}
	if _, err := e.client.UserAdd(ctx, trialUser, password); err != nil {
		return nil, e.failed("add user "+trialUser+" to", err)
	}
	if _, err := e.client.UserGrantRole(ctx, trialUser, RootUser); err != nil {
		return nil, e.failed("give user "+trialUser+" a role in", err)
	}
	if _, err := e.client.AuthEnable(ctx); err != nil {
		return nil, e.failed("enable the roles of", err)
	}
	// This is the first request for which etcd needs the user of the certificate.
	if _, err := e.client.UserDelete(ctx, trialUser); err != nil {
		return nil, errors.Join(
			fmt.Errorf("%w: etcd does not recognise users by their certificates; start it with --client-cert-auth and --trusted-ca-file", e.failed("use the roles of", err)),
			e.disableRoles(ctx, password))
	}
	if kept, err = e.deleteOthers(ctx, self, others); err != nil {
		_, back := e.client.AuthDisable(ctx) // so that the next call deletes the users and roles that are left
		return nil, errors.Join(err, back)
	}
	return kept, nil
}

// deleteOthers deletes all users except root and self, whose passwords it replaces, and all
// roles except root. If others is true, it keeps the roles outside the store's prefix, and
// the users that have only such roles. kept has the names of these users.
func (e *Admin) deleteOthers(ctx context.Context, self string, others bool) (kept []string, err error) {
	isForeign := func(role string) bool { return others && role != RootUser && !strings.HasPrefix(role, e.Role("")) }
	users, err := e.client.UserList(ctx)
	if err != nil {
		return nil, e.failed("read the users of", err)
	}
	for _, user := range users.Users {
		if user == RootUser || user == self {
			if _, err = e.client.UserChangePassword(ctx, user, rand.Text()); err != nil { // other clients may know the old password
				err = e.failed("change the password of user "+user+" in", err)
			}
		} else if has, unread := e.roles(ctx, user); unread == nil && len(has) > 0 && !slices.ContainsFunc(has, func(role string) bool { return !isForeign(role) }) {
			kept = append(kept, user)
		} else {
			err = errors.Join(unread, e.DeleteUser(ctx, user))
		}
		if err != nil {
			return nil, err
		}
	}
	roles, err := e.client.RoleList(ctx)
	if err != nil {
		return nil, e.failed("read the roles of", err)
	}
	for _, role := range roles.Roles {
		if role != RootUser && !isForeign(role) {
			if err := e.DeleteRole(ctx, role); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// roles returns the roles of a user; none for a missing user.
func (e *Admin) roles(ctx context.Context, user string) ([]string, error) {
	got, err := e.client.UserGet(ctx, user)
	if errors.Is(err, rpctypes.ErrUserNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, e.failed("read the users of", err)
	}
	return got.Roles, nil
}

// Revoke deletes a user; etcd refuses all later requests of the user. Revoke also deletes the
// roles of the user whose names begin with prefix, except roles that another user has.
// deleted has the names of the deleted roles without prefix.
func (e *Admin) Revoke(ctx context.Context, user, prefix string) (deleted []string, err error) {
	users, err := e.Users(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.DeleteUser(ctx, user); err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for other, roles := range users {
		for _, role := range roles {
			needed[role] = needed[role] || other != user
		}
	}
	for _, role := range users[user] {
		name, is := strings.CutPrefix(role, prefix)
		if !is || needed[role] {
			continue
		}
		if err := e.DeleteRole(ctx, role); err != nil {
			return nil, err
		}
		deleted = append(deleted, name)
	}
	return deleted, nil
}

// Users returns the roles of each user.
func (e *Admin) Users(ctx context.Context) (map[string][]string, error) {
	all, err := e.client.UserList(ctx)
	if err != nil {
		return nil, e.failed("read the users of", err)
	}
	users := map[string][]string{}
	for _, user := range all.Users {
		if users[user], err = e.roles(ctx, user); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// disableRoles logs in as trialUser, disables roles and deletes trialUser.
func (e *Admin) disableRoles(ctx context.Context, password string) error {
	a := e.address
	a.User, a.Password = trialUser, password
	again, err := OpenEtcd(a, e.tls, e.dial)
	if err != nil {
		return err
	}
	defer again.Close()
	if _, err := again.client.AuthDisable(ctx); err != nil {
		return e.failed("disable the roles of", err)
	}
	if _, err = again.client.UserDelete(ctx, trialUser); err != nil {
		return e.failed("delete user "+trialUser+" from", err)
	}
	return nil
}

// Role returns the name of a role in etcd: the prefix of the store, then name. So two
// fleets with different prefixes in one cluster do not share roles.
func (e *Admin) Role(name string) string { return strings.Trim(e.prefix, "/") + "/" + name }

// HasRole reports whether a role exists.
func (e *Admin) HasRole(ctx context.Context, role string) (bool, error) {
	_, err := e.client.RoleGet(ctx, role)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		return false, nil
	}
	if err != nil {
		return false, e.failed("read the roles of", err)
	}
	return true, nil
}
