package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// signer gives each node of a cluster what it needs in the store: a certificate for the key that
// the node made, the role of a node, and its entry with the underlay addresses. A node can write
// only its own ports, so an attacker who is root on one node cannot change the networks of the others.
type signer struct {
	client     *client
	authority  *authority
	fleet      *fleet.Fleet
	base       string // file with the agents' configuration that all nodes have
	administer func(func(context.Context, Roles) error) error
	log        *slog.Logger

	nodes  cache.SharedInformer
	known  map[string]bool // nodes that have a certificate, or may have one
	revoke bool            // there may be users of nodes that are gone
}

// signerPause is the time after which what failed is tried again.
const signerPause = 5 * time.Second

// run works until ctx ends.
func (s *signer) run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	requests, err := s.watch(ctx, changed)
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), requests.HasSynced, s.nodes.HasSynced) {
		return nil // ctx has ended
	}
	s.known, s.revoke = map[string]bool{}, true
	if err := s.fleet.Look(ctx, func(v *fleet.View) {
		for _, n := range v.Nodes() {
			s.known[n.Name] = true
		}
	}); err != nil {
		return nil
	}
	answered := map[string]bool{} // until the informer has the answer
	for ctx.Err() == nil {
		done := s.answerAll(ctx, listed[*certificatesv1.CertificateSigningRequest](requests), answered)
		done = s.updateEntries(ctx) && done
		var again <-chan time.Time
		if !done {
			again = time.After(signerPause)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
		}
		pause(ctx) // several changes are handled together
	}
	return nil
}

// watch follows the requests for certificates and the nodes.
func (s *signer) watch(ctx context.Context, changed chan<- struct{}) (requests cache.SharedInformer, err error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	certificates, err := restClient(config, "/apis", certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	if s.nodes, err = watchAll(ctx, s.log, core, "nodes", &corev1.Node{}, slimNode, changed); err != nil {
		return nil, err
	}
	return watchAll(ctx, s.log, certificates, "certificatesigningrequests", &certificatesv1.CertificateSigningRequest{}, slimRequest, changed)
}

// answerAll answers the requests that have no answer and are not in answered. done is false if it must try again.
func (s *signer) answerAll(ctx context.Context, requests []*certificatesv1.CertificateSigningRequest, answered map[string]bool) (done bool) {
	done = true
	for _, r := range requests {
		switch {
		case r.Spec.SignerName != signerName:
		case len(r.Status.Certificate) > 0 || condition(r, certificatesv1.CertificateDenied) != nil:
			delete(answered, r.Name)
		case !answered[r.Name]:
			err := s.answer(ctx, r.Name)
			if answered[r.Name] = err == nil; err != nil {
				s.log.Warn("cannot answer the request for a certificate; trying again", "request", r.Name, "error", err)
				done = false
			}
		}
	}
	return done
}

// slimRequest keeps only what decides whether a request is answered.
func slimRequest(object any) (any, error) {
	r, ok := object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return object, nil
	}
	kept := &certificatesv1.CertificateSigningRequest{ObjectMeta: slimMeta(r.ObjectMeta, "")}
	kept.Spec.SignerName, kept.Status = r.Spec.SignerName, r.Status
	return kept, nil
}

// slimNode keeps only a node's name and addresses.
func slimNode(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{ObjectMeta: slimMeta(n.ObjectMeta, ""), Status: corev1.NodeStatus{Addresses: n.Status.Addresses}}, nil
}

// answer signs a request, or denies it.
func (s *signer) answer(ctx context.Context, name string) error {
	var r certificatesv1.CertificateSigningRequest
	if err := s.client.get(ctx, requestsPath+"/"+name, &r); err != nil {
		if isCode(err, http.StatusNotFound) {
			return nil
		}
		return err
	}
	now := metav1.Now()
	decision := certificatesv1.CertificateSigningRequestCondition{Status: corev1.ConditionTrue, Reason: "Vrouter", LastUpdateTime: now, LastTransitionTime: now}
	node, key, refused := requestedNode(&r, func(name string) (*corev1.Pod, error) {
		var pod corev1.Pod
		return &pod, s.client.get(ctx, "/api/v1/namespaces/"+Namespace+"/pods/"+name, &pod)
	})
	if refused != nil {
		s.log.Warn("denied a certificate", "request", name, "user", r.Spec.Username, "reason", refused)
		decision.Type, decision.Message = certificatesv1.CertificateDenied, refused.Error()
		r.Status.Conditions = append(r.Status.Conditions, decision)
		return s.client.ask(ctx, http.MethodPut, requestsPath+"/"+name+"/approval", "application/json", &r, nil)
	}
	if _, inCluster, _ := s.nodes.GetStore().GetByKey(node); !inCluster {
		return fmt.Errorf("the API server has not sent the Node object %s yet", node)
	}
	if err := s.administer(func(ctx context.Context, roles Roles) error { return roles.GrantNode(ctx, node) }); err != nil {
		return err
	}
	s.known[node] = true
	s.updateEntries(ctx)
	if condition(&r, certificatesv1.CertificateApproved) == nil {
		decision.Type, decision.Message = certificatesv1.CertificateApproved, "the request is of the agent's pod on this node"
		r.Status.Conditions = append(r.Status.Conditions, decision)
		if err := s.client.ask(ctx, http.MethodPut, requestsPath+"/"+name+"/approval", "application/json", &r, &r); err != nil {
			return err
		}
	}
	var err error
	if r.Status.Certificate, err = s.authority.certify(node, key); err != nil {
		return err
	}
	return s.client.ask(ctx, http.MethodPut, requestsPath+"/"+name+"/status", "application/json", &r, nil)
}

// updateEntries gives each known node its entry in the fleet, and revokes the users of nodes that
// neither the cluster nor the fleet has: the controller deletes a node from the fleet when its
// agent has ended. It returns false if something failed.
func (s *signer) updateEntries(ctx context.Context) (done bool) {
	done = true
	for name := range s.known {
		is, inFleet := s.entry(name)
		object, inCluster, _ := s.nodes.GetStore().GetByKey(name)
		if !inCluster {
			if !inFleet {
				delete(s.known, name)
				s.revoke = true
			}
			continue
		}
		underlay := internal(object.(*corev1.Node).Status.Addresses)
		if len(underlay) == 0 || inFleet && slices.Equal(is.Underlay, underlay) {
			continue
		}
		if err := s.putNode(ctx, name, underlay, is); err != nil {
			s.log.Warn("cannot write the node's entry; trying again", "node", name, "error", err)
			done = false
		} else {
			s.log.Info("wrote the node's entry", "node", name, "underlay", underlay)
		}
	}
	if !s.revoke {
		return done
	}
	err := s.administer(func(ctx context.Context, roles Roles) error {
		return roles.RevokeNodes(ctx, func(node string) bool {
			_, inFleet := s.entry(node)
			_, inCluster, _ := s.nodes.GetStore().GetByKey(node)
			return !inFleet && !inCluster
		})
	})
	if s.revoke = err != nil; err != nil && ctx.Err() == nil {
		s.log.Warn("cannot revoke the users of deleted nodes; trying again", "error", err)
	}
	return done && !s.revoke
}

// entry returns the entry of a node in the fleet.
func (s *signer) entry(name string) (n model.Node, has bool) {
	s.fleet.Peek(func(v *fleet.View) { n, has = v.Node(name) })
	return n, has
}

// internal returns the internal addresses of a node.
func internal(all []corev1.NodeAddress) (underlay []netip.Addr) {
	for _, a := range all {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			underlay = append(underlay, ip)
		}
	}
	return underlay
}

// putNode writes the entry of a node. A new entry has the encapsulations and the locator of the agents' configuration.
func (s *signer) putNode(ctx context.Context, name string, underlay []netip.Addr, is model.Node) error {
	if is.Name != "" {
		is.Underlay = underlay
		return s.fleet.PutNode(ctx, is)
	}
	text, err := os.ReadFile(s.base)
	if err != nil {
		return err
	}
	var all struct {
		Encapsulations []model.Encapsulation `yaml:"encapsulations"`
		Locator        config.Locator        `yaml:"locator"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return errors.Join(fmt.Errorf("the ConfigMap %s of the agents is not valid", NodeName), err)
	}
	n := model.Node{Name: name, Underlay: underlay, Encapsulations: all.Encapsulations, Locator: all.Locator.Prefix}
	if all.Locator.Auto {
		return s.fleet.PutNodeFromPool(ctx, n, nil)
	}
	return s.fleet.PutNode(ctx, n)
}
