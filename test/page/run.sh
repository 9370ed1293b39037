#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report in headless Chromium.   run.sh TOOL FOLDER [SNAPSHOT]...
# Pictures and reports stay in FOLDER. Other snapshots are opened, and pictures of them taken, too.
set -euo pipefail

tool=$1 folder=$2
shift 2
chromium=${CHROMIUM:-$(command -v chromium chromium-browser google-chrome | head -n 1 || true)}
for need in "${chromium:-chromium}" node npm; do
    command -v "$need" >/dev/null || { echo "page-check: no $need here: skipped (make deps WITH='chromium nodejs npm')"; exit 0; }
done
mkdir -p "$folder"
cp "$(dirname "$0")"/package*.json "$(dirname "$0")"/*.mjs "$folder"
snapshots=()
for s in "$@"; do snapshots+=("$(realpath "$s")"); done
cd "$folder"
cmp -s package-lock.json node_modules/installed || {
    npm ci --silent --no-audit --no-fund
    cp package-lock.json node_modules/installed
}
TOOL=$tool CHROMIUM=$chromium SNAPSHOTS=$(IFS=:; echo "${snapshots[*]-}") exec node --test-reporter=spec check.mjs
