#!/bin/sh
# After installing or updating: the service's user, then start, or restart, which waits for live calls.
set -e

case "$1" in
configure | 1 | 2) ;;
*) exit 0 ;;
esac
# Debian names the version before, RPM counts how many there are
updated=
if [ "$1" = 2 ] || { [ "$1" = configure ] && [ -n "$2" ]; }; then updated=yes; fi

if ! getent passwd parley >/dev/null; then
	systemd-sysusers parley.conf 2>/dev/null ||
		useradd --system --user-group --home-dir /var/lib/parley --no-create-home --shell /usr/sbin/nologin parley
fi
install -d -m 0700 -o parley -g parley /var/lib/parley

if [ ! -d /run/systemd/system ]; then
	echo "Parley is installed, and systemd does not run here: start it as the user parley with 'parley serve'."
	exit 0
fi
systemctl daemon-reload
if [ -z "$updated" ]; then
	systemctl enable --now parley.service || {
		echo "Parley did not start: see 'journalctl -u parley'."
		exit 0
	}
	cat <<-'END'

		Parley runs on http://127.0.0.1:8080.
		  How to sign in:  sudo cat /var/lib/parley/first-sign-in.txt
		  Settings:        /etc/parley/parley.env, then: sudo systemctl restart parley
		  What is missing: sudo -u parley PARLEY_DATA=/var/lib/parley parley doctor

	END
elif systemctl is-active --quiet parley.service; then
	echo "Parley restarts once its live calls have ended; it waits for as long as PARLEY_DRAIN says (1h)."
	systemctl restart parley.service || echo "Parley did not start: see 'journalctl -u parley'."
	echo "What changed: /usr/share/doc/parley/CHANGELOG.md"
fi
