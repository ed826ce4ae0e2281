#!/bin/sh
# After removing: the data stay.
set -e

case "$1" in
remove | purge | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ -d /var/lib/parley ]; then
	echo "The data of Parley stay in /var/lib/parley; remove the directory when you don't need them."
fi
