#!/usr/bin/env bash
# Shows that `make test` sees a mistake: applies each patch of this directory, which changes one line
# of a program, runs the tests that its first lines name, and removes the change. Prints "caught"
# for each patch, or why not. Needs root and a clean checkout; takes some minutes.
#
#	sudo internal/mutants/run.sh [01 02 …]
set -uo pipefail
cd "$(dirname "$0")/../.."
[ -z "$(git status --porcelain)" ] || { echo "there are uncommitted changes: commit or stash them first" >&2; exit 2; }
export CGO_ENABLED=0 GOFLAGS=-trimpath PATH="$PWD/bin:$PATH" WINDTUNNEL_BIN="$PWD/bin"
go build -o bin/ ./internal/testroom || exit 2
log=$(mktemp) applied='' status=0
trap '[ -z "$applied" ] || git apply -R "$applied"; make build >/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
[ $# -gt 0 ] || set -- $(ls internal/mutants | sed -n 's/[.]patch$//p')
for n; do
	patch=internal/mutants/$n.patch result=caught
	package=$(sed -n 's/^package: //p' "$patch") tests=$(sed -n 's/^tests: //p' "$patch")
	if ! git apply "$patch" 2>"$log"; then
		result='does not apply'
	else
		applied=$patch
		if ! make build >"$log" 2>&1; then
			result='does not build'
		elif go test -exec 'testroom -pids cmd/vrouter,vrouter' -count=1 -short -vet=off -timeout 5m -run "$tests" -v "$package" >"$log" 2>&1; then
			result='NOT CAUGHT'
		elif ! grep -qE '^ *--- FAIL|^panic: ' "$log"; then
			result='does not build'
		fi
		git apply -R "$patch"
		applied=
	fi
	[ "$result" = caught ] || { status=1; tail -n 5 "$log"; }
	echo "$n $result: $(sed -n 's/^+++ b[/]//p' "$patch"): $tests"
done
exit $status
