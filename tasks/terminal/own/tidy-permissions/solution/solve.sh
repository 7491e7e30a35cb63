#!/bin/bash
set -e
cd /app/site
find . -type d -exec chmod u=rwx,go=rx,u-s,g-s,-t {} \;
find . -type f -exec chmod 0644 {} +
find . -type f -exec sh -c '[ "$(head -c 2 "$1")" = "#!" ] && chmod 0755 "$1" || true' _ {} \;
find . -path '*/private*' \( -name private -o -path '*/private/*' \) ! -type l -exec chmod go= {} +
find . -xtype l -delete
