#!/bin/bash
set -e
cat > ~/combine.py <<'PYTHON'
import json
import re
import tomllib

base = tomllib.load(open("/app/config/base.toml", "rb"))
layers = [base, tomllib.load(open(f"/app/config/profiles/{base.pop('profile')}.toml", "rb"))]
layers.append(json.load(open("/app/config/local.json")))
overrides = {}
for line in open("/app/overrides.env"):
    match = re.fullmatch(r"APP__([A-Z]+)__([A-Z]+)=(.*)", line.rstrip("\n"))
    if match:
        value = {"": None, "true": True, "false": False}.get(match[3], match[3])
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
            value = int(value)
        overrides.setdefault(match[1].lower(), {})[match[2].lower()] = value
merged = {}
for layer in (*layers, overrides):
    for section, settings in layer.items():
        merged.setdefault(section, {}).update(settings)
merged = {name: {k: v for k, v in section.items() if v is not None} for name, section in merged.items()}
REFERENCE = re.compile(r"\$\{(\w+)\.(\w+)\}")


def final(value):
    if not isinstance(value, str):
        return value
    whole = REFERENCE.fullmatch(value)
    if whole:
        return final(merged[whole[1]][whole[2]])

    def text(match):
        found = final(merged[match[1]][match[2]])
        return str(found).lower() if isinstance(found, bool) else str(found)

    return REFERENCE.sub(text, value)


result = {name: {key: final(value) for key, value in section.items()} for name, section in merged.items() if section}
json.dump(result, open("/app/effective.json", "w"), indent=2, sort_keys=True)
PYTHON
python3 ~/combine.py
