package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// start measures how long a pod waits for its network if many pods start at once.
func (b *kubernetesBench) start(t *testing.T) {
	pods, times := 50, 3
	if testing.Short() {
		pods, times = 4, 1
	}
	for _, n := range podNetworks {
		var asked, added []time.Duration
		n.options.Trace = true
		b.visit(t, 0, n, func(k *testcluster.Cluster) {
			k.Await("the default service account is there", func() bool {
				_, err := k.Kubectl("", "get", "serviceaccount", "default")
				return err == nil
			})
			for range times {
				startPods(k, pods)
			}
			asked, added = sandboxes(k)
		})
		if want := pods * times; len(asked) != want {
			t.Errorf("%s: the logs have %d pods, want %d", n.name, len(asked), want)
		}
		if len(asked) == 0 {
			continue
		}
		what := fmt.Sprintf("%s: %d pods at once, %d times: ", n.name, pods, times)
		p99 := quantileOf(asked, 0.99)
		limit := 200 * time.Millisecond
		measured := fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", ms(quantileOf(asked, 0.5)), ms(p99))
		if n.name == "vrouter" {
			b.row(what+"network after the request for the sandbox", fmt.Sprintf("p99 ≤ %.0f ms", ms(limit)), measured, p99 <= limit)
		} else {
			b.note(what+"network after the request for the sandbox", measured)
		}
		b.note(what+"CNI ADD", fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", ms(quantileOf(added, 0.5)), ms(quantileOf(added, 0.99))))
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// quantileOf returns the smallest value that a share of the values does not exceed.
func quantileOf(all []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(math.Ceil(share*float64(len(sorted))))-1]
}

// startPods starts pods at once, on both nodes in turn, and deletes them.
func startPods(k *testcluster.Cluster, count int) {
	var manifest strings.Builder
	for i := range count {
		fmt.Fprintf(&manifest, "apiVersion: v1\nkind: Pod\nmetadata: {name: start-%d, namespace: default, labels: {app: start}}\nspec: {nodeName: %s, terminationGracePeriodSeconds: 1, containers: [{name: c, image: %q, imagePullPolicy: Never}]}\n---\n",
			i, k.Nodes[i%len(k.Nodes)].Name, testcluster.SandboxImage)
	}
	if said, err := k.Kubectl(manifest.String(), "create", "-f", "-"); err != nil {
		k.T.Fatalf("create pods: %v: %s", err, said)
	}
	for _, args := range [][]string{{"wait", "pods", "-l", "app=start", "--for=condition=Ready", "--timeout=120s"}, {"delete", "pods", "-l", "app=start", "--wait", "--timeout=120s"}} {
		if said, err := k.Kubectl("", args...); err != nil {
			k.T.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, said)
		}
	}
}

// A line of containerd's log has a time with nanoseconds, and the name of the pod or the ID of its sandbox.
var (
	requested = regexp.MustCompile(`time="([^"]+)" level=info msg="RunPodSandbox for &PodSandboxMetadata\{Name:(start-[^,]+),Uid:([^,]+),[^"]*"`)
	returned  = regexp.MustCompile(`msg="RunPodSandbox for &PodSandboxMetadata\{Name:start-[^,]+,Uid:([^,]+),[^"]* returns sandbox id \\"([0-9a-f]+)\\""`)
	began     = regexp.MustCompile(`time="([^"]+)" level=debug msg="begin cni setup" podsandboxid=([0-9a-f]+)`)
	ended     = regexp.MustCompile(`time="([^"]+)" level=debug msg="cni result: .*" podsandboxid=([0-9a-f]+)`)
)

// sandboxes returns for each pod the time from the request for its sandbox until its network is
// there, and the part of it that the CNI plugins took.
func sandboxes(k *testcluster.Cluster) (asked, added []time.Duration) {
	for _, n := range k.Nodes {
		text := must.Get(os.ReadFile(k.Path(n.Name + "/containerd.log")))(k.T)
		begun, done, request := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
		collect := func(into map[string]time.Time, line *regexp.Regexp, key int) {
			for _, m := range line.FindAllStringSubmatch(string(text), -1) {
				at := must.Get(time.Parse(time.RFC3339Nano, m[1]))(k.T)
				if _, again := into[m[key]]; !again {
					into[m[key]] = at
				}
			}
		}
		collect(request, requested, 3)
		collect(begun, began, 2)
		collect(done, ended, 2)
		for _, m := range returned.FindAllStringSubmatch(string(text), -1) {
			uid, sandbox := m[1], m[2]
			if request[uid].IsZero() || begun[sandbox].IsZero() || done[sandbox].IsZero() {
				continue
			}
			asked = append(asked, done[sandbox].Sub(request[uid]))
			added = append(added, done[sandbox].Sub(begun[sandbox]))
		}
	}
	return asked, added
}
