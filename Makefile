# Windtunnel: `make demo` shows what it does, `make test` tests it.

GO         ?= go
GO_WANTED  := 1.26
REVISION   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS    := -s -w -X main.revision=$(REVISION)
export CGO_ENABLED = 0
export GOTOOLCHAIN ?= auto
# Build, lint and tests use the same flags, so each package is compiled only once. With
# -trimpath, clones in other directories share the compiled packages.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)

.PHONY: all help build packages setup weaver flannel demo test test-all test-bare test-guest test-kubernetes conformance test-race bench bench-kubernetes lint generate dist image dist-test clean go-version root

all: build

# Each target with a comment behind two # signs is listed.
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

build: go-version ## Build every program into bin/
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# The lab's system "weave" needs weaver, the router of Weave Net.
# weaver creates a dummy device for a moment, to set the MTU of a bridge. Some kernels have no
# dummy devices, so this build uses an ifb device instead. The go command does not let a build
# replace a file of the module cache, so the source is copied.
weaver: go-version ## Build Weave's router from its source, and install it (C compiler, libpcap-dev)
	@cd lab/system/weaver && made=$$(mktemp -d) && trap 'rm -rf "$$made"' EXIT && cp go.mod go.sum "$$made" && $(GO) mod download github.com/weaveworks/weave && \
	cp -r "$$($(GO) list -m -f '{{.Dir}}' github.com/weaveworks/weave)" "$$made/weave" && chmod -R u+w "$$made/weave" && \
	echo 'module github.com/weaveworks/weave' >"$$made/weave/go.mod" && sed -i 's/netlink[.]Dummy{/netlink.Ifb{/' "$$made/weave/net/bridge.go" && \
	$(GO) mod edit -replace "github.com/weaveworks/weave=$$made/weave" "$$made/go.mod" && \
	CGO_ENABLED=1 $(GO) install -modfile "$$made/go.mod" -ldflags '-s -w -X main.version=2.6.5' github.com/weaveworks/weave/prog/weaver

FLANNEL := v0.26.7
flannel: go-version ## Build flannel from its source, and install it (C compiler)
	CGO_ENABLED=1 $(GO) install -ldflags '-s -w -X github.com/flannel-io/flannel/pkg/version.Version=$(FLANNEL)' github.com/flannel-io/flannel@$(FLANNEL)

# Go 1.21 and newer fetch the wanted toolchain by themselves.
go-version:
	@command -v $(GO) >/dev/null 2>&1 || { echo "Go is not installed. Windtunnel needs Go $(GO_WANTED) (1.21 or newer fetches it by itself): see https://go.dev/doc/install, or 'apt-get install golang' where the distribution's is new enough." >&2; exit 1; }
	@v=$$(GOTOOLCHAIN=local $(GO) env GOVERSION 2>/dev/null | sed 's/^go//'); major=$${v%%.*}; rest=$${v#*.}; minor=$${rest%%.*}; minor=$${minor%%[!0-9]*}; \
	if [ "$${major:-0}" -lt 1 ] || { [ "$$major" -eq 1 ] && [ "$${minor:-0}" -lt 21 ]; }; then \
		echo "Go $$v is too old. Windtunnel needs Go $(GO_WANTED) (1.21 or newer fetches it by itself): see https://go.dev/doc/install." >&2; exit 1; fi

root:
	@[ "$$(id -u)" = 0 ] || { echo "This makes network namespaces and devices, which needs root: use sudo make $(MAKECMDGOALS)." >&2; exit 1; }

# Measures raw, bridge and VXLAN networking on this machine, and then vrouter
# beside them, in 5 to 6 minutes.
demo: root build ## Measure four networks on this machine in about 6 minutes (root)
	@bin/windtunnel doctor --brief
	bin/windtunnel run quick
	bin/windtunnel run quick-overlay --scenario bridge,vrouter-direct,vxlan,vrouter-vxlan

packages:
	@internal/setup/setup.sh

# The optional programs that the tests and some systems use: Debian's packages of
# internal/setup/packages.txt, two kernels of Debian for VMs and tests, and Weave and flannel, which no
# distribution packages. What is there already stays as it is.
setup: packages build ## Install the optional programs of tests and systems (root and apt-get; else only says what is missing)
	@fetch() { ls $$1 >/dev/null 2>&1 || ! command -v apt-get >/dev/null || { echo "setup: windtunnel vm fetch $$3 (a kernel of Debian for VMs and tests)"; env $$2 bin/windtunnel vm fetch $$3 >/dev/null; } || true; }; \
	fetch '$(KERNEL)' ''; fetch '$(NETKIT)' XDG_CACHE_HOME=$(CACHE)/netkit linux-image-6.12-cloud-amd64
	@if command -v gcc >/dev/null && [ -e /usr/include/stdlib.h ]; then \
		bin=$$($(GO) env GOBIN); bin=$${bin:-$$($(GO) env GOPATH)/bin}; \
		[ -x "$$bin/flannel" ] || command -v flanneld >/dev/null || $(MAKE) --no-print-directory flannel || true; \
		[ -x "$$bin/weaver" ] || command -v weaver >/dev/null || [ ! -e /usr/include/pcap/pcap.h ] || $(MAKE) --no-print-directory weaver || true; \
	fi

# Each test binary runs in a room (internal/testroom), so that most packages run side by side.
# The packages of FIRST take longest, so they start first. With -each, the tests of a package run in a
# room each, those of LONG first. The packages of MEASURE compare figures with counters: they run one at a
# time, and few of their tests side by side. The tests of ALONE and one traffic tool after the other
# run by themselves. The tests of ALONE_LONG are long: without ALL=yes they are skipped among the others.
# What cannot run here is skipped, and the table at the end says why. The lab's tests run the vrouter
# program, as a user would have it in PATH. `make lint` vets the tests.
# Without symbol tables (-s) they link faster.
# With GOGC=400, garbage collections take less CPU time, and everything more memory.
CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/windtunnel
KERNEL  := $(CACHE)/vm/kernel-*/boot/vmlinuz-*
NETKIT  := $(CACHE)/netkit/windtunnel/vm/kernel-*/boot/vmlinuz-*
MEASURE := ./lab/experiment ./lab/testbed/ssh
ALONE    = ^Test(ARateIsExact|ANodesProgramsGetItsShare|RequestsWaitInTheQueue|TheExperimentsOwnPrograms|ABusyProgramMarks|EachSendIsAPacket$(if $(ALL),|$(ALONE_LONG)))
ALONE_LONG := AMatrixNames|AnECMPRouteMoves|Faults|EverySystemComesUp|VMsReach|AVMThat|TheFailureOfAVM|ColocatedVMs|VMsLeaveNothing|AnInterruptWhileVMs|TheHostsVNICSharesTheSwitchWithAVM
ALONE_IN := ./lab/testbed/netns ./lab/experiment $(if $(ALL),./lab/testbed/ssh ./vrouter/e2e)
FIRST   := ./vrouter/e2e ./cmd/windtunnel ./vrouter/agent ./vrouter/datapath ./lab/results ./lab/report/drawings
LONG    := Scripts|Published|WhatKilledAgents|ACopyToAHost|AHostThatVanishes|ARunSurvives|AnEchoThat
ROOM     = $(CURDIR)/bin/testroom $(if $(HIDE),-hide,-again) -pids cmd/vrouter,vrouter
TEST     = GOGC=400 PATH="$(CURDIR)/bin:$$PATH" WINDTUNNEL_BIN="$(CURDIR)/bin" VROUTER_TEST_KERNEL="$(if $(HIDE),,$$({ ls $(KERNEL) | tail -n 1; ls $(NETKIT); } 2>/dev/null | paste -sd:))" \
	$(GO) tool gotestsum --format standard-quiet --hide-summary skipped
GOTEST   = -count=1 -vet=off -ldflags=-s -timeout 20m $(if $(ALL),,-short) $(TESTFLAGS)

# As root, the tests run with the optional programs hidden, as on a machine that has none of
# them, and then the skipped tests run with them. SETUP=no leaves the machine as it is. HIDE=yes
# only hides the programs. ALL=yes runs the long tests too.
test: build ## Run the tests but the long ones (SETUP=no: install nothing); as root, else those that need root are skipped
	@$(if $(filter no,$(SETUP)),,$(MAKE) --no-print-directory setup)
	@$(GO) build -o bin/ ./internal/testroom ./internal/testsummary && rm -rf out/test && mkdir -p out/test
	@measure=$$($(GO) list $(MEASURE)) && others=$$($(GO) list ./... | grep -v /lab/tool$$ | grep -vxF "$$measure") || exit 1; failed=0; \
	$(TEST) --jsonfile out/test/others.json -- -p 4 -exec '$(ROOM) -each cmd/windtunnel=3,lab/testbed/netns=2 -long "$(LONG)"' -skip '$(ALONE)' $(GOTEST) $(FIRST) $$others || failed=1; \
	$(TEST) --jsonfile out/test/measure.json -- -p 1 -exec '$(ROOM) -each lab/experiment=3,lab/testbed/ssh=4 -long "$(LONG)"' -skip '$(ALONE)' $(GOTEST) $$measure || failed=1; \
	$(TEST) --jsonfile out/test/alone.json -- -p 1 -exec '$(ROOM)' -run '$(ALONE)' $(GOTEST) $(ALONE_IN) || failed=1; \
	$(TEST) --jsonfile out/test/tools.json -- -p 1 -parallel 1 -exec '$(ROOM)' $(GOTEST) ./lab/tool || failed=1; \
	bin/testsummary out/test/*.json; exit $$failed

test-all: ## Run every test
	@$(MAKE) --no-print-directory test ALL=yes

# Only the first half of `make test` as root: the tests that need a program are skipped.
test-bare: root ## Run the tests but the long ones, with the optional programs hidden (root)
	@$(MAKE) --no-print-directory test SETUP=no HIDE=yes

# Builds a root file system of Debian 12 once into the user's cache, in some minutes. Needs the Debian
# packages mmdebstrap and qemu-system-x86, and a kernel from `make setup`.
GUEST := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/windtunnel/guest-debian-12.tar

$(GUEST):
	mmdebstrap --variant=minbase --include=systemd-sysv,udev,ifupdown,isc-dhcp-client,iproute2 \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--customize-hook='printf "auto eth0\niface eth0 inet dhcp\niface eth0 inet6 dhcp\n" > "$$1/etc/network/interfaces"' \
		--customize-hook='rm -rf "$$1"/var/cache/apt "$$1"/var/lib/apt/lists/* "$$1"/etc/resolv.conf "$$1"/etc/hostname' bookworm $@.new
	mv $@.new $@

test-guest: root build $(GUEST) ## Test that Debian in a VM gets its network from vrouter (root)
	@$(GO) build -o bin/ ./internal/testroom
	PATH="$(CURDIR)/bin:$$PATH" VROUTER_GUEST_IMAGE=$(GUEST) VROUTER_TEST_KERNEL="$$(ls $(KERNEL) | tail -n 1)" \
	$(GO) test -exec 'testroom -pids cmd/vrouter,vrouter' -count=1 -vet=off -v -run TestADistributionInAVM ./vrouter/e2e

# End-to-end tests run in a VM without KVM. There workloads have netkit devices.
TESTS := TestNetkit|TestPacketsOfNetkitDevices|TestDirectPacketsArriveIntact|TestDatagramsOfEverySizeComeBack|TestTheMTUOfWorkloadsFollowsFromTheUnderlays|TestTenants|TestDirectSeparates|TestPolicies|TestPadding|TestALinkLocalSource|TestCNIGivesContainers|TestABridgedPacket

test-netkit: root build ## Run the end-to-end tests TESTS in a VM, with netkit devices (root; minutes)
	@$(GO) build -o bin/ ./internal/testroom
	PATH="$(CURDIR)/bin:$$PATH" WINDTUNNEL_BIN="$(CURDIR)/bin" VROUTER_GUEST_TESTS='$(TESTS)' VROUTER_TEST_KERNEL="$$(ls $(NETKIT) | tail -n 1)" \
	$(GO) test -exec 'testroom -pids cmd/vrouter,vrouter' -count=1 -vet=off -timeout 2h -v -run TestOtherTestsPassWithNetkitDevices ./vrouter/e2e

# Builds Kubernetes and flannel once into the user's cache: about 6 minutes, and 4 GB of Go's
# build cache. Needs a C compiler and the Debian packages containerd, etcd-server, runc and
# iptables.
test-kubernetes: root build image ## Test on Kubernetes clusters that the tests start (root)
	WINDTUNNEL_KUBERNETES=1 WINDTUNNEL_BIN="$(CURDIR)/bin" $(GO) test -count=1 -v -p 1 -timeout 70m -run 'TestACluster|TestAnAgentFollows|TestTheExample' ./lab/testbed/k8s ./vrouter/k8s

# Upstream's cases whose names match FOCUS. Their results are written into docs/conformance.md.
FOCUS := \[sig-network\] (Netpol|Services)

conformance: root build image ## Run upstream's cases for policies and services (root, hours)
	WINDTUNNEL_KUBERNETES=1 WINDTUNNEL_CONFORMANCE='$(FOCUS)' WINDTUNNEL_BIN="$(CURDIR)/bin" $(GO) test -count=1 -v -timeout 4h -run TestConformance ./vrouter/k8s

# The packages that start goroutines, whose tests need no root, and that do not import SQLite,
# which takes long to compile. The race detector needs cgo and a C compiler. By default each
# program with the detector sleeps for 1 s at its end.
RACE := ./lab/agent ./lab/child ./lab/traffic ./vrouter/api ./vrouter/docker ./vrouter/fleet ./vrouter/store

test-race: go-version ## Run the tests of concurrent packages under the race detector
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -short -count=1 -vet=off -p 2 $(TESTFLAGS) $(RACE)

# The figures of docs/performance.md, except those of bench-kubernetes. Nothing else should run meanwhile. The command
# resumes what was interrupted.
bench: root build ## Measure the figures of docs/performance.md, and write the page (root, a quiet machine, hours)
	WINDTUNNEL_TIMING_TESTS=1 $(GO) test -count=1 -v -run TestBusyAgreesWithAKnownLoad ./lab/meter
	$(GO) run ./internal/performance -write docs/performance.md

# Clusters with vrouter, flannel and the bridge plugin take turns. PART is pods, connections or start. SHORT=-short only
# shows that each part works.
PART := .

bench-kubernetes: root build image ## Compare vrouter with other pod networks (root, a quiet machine, 45 minutes)
	WINDTUNNEL_KUBERNETES=1 WINDTUNNEL_BIN="$(CURDIR)/bin" $(GO) test -count=1 -v -timeout 90m $(SHORT) -run 'TestKubernetes/$(PART)' ./internal/performance

# The largest file that git may hold, bytes: a program or a data set is larger.
LARGEST := 1000000

lint: go-version ## Check formatting, vet, staticcheck, unparam, spelling and file sizes
	@large=$$(git ls-tree -rl HEAD | awk '$$4 > $(LARGEST) {print $$5}'); [ -z "$$large" ] || { echo "remove from git what exceeds $(LARGEST) bytes:" $$large >&2; exit 1; }
	@for p in internal/mutants/*.patch; do git apply --check $$p || { echo "$$p does not apply any more: change the same line of today's file" >&2; exit 1; }; done
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change:" $$unformatted >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) tool unparam ./...
	$(GO) tool misspell -error -i ECT $$(git ls-files '*.go' '*.c' '*.h' '*.md' '*.yaml')

# The eBPF objects and the suites' schema. Needs clang and libbpf's headers.
generate: go-version ## Write generated files: eBPF objects, JSON Schema, charts (clang, libbpf-dev, npm)
	BPF2GO_CFLAGS="-O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/$$(gcc -print-multiarch 2>/dev/null || dpkg-architecture -qDEB_HOST_MULTIARCH)" $(GO) generate ./...

# Programs, packages and images for amd64 and arm64. The tool is a separate module, so that its
# libraries are no dependencies of the programs; docs/packages.md.
dist: go-version ## Build a release into out/dist/: static programs, packages, images, SBOMs
	cd internal/dist && $(GO) run . -root ../.. -o ../../out/dist

# With the revision of `make build`, the programs find their images without --image.
image: go-version ## Build the container images, out/windtunnel.image.tar and out/vrouter.image.tar, without a daemon
	cd internal/dist && $(GO) run . -root ../.. -revision '$(REVISION)' -images ../../out

# It builds everything twice: some minutes with an empty build cache.
dist-test: go-version ## Test the release: packages, images, SBOMs, reproducibility (root)
	staticcheck=$$($(GO) tool -n staticcheck) && cd internal/dist && $(GO) vet ./... && $$staticcheck ./... && $(GO) test -count=1 -vet=off -timeout 30m $(TESTFLAGS) ./...

clean: ## Remove bin/ and out/
	rm -rf bin out
