package k8s

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// removal says whether the installation is being deleted. A pod that ends for another reason, such
// as an upgrade, leaves everything in place.
type removal struct {
	client  *client
	objects [][2]string // collections and names; if one object is deleted, so is the installation
	once    sync.Once
	begun   chan struct{}
}

// removalWait is how long to wait for an event of a watch, if the pod has lost its right to ask.
const removalWait = 3 * time.Second

// watchRemoval watches the namespace and the object that owns the pod.
func watchRemoval(ctx context.Context, c *client, namespace, collection, name string) *removal {
	r := &removal{client: c, begun: make(chan struct{}), objects: [][2]string{
		{"/api/v1/namespaces", namespace},
		{"/apis/apps/v1/namespaces/" + namespace + "/" + collection, name},
	}}
	for _, o := range r.objects {
		go c.watchDeleted(ctx, o[0], o[1], func() { r.once.Do(func() { close(r.begun) }) })
	}
	return r
}

// isRemoved reports whether the installation is being deleted. Call it after the pod was told to
// end. `kubectl delete` deletes the permissions of the pod at the same time, so the answer may come
// from the watch alone.
func (r *removal) isRemoved() bool {
	ctx, cancel := context.WithTimeout(context.Background(), removalWait)
	defer cancel()
	known := true
	for _, o := range r.objects {
		var is object
		err := r.client.get(ctx, o[0]+"/"+o[1], &is)
		if isCode(err, http.StatusNotFound) || err == nil && is.Metadata.DeletionTimestamp != nil {
			return true
		}
		known = known && err == nil
	}
	if known {
		return false // an object that was deleted before is there again
	}
	select {
	case <-r.begun:
		return true
	case <-ctx.Done():
	}
	select {
	case <-r.begun:
		return true
	default:
		return false
	}
}
