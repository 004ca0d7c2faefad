package k8s

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"windtunnel/lab/parallel"
)

// permission is one verb on one kind of resource, in every namespace: a run makes a new
// namespace.
type permission struct{ group, resource, subresource, verb string }

// rules are the permissions that a run needs.
var rules = []struct {
	group, resource string // resource with "/" and the subresource
	verbs           []string
}{
	{"", "namespaces", []string{"create", "delete", "get", "list"}},
	{"", "nodes", []string{"get", "list"}},
	{"", "pods", []string{"create", "delete", "get", "list"}},
	{"", "pods/exec", []string{"create", "get"}}, // by SPDY, by WebSocket
	{"", "services", []string{"create", "get"}},
	{"", "events", []string{"list"}},
	{"coordination.k8s.io", "leases", []string{"create", "get", "update"}},
}

func permissions() (list []permission) {
	for _, r := range rules {
		resource, sub, _ := strings.Cut(r.resource, "/")
		for _, verb := range r.verbs {
			list = append(list, permission{r.group, resource, sub, verb})
		}
	}
	return list
}

func (p permission) String() string {
	name := p.resource
	if p.subresource != "" {
		name += "/" + p.subresource
	}
	if p.group != "" {
		name += "." + p.group
	}
	return p.verb + " " + name
}

// manifestCommand prints the objects that grant all permissions.
const manifestCommand = "windtunnel k8s manifest"

// grantCommand grants all permissions.
const grantCommand = manifestCommand + " | kubectl apply -f -"

// checkAccess returns an error that names the permissions that the user lacks. It makes
// nothing in the cluster.
func (c *cluster) checkAccess(ctx context.Context) error {
	all := permissions()
	lacks := make([]string, len(all))
	err := each(all, func(i int, p permission) error {
		var ask review
		at := &ask.Spec.ResourceAttributes
		at.Group, at.Resource, at.Subresource, at.Verb = p.group, p.resource, p.subresource, p.verb
		answer, err := create[review](ctx, c, reviewsPath, ask)
		if err != nil {
			return c.contactError(ctx, "ask for the permissions of this user", err)
		}
		if !answer.Status.Allowed {
			lacks[i] = p.String()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return refused(lacks)
}

// each calls f for every element at the same time. It returns the first error in the order
// of the list: requests and pods mostly fail for the same reason.
func each[T any](list []T, f func(i int, x T) error) error {
	errs := make([]error, len(list))
	_ = parallel.Each(list, func(i int, x T) error {
		errs[i] = f(i, x)
		return nil
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refused returns an error that names the missing permissions; nil if there are none.
func refused(lacks []string) error {
	var named []string
	for _, l := range lacks {
		if l != "" {
			named = append(named, l)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return errors.New("this user may not " + strings.Join(named, ", ") + " in the cluster; an administrator grants it with: " + grantCommand)
}

// Manifest returns the YAML of the smallest role that can run experiments, bound to a user,
// or to a service account of its own if user is "".
func Manifest(user string) string {
	const name = "windtunnel"
	var b strings.Builder
	subject := fmt.Sprintf("- {kind: User, name: %q, apiGroup: rbac.authorization.k8s.io}", user)
	if user == "" {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: default}\n---\n", name)
		subject = fmt.Sprintf("- {kind: ServiceAccount, name: %s, namespace: default}", name)
	}
	fmt.Fprintf(&b, "# Whoever may create pods in a new namespace may make privileged pods, and is root on the nodes.\n")
	fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\nrules:\n", name)
	for _, r := range rules {
		fmt.Fprintf(&b, "- {apiGroups: [%q], resources: [%s], verbs: [%s]}\n", r.group, r.resource, strings.Join(r.verbs, ", "))
	}
	fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n", name)
	fmt.Fprintf(&b, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}\nsubjects:\n%s\n", name, subject)
	return b.String()
}
