package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/pause"
)

// otherRun is the namespace of another run.
type otherRun struct {
	namespace namespace
	lease     *lease // nil if it has none
}

// verdict says whether another run has ended.
type verdict string

const (
	runs  verdict = "runs"
	ended verdict = "ended"
	// silent: its lease is not renewed, or the clocks of the two engines differ.
	silent verdict = "silent"
	leaves verdict = "leaves" // the cluster removes it already
)

// startTime is the maximum time between the making of a namespace and of its lease.
const startTime = time.Minute

// judge returns the verdict about a run at a time.
func (r *otherRun) judge(now time.Time) verdict {
	switch {
	case r.namespace.Metadata.DeletionTimestamp != nil:
		return leaves
	case r.lease == nil && now.Sub(r.namespace.Metadata.CreationTimestamp) < startTime:
		return runs
	case r.lease == nil || r.lease.Spec.RenewTime == nil:
		return ended
	case parseHolder(r.lease.Spec.HolderIdentity).hasEnded():
		return ended
	case now.Sub(r.lease.Spec.RenewTime.Time) > leaseTime:
		return silent
	}
	return runs
}

// nodes lists the nodes of the run.
func (r *otherRun) nodes() []string {
	return strings.Split(r.namespace.Metadata.Annotations[nodesMark], ",")
}

// String names the run.
func (r *otherRun) String() string {
	if r.lease == nil || r.lease.Spec.HolderIdentity == "" {
		return "namespace " + r.namespace.Metadata.Name
	}
	return fmt.Sprintf("namespace %s, process %s", r.namespace.Metadata.Name, r.lease.Spec.HolderIdentity)
}

// others lists all runs of the cluster.
func (c *cluster) others(ctx context.Context) ([]otherRun, error) {
	spaces, err := list[namespace](ctx, c, namespacesPath+"?labelSelector="+runLabel)
	if err != nil {
		return nil, c.contactError(ctx, "list the namespaces of runs", err)
	}
	var all []otherRun
	for _, ns := range spaces {
		l, err := c.leaseOf(ctx, ns.Metadata.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, otherRun{ns, l})
	}
	return all, nil
}

// leaseOf returns the lease of a run's namespace; nil if it has none.
func (c *cluster) leaseOf(ctx context.Context, namespace string) (*lease, error) {
	l, err := get[*lease](ctx, c, leasesPath(namespace)+"/"+leaseName)
	if is(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the run of namespace %s: %w", namespace, err)
	}
	return l, nil
}

// clean removes the namespaces of ended runs, and returns their names. running has the
// runs that go on. own is the namespace of the caller's run; "" if it has none.
func (c *cluster) clean(ctx context.Context, own string) (removed []string, running []otherRun, err error) {
	all, err := c.others(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err = c.lookTwice(ctx, slices.DeleteFunc(all, func(r otherRun) bool { return r.namespace.Metadata.Name == own }))
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	now := time.Now() // the deletion of a namespace can take longer than a lease lasts
	for _, r := range all {
		switch r.judge(now) {
		case runs:
			running = append(running, r)
		case ended, silent:
			err := c.deleteNamespace(ctx, r.namespace.Metadata.Name)
			errs = append(errs, err)
			if err == nil {
				removed = append(removed, r.namespace.Metadata.Name)
			}
		}
	}
	return removed, running, errors.Join(errs...)
}

// lookTwice waits for a sign of life of the silent runs: their engines' clocks can be
// wrong. A run that renews its lease meanwhile is returned with the time of that renewal as
// seen here.
func (c *cluster) lookTwice(ctx context.Context, all []otherRun) ([]otherRun, error) {
	if !slices.ContainsFunc(all, func(r otherRun) bool { return r.judge(time.Now()) == silent }) {
		return all, nil
	}
	if err := pause.For(ctx, renewTime+2*time.Second); err != nil {
		return nil, err
	}
	for i := range all {
		r := &all[i]
		if r.judge(time.Now()) != silent {
			continue
		}
		again, err := c.leaseOf(ctx, r.namespace.Metadata.Name)
		if err != nil {
			return nil, err
		}
		if again != nil && !again.Spec.RenewTime.Equal(r.lease.Spec.RenewTime.Time) {
			r.lease = again
			r.lease.Spec.RenewTime = &microTime{time.Now()}
		}
	}
	return all, nil
}

// busyNodes returns an error if an earlier run uses one of the nodes. The API server knows
// the beginning of a run to the second. Of two runs that begin in the same second, none
// counts as the later one.
func busyNodes(own *otherRun, running []otherRun, nodes []string) error {
	for _, r := range running {
		if own.namespace.Metadata.CreationTimestamp.Before(r.namespace.Metadata.CreationTimestamp) {
			continue
		}
		for _, n := range r.nodes() {
			if slices.Contains(nodes, n) {
				return fmt.Errorf("another measurement runs on node %s (%s); two measurements on one node falsify each other: wait for it, or end it", n, &r)
			}
		}
	}
	return nil
}

// namespaceTime is the maximum time until a deleted namespace is gone.
const namespaceTime = 40 * time.Second

// deleteNamespace deletes a namespace with everything in it, and waits until it is gone.
func (c *cluster) deleteNamespace(ctx context.Context, name string) error {
	deadline := time.Now().Add(namespaceTime)
	for asked := false; ; asked = true {
		var err error
		if asked {
			_, err = get[namespace](ctx, c, namespacesPath+"/"+name)
		} else {
			err = c.ask(ctx, http.MethodDelete, namespacesPath+"/"+name, nil, nil)
		}
		if is(err, http.StatusNotFound) {
			return nil
		}
		if err != nil && !is(err, http.StatusConflict) { // a conflict: it is being deleted
			return fmt.Errorf("delete namespace %s: %w; delete it with: kubectl delete namespace %s", name, err, name)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("namespace %s was deleted, and is not gone after %v; `kubectl get all -n %s` shows what is left", name, namespaceTime, name)
		}
		if err := pause.For(ctx, lookTime); err != nil {
			return err
		}
	}
}
