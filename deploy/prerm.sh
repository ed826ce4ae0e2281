#!/bin/sh
# Before removing, not before updating: stop once live calls have ended.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now parley.service || true
fi
