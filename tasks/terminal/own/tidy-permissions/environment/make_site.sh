#!/bin/bash
# Make a web site whose permissions are wrong in many ways.
set -e
mkdir -p site/css site/bin site/private/keys site/docs/private "site/docs/old drafts"
cd site
printf '<h1>Home</h1>\n' > index.html
printf 'body { margin: 0 }\n' > css/main.css
printf '#!/bin/sh\necho deploy\n' > bin/deploy
printf '#!/usr/bin/env python3\nprint("stats")\n' > bin/stats.py
printf 'no script #!\n' > bin/notes.txt
printf 'secret\n' > private/keys/id
printf '#!/bin/sh\necho rotate\n' > private/rotate.sh
printf 'minutes\n' > docs/private/minutes.txt
printf 'draft\n' > "docs/old drafts/a b.txt"
printf '' > docs/empty
printf 'x\n' > docs/privateer.txt
ln -s index.html home.html
ln -s gone.html lost.html
ln -s ../nowhere docs/dangling
ln -s ../css docs/styles
ln -s missing "docs/old drafts/link"
chmod 4755 bin/deploy
chmod 600 index.html
chmod 666 css/main.css
chmod 644 bin/stats.py private/rotate.sh private/keys/id
chmod 755 bin/notes.txt docs/empty
chmod 444 docs/private/minutes.txt
chmod 640 "docs/old drafts/a b.txt"
chmod 2775 css
chmod 1777 docs
chmod 700 bin
chmod 755 private docs/private
chmod 775 private/keys
chmod 500 "docs/old drafts"
chmod 777 .
