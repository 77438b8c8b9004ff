#!/bin/sh
# Installs chromium from Debian for the browser test of the page, if it is
# missing. If it cannot be installed, warns, and the test is skipped.
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo 'Warning: chromium not found, and installing it needs root and' \
        'apt-get; the browser test of the page is skipped' >&2
    exit 0
fi
{ apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends chromium; } ||
    echo 'Warning: chromium not installed; the browser test is skipped' >&2
exit 0
