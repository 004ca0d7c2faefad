# Go, the compilers, and every optional program that Debian 12 has.
# `windtunnel doctor` names what is still missing (flannel, ntttcp-for-linux).
#
#   docker build -t windtunnel-dev -f Dockerfile internal/setup
#   docker run --rm -it --privileged -v "$PWD:/src" -v /lib/modules:/lib/modules:ro windtunnel-dev
#
# The lab uses the host's kernel: it needs --privileged for namespaces, devices
# and BPF, and the host's modules.
FROM golang:1.26-bookworm AS go

FROM debian:bookworm

# netperf is in Debian's component non-free.
RUN sed -i 's/^Components: main$/Components: main non-free/' /etc/apt/sources.list.d/debian.sources

# The first line of packages: build and generate. Packages start no daemons: the lab starts its
# daemons in separate namespaces.
COPY packages.txt /tmp/
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates clang git libbpf-dev linux-libc-dev make npm \
    kmod procps util-linux $(awk '!/^#/ {print $1}' /tmp/packages.txt) \
 && rm -rf /var/lib/apt/lists/* /tmp/packages.txt

COPY --from=go /usr/local/go /usr/local/go
ENV PATH=/usr/local/go/bin:/root/go/bin:$PATH
# The mounted repository belongs to another user.
RUN git config --system --add safe.directory /src
WORKDIR /src
