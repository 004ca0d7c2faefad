#!/bin/sh
# Installs the optional packages of packages.txt that this machine lacks, where it can: as
# root, with apt-get. Says in one line what it installs, or why it does not.
set -eu
list=$(dirname "$0")/packages.txt

# Prints the packages that have a missing file.
missing() {
	grep -v '^#' "$list" | while read -r package files _; do
		for file in $(echo "$files" | tr ',' ' '); do
			case $file in
			/*) ls $file >/dev/null 2>&1 || { echo "$package"; break; } ;; # a pattern
			*) PATH=$PATH:/usr/sbin:/sbin command -v "$file" >/dev/null || { echo "$package"; break; } ;;
			esac
		done
	done
}

# Prints those of the packages that apt-get can install. One call for all of them: where apt keeps
# no cache, as in images of containers, a call takes a second.
available() {
	LC_ALL=C apt-cache policy "$@" 2>/dev/null |
		awk '/^[^ ]/ {sub(":$", "", $1); package = $1} /^ *Candidate: [^(]/ {print package}'
}

wanted=$(missing)
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "setup: tests that need these packages are skipped (installing them needs root and apt-get):" $wanted
	exit 0
fi
can=$(available $wanted)
if [ "$can" != "$wanted" ] && [ -z "$(find /var/lib/apt/lists -name '*Packages*' -mtime -1 2>/dev/null)" ]; then
	apt-get update -qq || echo "setup: apt-get update failed" >&2
	can=$(available $wanted)
fi
[ -n "$can" ] || { echo "setup: apt-get offers none of these packages; what needs them is skipped:" $wanted; exit 0; }
echo "setup: apt-get install" $can "(optional programs of tests and systems; SETUP=no leaves the machine as it is)"

# The daemons are for the tests to start, in namespaces of their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod +x $policy
fi
log=$(mktemp)
if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $can >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "setup: apt-get could not install all of them; what needs them is skipped" >&2
fi
rm -f "$log"
