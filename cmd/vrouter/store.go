package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/store"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Give the nodes and operators of a fleet roles in etcd",
		Long: `etcd uses the common name of a client's certificate as its user name. The roles of
the user decide which keys the client can write. A node's user can write only the ports
of this node. An operator can write all objects of the fleet. These commands need the
certificate of an administrator. The first vrouter store init makes its user an
administrator.`,
		Example: `  vrouter store init --store etcd://10.0.0.1 --tls-ca ca.pem --tls-cert admin.pem --tls-key admin-key.pem
  vrouter store grant node c --store etcd://10.0.0.1`,
	}
	grant := &cobra.Command{
		Use:     "grant",
		Short:   "Give a node or an operator its role",
		Example: "  vrouter store grant node c --network red --store etcd://10.0.0.1\n  vrouter store grant operator ops --store etcd://10.0.0.1",
	}
	grant.AddCommand(grantNodeCommand(), grantOperatorCommand())
	cmd.AddCommand(storeInitCommand(), grant, revokeCommand())
	return cmd
}

// adminTimeout is the time limit of a command that changes roles.
const adminTimeout = time.Minute

// roles changes the roles of a fleet and prints each change.
type roles struct {
	*store.Admin
	self string // user of this command's certificate
	out  io.Writer
}

// rolesCommand completes a command that changes roles.
func rolesCommand(cmd *cobra.Command, body func(context.Context, *roles, []string) error) *cobra.Command {
	var from storeFlags
	from.add(cmd)
	cmd.RunE = withRoles(&from, body)
	return cmd
}

// withRoles returns a command's function, which connects to the store and calls body.
func withRoles(from *storeFlags, body func(context.Context, *roles, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a, err := store.ParseAddress(from.address)
		if err != nil {
			return cli.Misuse(err)
		}
		files := store.TLS{CA: from.ca, Cert: from.cert, Key: from.key}
		admin, err := store.OpenAdmin(a, files, nil)
		if err != nil {
			return cli.Misuse(err)
		}
		defer admin.Close()
		self, err := files.CommonName()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), adminTimeout)
		defer cancel()
		return body(ctx, &roles{admin, self, cmd.OutOrStdout()}, args)
	}
}

func storeInitCommand() *cobra.Command {
	var shared bool
	cmd := rolesCommand(&cobra.Command{
		Use:   "init",
		Short: "Make the store check the roles of its clients",
		Long: `Makes the user of this command's certificate an administrator, and makes etcd check the
roles of all its clients. Deletes all other users and roles, because until then every
client could add users and roles. Adds the operator's role, and a role and a user for
each node of the fleet. The user has the name of the node, so the certificate of the node
must have this common name. A second run deletes nothing, and adds only missing roles
and users.`,
		Example: "  vrouter store init --store etcd://10.0.0.1 --tls-ca ca.pem --tls-cert admin.pem --tls-key admin-key.pem",
		Args:    cli.Takes(0, 0),
	}, func(ctx context.Context, r *roles, _ []string) error { return r.Init(ctx, shared) })
	cmd.Flags().BoolVar(&shared, "lock-others", false, "Enable roles even if etcd has keys of other programs, and keep the users of these programs; their clients then need users too")
	return cmd
}

// Init makes the store check roles, and gives the nodes in the store theirs.
func (r *roles) Init(ctx context.Context, shared bool) error {
	enabled, err := r.RolesEnabled(ctx)
	if err != nil {
		return err
	}
	if foreign, err := r.HasForeignKeys(ctx); !enabled && !shared && (err != nil || foreign) {
		return errors.Join(err, errors.New("enable roles: this etcd has keys of other programs, and their clients would lose access; use an etcd for the fleet alone, or add --lock-others"))
	}
	nodes, err := r.nodes(ctx)
	if err == nil && slices.Contains(nodes, store.RootUser) {
		err = errRootNode
	}
	if err != nil {
		return err
	}
	if !enabled {
		kept, err := r.EnableRoles(ctx, r.self, shared)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "user %s is an administrator\nthe store checks roles now\n", r.self)
		r.tell(len(kept) > 0, "kept the users %v; check their roles, because until now every client could add users and roles", kept)
	}
	if err := r.makeOperator(ctx); err != nil {
		return err
	}
	for _, node := range nodes {
		has, err := r.HasRole(ctx, r.nodeRole(node))
		if err == nil && !has { // an operator may have limited an existing role to networks
			err = r.grantNode(ctx, node, node)
		}
		if err != nil {
			return err
		}
	}
	r.tell(enabled, "the store already checks roles")
	return nil
}

// nodes returns the names of the nodes in the store.
func (r *roles) nodes(ctx context.Context) (names []string, err error) {
	v, err := fleet.Read(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, n := range v.Nodes() {
		names = append(names, n.Name)
	}
	return names, nil
}

func (r *roles) nodeRole(node string) string { return r.Role("node/" + node) }
func (r *roles) operatorRole() string        { return r.Role("operator") }

func (r *roles) makeOperator(ctx context.Context) error {
	changed, err := r.SetRole(ctx, r.operatorRole(), fleet.OperatorRole())
	r.tell(changed && err == nil, "role %s can write all objects of the fleet", r.operatorRole())
	return err
}

func (r *roles) tell(changed bool, format string, args ...any) {
	if changed {
		fmt.Fprintf(r.out, format+"\n", args...)
	}
}

// errRootNode is the error for a node whose user is root.
var errRootNode = errors.New("give the role of a node to the user root: root is etcd's administrator, so this node could write all keys; rename the node, or use `vrouter store grant node NAME --user CN` with another common name (CN) in the node's certificate")

func (r *roles) grantNode(ctx context.Context, node, user string, networks ...string) error {
	if user == store.RootUser {
		return errRootNode
	}
	limited, err := r.SetRole(ctx, r.nodeRole(node), fleet.NodeRole(node, networks...))
	if err != nil {
		return err
	}
	given, err := r.SetUser(ctx, user, r.nodeRole(node))
	if err != nil {
		return err
	}
	where := ""
	if len(networks) > 0 {
		where = fmt.Sprintf(" in the networks %v", networks)
	}
	r.tell(limited || given, "user %s can write the ports of node %s%s", user, node, where)
	r.tell(!limited && !given, "user %s: nothing to change", user)
	return nil
}

// GrantOperators gives users the role of an operator.
func (r *roles) GrantOperators(ctx context.Context, users ...string) error {
	if err := r.makeOperator(ctx); err != nil {
		return err
	}
	for _, user := range users {
		changed, err := r.SetUser(ctx, user, r.operatorRole())
		if err != nil {
			return err
		}
		r.tell(changed, "user %s is an operator", user)
		r.tell(!changed, "user %s: nothing to change", user)
	}
	return nil
}

// revoke deletes users, their node roles, and the alive keys of these nodes.
func (r *roles) revoke(ctx context.Context, users ...string) error {
	for _, user := range users {
		nodes, err := r.Revoke(ctx, user, r.nodeRole(""))
		for _, node := range nodes {
			err = errors.Join(err, fleet.New(r, fleet.Options{}).Leave(ctx, node))
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "revoked user %s\n", user)
		r.tell(len(nodes) > 0, "if the nodes %v will not come back, delete them with `vrouter node delete --ports`", nodes)
	}
	return nil
}

// GrantNode gives the user of a node the rights to write the node's own keys.
func (r *roles) GrantNode(ctx context.Context, node string) error {
	return r.grantNode(ctx, node, node)
}

// RevokeNodes revokes the users of nodes for which gone returns true.
func (r *roles) RevokeNodes(ctx context.Context, gone func(node string) bool) error {
	users, err := r.Users(ctx)
	for user, roles := range users {
		if slices.Contains(roles, r.nodeRole(user)) && gone(user) {
			err = errors.Join(err, r.revoke(ctx, user))
		}
	}
	return err
}

func grantNodeCommand() *cobra.Command {
	var networks []string
	var user string
	cmd := rolesCommand(&cobra.Command{
		Use:   "node NAME",
		Short: "Let a node's certificate write only the ports of this node",
		Long: `Adds or changes the role of a node, and gives it to a user. An operator must add the
node to the fleet with vrouter node add.`,
		Example: "  vrouter store grant node c --network red --store etcd://10.0.0.1",
		Args:    cli.Takes(1, 1),
	}, func(ctx context.Context, r *roles, args []string) error {
		return r.grantNode(ctx, args[0], cmp.Or(user, args[0]), networks...)
	})
	cmd.Flags().StringSliceVar(&networks, "network", nil, "Names of the networks in which the node can have ports (repeatable; default all)")
	cmd.Flags().StringVar(&user, "user", "", "Common `name` of the node's certificate (default: the node's name)")
	return cmd
}

func grantOperatorCommand() *cobra.Command {
	return rolesCommand(&cobra.Command{
		Use:   "operator USER…",
		Short: "Let users write all objects of the fleet",
		Long: `USER is the common name of a certificate. An agent with an operator's certificate
accepts changes to networks, policies, nodes, gateways and routes. The user of a node
can also be an operator.`,
		Example: "  vrouter store grant operator ops --store etcd://10.0.0.1",
		Args:    cli.Takes(1, math.MaxInt),
	}, func(ctx context.Context, r *roles, users []string) error { return r.GrantOperators(ctx, users...) })
}

func revokeCommand() *cobra.Command {
	return rolesCommand(&cobra.Command{
		Use:   "revoke USER…",
		Short: "Delete users, for example of a stolen node",
		Long: `Deletes users and their node roles. The store then refuses all requests of these users.
A running watch continues until its connection ends. If another user has the same role,
the role stays. The command also deletes the alive keys of the nodes. Other nodes then
drop their routes to these nodes after the lease, and vrouter node delete can delete them.`,
		Example: "  vrouter store revoke c --store etcd://10.0.0.1",
		Args:    cli.Takes(1, math.MaxInt),
	}, func(ctx context.Context, r *roles, users []string) error { return r.revoke(ctx, users...) })
}
