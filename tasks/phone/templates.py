"""All templates of requests, those of different apps in turn."""

from __future__ import annotations

from itertools import chain, zip_longest

from lmgym.tasks.phone import requests_people, requests_planning, requests_spending
from lmgym.tasks.phone.goals import Builder

_AREAS = (requests_people.TEMPLATES, requests_planning.TEMPLATES, requests_spending.TEMPLATES)
TEMPLATES: dict[str, Builder] = {build.__name__: build for build in chain(*zip_longest(*_AREAS)) if build is not None}
