package testcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"windtunnel/internal/must"
	"windtunnel/lab/parallel"
)

// Create creates count objects, several at the same time. object returns the collection's path and the object for each index.
func (k *Cluster) Create(count int, object func(i int) (collection string, object map[string]any)) {
	k.T.Helper()
	const clients = 16
	client := k.Client()
	defer client.CloseIdleConnections()
	must.Succeed(k.T, parallel.Each(make([]struct{}, clients), func(first int, _ struct{}) error {
		for i := first; i < count; i += clients {
			collection, o := object(i)
			if err := k.send(client, http.MethodPost, collection, "application/json", o); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Patch changes the object at a path by a merge patch.
func (k *Cluster) Patch(client *http.Client, path string, patch map[string]any) {
	k.T.Helper()
	must.Succeed(k.T, k.send(client, http.MethodPatch, path, "application/merge-patch+json", patch))
}

func (k *Cluster) send(client *http.Client, method, path, kind string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, "https://"+k.API()+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", kind)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if said, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, said)
	}
	return nil
}
