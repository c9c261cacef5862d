"""What `npm run fuzz` changes in the requests that Schemathesis makes.

Nothing that decides whether a request is right: generated directories are kept below the fuzzer's own, other hosts are
not asked for anything, and blocking reads are made short, because most of the run would otherwise be waiting.
"""

import os
import re

import schemathesis

WORK = os.environ["SVC_FUZZ_WORK"]
DURATION = re.compile(r"(?:0|(?:[0-9]{1,15}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))+)")
# Other hosts: packs and repositories must not be fetched.
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*://|[^/\s]+@[^/\s]+:", re.IGNORECASE)
SHORT_WAIT = "20ms"


@schemathesis.hook
def before_call(context, case, **kwargs):
    shorten_wait(case.query)
    keep_inside(case.body)


def shorten_wait(query):
    if not isinstance(query, dict) or "index" not in query:
        return
    wait = query.get("wait", "30s")
    # One that breaks its schema stays: it is what the case is about.
    if isinstance(wait, str) and len(wait) <= 64 and DURATION.fullmatch(wait):
        query["wait"] = SHORT_WAIT


def keep_inside(body):
    if not isinstance(body, dict):
        return
    for field in ("dir", "path"):
        path = body.get(field)
        if isinstance(path, str) and path.startswith("/") and not path.startswith(WORK):
            body[field] = WORK + path
    for field, value in body.items():
        if isinstance(value, str) and ELSEWHERE.match(value):
            body[field] = "https://127.0.0.1/fuzzed.git"
