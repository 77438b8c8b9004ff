#!/bin/sh
# Installs Debian's chromium for the browser test of the page, where it is
# missing and can be had. Warns and goes on where it cannot: the test is
# skipped then.
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo 'no chromium here, and no way to install it (needs root and apt-get):' \
        'the browser test of the page is skipped' >&2
    exit 0
fi
{ apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends chromium; } ||
    echo 'chromium was not installed: the browser test is skipped' >&2
exit 0
