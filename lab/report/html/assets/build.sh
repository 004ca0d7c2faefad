#!/usr/bin/env bash
# Rebuilds echarts.min.js from the npm registry: needs node, npm and network.
set -euo pipefail
cd "$(dirname "$0")"
echarts=6.1.0
esbuild=0.28.2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo '{"private": true}' >"$scratch/package.json"
cp echarts.entry.js "$scratch/"
npm install --prefix "$scratch" --no-audit --no-fund --ignore-scripts --silent "echarts@$echarts" "esbuild@$esbuild"

modules=$scratch/node_modules
cp "$modules/echarts/LICENSE" LICENSE.echarts
cp "$modules/echarts/NOTICE" NOTICE.echarts
cp "$modules/zrender/LICENSE" LICENSE.zrender
tr -d '\r' <"$modules/tslib/LICENSE.txt" >LICENSE.tslib

# Every report carries the library on, so the notices travel inside it.
banner=$(
	printf '/*!\nApache ECharts %s, the parts that this page draws with.\nLicensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0\n\n' "$echarts"
	cat NOTICE.echarts
	printf '\n\nIt contains ZRender:\n\n'
	cat LICENSE.zrender
	printf '\nand tslib:\n\n'
	cat LICENSE.tslib
	printf '\n*/'
)
cd "$scratch"
node_modules/.bin/esbuild echarts.entry.js --bundle --minify --charset=utf8 --format=iife --global-name=echarts \
	--legal-comments=none --banner:js="$banner" --outfile=out.js --log-level=warning
# A browser reads CRLF as LF, so that the script would not match its hash.
if grep -qi '</script' out.js || grep -q $'\r' out.js; then
	echo "the build holds a closing script tag or a carriage return, which cannot stand in the page" >&2
	exit 1
fi
cp out.js "$OLDPWD/echarts.min.js"
