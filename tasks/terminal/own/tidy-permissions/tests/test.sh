#!/bin/bash
mkdir -p /logs/verifier
if python3 -I /tests/check.py; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
