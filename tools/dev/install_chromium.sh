#!/bin/sh
# Installs Debian's chromium for the tests of the page, where it is missing and
# this is Debian or Ubuntu and root. Elsewhere it says what to do, and the
# tests that need a browser are skipped.
set -eu

command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq &&
        apt-get install -y -qq --no-install-recommends chromium >/dev/null &&
        exit 0
fi
echo 'no chromium: the tests of the page in a browser will be skipped.' >&2
echo 'On Debian and Ubuntu: sudo apt install chromium' >&2
