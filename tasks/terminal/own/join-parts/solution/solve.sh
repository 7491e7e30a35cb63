#!/bin/bash
set -e
cd /app
declare -A name
while read -r sum file; do name[$sum]=$file; done < <(sha256sum parts/*)
while read -r sum; do cat "${name[$sum]}"; done < manifest.txt > ~/archive.tar.gz
mkdir -p restored
tar -xzf ~/archive.tar.gz -C restored
sha256sum < ~/archive.tar.gz | cut -d' ' -f1 > archive.sha256
