package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// objectRoutes are the API's routes of single objects of the fleet's state.
func (a *agent) objectRoutes(mux *http.ServeMux) {
	list := func(kind string, all func(*fleet.View) any) {
		mux.Handle("GET /v1/"+kind, answer(func(*http.Request) (any, error) {
			var rows any
			if !a.follower.Peek(func(v *fleet.View) { rows = all(v) }) {
				return nil, a.notRead()
			}
			return rows, nil
		}))
	}
	list("networks", func(v *fleet.View) any { return model.State{Networks: v.Networks()}.WithDefaults().Networks })
	mux.Handle("GET /v1/nodes", answer(a.handleNodes))
	list("policies", func(v *fleet.View) any { return v.Policies() })
	list("gateways", func(v *fleet.View) any { return v.Gateways() })
	list("routes", func(v *fleet.View) any { return v.Routes() })
	mux.Handle("GET /v1/ports", answer(a.handlePorts))

	mux.Handle("GET /v1/ports/{name}", answer(a.handlePort))
	mux.Handle("PATCH /v1/ports/{name}", answer(a.handleChangePort))

	f := a.follower
	mux.Handle("POST /v1/networks", change(a, nil, func(ctx context.Context, n model.Network) (any, error) { return f.AddNetwork(ctx, n) }))
	mux.Handle("PATCH /v1/networks/{name}", answer(a.handleChangeNetwork))
	mux.Handle("PUT /v1/nodes/{name}", change(a, func(n *api.NodeRequest) *string { return &n.Name }, put(a.putNode)))
	mux.Handle("PUT /v1/policies/{name}", change(a, func(p *model.Policy) *string { return &p.Name }, put(f.PutPolicy)))
	mux.Handle("PUT /v1/gateways/{name}", change(a, func(g *model.Gateway) *string { return &g.Name }, put(f.PutGateway)))
	mux.Handle("PUT /v1/routes", change(a, nil, put(f.PutRoute)))

	for kind, remove := range map[string]func(context.Context, string) error{"networks": f.DeleteNetwork, "policies": f.DeletePolicy, "gateways": f.DeleteGateway} {
		mux.Handle("DELETE /v1/"+kind+"/{name}", a.deleteHandler(func(ctx context.Context, r *http.Request) error { return remove(ctx, r.PathValue("name")) }))
	}
	mux.Handle("DELETE /v1/nodes/{name}", a.deleteHandler(func(ctx context.Context, r *http.Request) error {
		if name := r.PathValue("name"); name == a.config.Node {
			return refuse(http.StatusConflict, "delete node %s: its agent is running; run `vrouter remove` on it first, then delete it from another node", name)
		}
		return f.DeleteNode(ctx, r.PathValue("name"), r.URL.Query().Get("ports") == "true")
	}))
	mux.Handle("DELETE /v1/routes", a.deleteHandler(func(ctx context.Context, r *http.Request) error {
		prefix, err := netip.ParsePrefix(r.URL.Query().Get("prefix"))
		if err != nil {
			return refuse(http.StatusBadRequest, "prefix: %w", err)
		}
		return f.DeleteRoute(ctx, model.Route{Network: r.URL.Query().Get("network"), Prefix: prefix})
	}))
}

func (a *agent) putNode(ctx context.Context, r api.NodeRequest) error {
	if r.FromPool {
		return a.follower.PutNodeFromPool(ctx, r.Node)
	}
	return a.follower.PutNode(ctx, r.Node)
}

// checkName sets an object's name to the name in the path. It refuses a different
// name.
func checkName(is *string, name string) error {
	if *is != "" && *is != name {
		return refuse(http.StatusBadRequest, "the object's name is %q, but the path has %q; use the same name in both", *is, name)
	}
	*is = name
	return nil
}

// change makes a handler that reads an object and changes the store. The handler returns the result of
// in. name returns the field that must equal the name in the path; nil: the path has none.
func change[O any](a *agent, name func(*O) *string, in func(context.Context, O) (any, error)) http.Handler {
	return answer(func(r *http.Request) (result any, err error) {
		object, err := read[O](r)
		if err == nil && name != nil {
			err = checkName(name(&object), r.PathValue("name"))
		}
		if err != nil {
			return nil, err
		}
		_, err = a.change(r.Context(), time.Now(), func(ctx context.Context) (err error) {
			result, err = in(ctx, object)
			return err
		})
		return result, err
	})
}

// put makes a change without a result.
func put[O any](in func(context.Context, O) error) func(context.Context, O) (any, error) {
	return func(ctx context.Context, object O) (any, error) { return struct{}{}, in(ctx, object) }
}

func (a *agent) deleteHandler(from func(context.Context, *http.Request) error) http.Handler {
	return answer(func(r *http.Request) (any, error) {
		_, err := a.change(r.Context(), time.Now(), func(ctx context.Context) error { return from(ctx, r) })
		return struct{}{}, err
	})
}

// handleChangeNetwork applies a JSON merge patch (RFC 7396) to a network.
func (a *agent) handleChangeNetwork(r *http.Request) (any, error) {
	patch, err := read[json.RawMessage](r)
	if err != nil {
		return nil, err
	}
	var changed model.Network
	_, err = a.change(r.Context(), time.Now(), func(ctx context.Context) (err error) {
		changed, err = a.follower.UpdateNetwork(ctx, r.PathValue("name"), func(n *model.Network) error { return patchNetwork(n, patch) })
		return err
	})
	return changed, err
}

func patchNetwork(n *model.Network, patch json.RawMessage) error {
	was, err := json.Marshal(n)
	if err != nil {
		return err
	}
	now, err := jsonpatch.MergePatch(was, patch)
	if err != nil {
		return refuse(http.StatusBadRequest, "read the request: %w; send a JSON object with the fields to change", err)
	}
	changed := model.Network{}
	if err := follow.Decode(bytes.NewReader(now), &changed); err != nil {
		return refuse(http.StatusBadRequest, "read the request: %w", err)
	}
	if err := checkName(&changed.Name, n.Name); err != nil {
		return err
	}
	*n = changed
	return nil
}

// handlePorts returns the fleet's ports that match the query.
func (a *agent) handlePorts(r *http.Request) (any, error) {
	q := r.URL.Query()
	var address netip.Addr
	if text := q.Get("address"); text != "" {
		var err error
		if address, err = netip.ParseAddr(text); err != nil {
			return nil, refuse(http.StatusBadRequest, "address: %w", err)
		}
	}
	ports := []model.Port{}
	need := fleet.Need{Nodes: []string{q.Get("node")}}
	if q.Get("network") != "" {
		need = fleet.Need{Networks: []string{q.Get("network")}}
	} else if q.Get("node") == "" {
		need = fleet.Need{All: true}
	}
	err := a.lookAt(r.Context(), need, func(v *fleet.View) {
		if address.IsValid() && q.Get("network") != "" {
			if p, ok := v.PortAt(q.Get("network"), address); ok {
				ports = append(ports, p)
			}
			return
		}
		for _, p := range v.Ports(q.Get("network")) {
			if matchesFilter(q.Get("node"), p.Node) && matchesFilter(q.Get("origin"), string(p.Origin)) && (!address.IsValid() || slices.Contains(p.IPs, address)) {
				ports = append(ports, p)
			}
		}
	})
	return ports, err
}

// lookAt calls a function with a state of the fleet that has the ports that need describes.
func (a *agent) lookAt(ctx context.Context, need fleet.Need, look func(*fleet.View)) error {
	if !a.follower.Health().Read {
		return a.notRead()
	}
	return unread(a.follower.LookAt(ctx, need, look))
}

// unread gives an error of a store that does not answer its HTTP status.
func unread(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		err = refuse(http.StatusServiceUnavailable, "read the ports of other networks: %w; retry when the store is reachable", err)
	}
	return err
}

// matchesFilter reports whether a filter is empty or equals a value.
func matchesFilter(wanted, value string) bool { return wanted == "" || wanted == value }

// handlePort returns a port, with its device if it is connected here.
func (a *agent) handlePort(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if !a.follower.Health().Read {
		return nil, a.notRead()
	}
	port, known, err := a.follower.FindPort(r.Context(), name)
	if err != nil {
		return nil, unread(err)
	}
	if !known {
		return nil, refuse(http.StatusNotFound, "there is no port %q", name)
	}
	var got api.Port
	err = a.follower.Ask(r.Context(), func() error {
		got = a.describeAddresses(port)
		if a.reconciler.Last.Devices[name] != nil && a.reconciler.Last.Unfit(name) == nil {
			got = a.describe(a.reconciler.Last, port)
		}
		return nil
	})
	return got, err
}

// handleChangePort changes a port. If the port is attached to this node, it forwards
// when handleChangePort returns. On failure the changed fields are restored.
func (a *agent) handleChangePort(r *http.Request) (any, error) {
	began := time.Now()
	change, err := read[api.PortChange](r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	var was, port model.Port
	_, err = a.change(r.Context(), began, func(ctx context.Context) (err error) {
		port, err = a.follower.UpdatePort(ctx, name, func(p *model.Port) error {
			was = *p
			changePort(p, change)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	var got api.Port
	err = a.follower.Ask(r.Context(), func() error {
		if port.Node != a.config.Node || port.Attach == (model.Attachment{}) {
			got = a.describeAddresses(port)
			return nil
		}
		if err := a.reconciler.Last.Unfit(name); err != nil {
			return err
		}
		got = a.describe(a.reconciler.Last, port)
		return nil
	})
	if err != nil {
		_, back := a.change(context.WithoutCancel(r.Context()), began, func(ctx context.Context) error {
			_, err := a.follower.UpdatePort(ctx, name, func(p *model.Port) error { restorePort(p, was, port); return nil })
			return err
		})
		if back != nil {
			err = fmt.Errorf("%w; the previous port could not be restored either: %w", err, back)
		}
	}
	got.Took = time.Since(began)
	return got, err
}

func changePort(p *model.Port, change api.PortChange) {
	if change.Attach != nil {
		p.Attach = *change.Attach
	}
	if change.Policies != nil {
		p.Policies = *change.Policies
	}
	if change.AllowSources != nil {
		p.AllowSources = *change.AllowSources
	}
	if change.Bandwidth != nil {
		p.Bandwidth = *change.Bandwidth
	}
}

// restorePort undoes a change of port p. was is the port before the change, and made is the port after it. If a field of
// p differs from made, another client has changed it, and restorePort keeps it.
func restorePort(p *model.Port, was, made model.Port) {
	if p.Attach == made.Attach {
		p.Attach = was.Attach
	}
	if slices.Equal(p.Policies, made.Policies) {
		p.Policies = was.Policies
	}
	if slices.Equal(p.AllowSources, made.AllowSources) {
		p.AllowSources = was.AllowSources
	}
	if p.Bandwidth == made.Bandwidth {
		p.Bandwidth = was.Bandwidth
	}
}

// handleNodes returns the fleet's nodes and their agents.
func (a *agent) handleNodes(r *http.Request) (any, error) {
	gone, _ := a.follower.Gone()
	all := []api.Node{}
	err := a.lookAt(r.Context(), fleet.Need{All: true}, func(v *fleet.View) {
		for _, n := range (model.State{Settings: v.Settings(), Nodes: v.Nodes()}).WithDefaults().Nodes {
			node := api.Node{Node: n, Ports: v.PortsOn(n.Name), Gone: a.follower.IsShared() && gone[n.Name]}
			if alive, ok := v.Alive(n.Name); ok && !alive.Stopped {
				node.Agent = &api.Agent{Host: alive.Host, PID: alive.PID, Version: alive.Version, Since: alive.Since}
			}
			all = append(all, node)
		}
	})
	return all, err
}

// notRead is the error for requests that arrive before the store has been read.
func (a *agent) notRead() error { return notReadBecause(a.follower.Health().Problem) }

// notReadBecause returns the error that the store has not been read. problem is the reason, or nil if
// none is known.
func notReadBecause(problem error) error {
	why := "the agent is still reading it; try again in a moment"
	if problem != nil {
		why = problem.Error()
	}
	if errors.Is(problem, store.ErrUnavailable) {
		why += "; try again when it is reachable"
	}
	return refuse(http.StatusServiceUnavailable, "the store has not been read yet: %s", why)
}

// storeStatus returns the state of the store.
func (a *agent) storeStatus(v *snapshot) api.Store {
	h := a.follower.Health()
	s := api.Store{Address: a.follower.Address.String(), Revision: h.Revision, Heard: h.Heard, WentBack: h.WentBack, Refused: v.refused, Waiting: v.leaving}
	if h.Problem != nil {
		s.Problem = h.Problem.Error()
	}
	return s
}
