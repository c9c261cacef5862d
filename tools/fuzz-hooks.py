"""What `npm run fuzz` changes in the requests that Schemathesis makes.

Nothing that decides whether a request is right: names become names of what is there, generated directories are kept
below the fuzzer's own, other hosts are not asked for anything, and blocking reads are made short, because most of the run
would otherwise be waiting.
"""

import atexit
import collections
import json
import os
import re
import zlib
from urllib.parse import quote

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

WORK = os.environ["SVC_FUZZ_WORK"]
# What the fuzzed city holds; written anew all the time.
WORLD = os.environ["SVC_FUZZ_WORLD"]
# Where the answers are counted, by operation and status.
SEEN = os.environ["SVC_FUZZ_SEEN"]
DURATION = re.compile(r"(?:0|(?:[0-9]{1,15}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))+)")
# Other hosts: packs and repositories must not be fetched.
ELSEWHERE = re.compile(r"[a-z][a-z+.-]*://|[^/\s]+@[^/\s]+:", re.IGNORECASE)
SHORT_WAIT = "20ms"
# Fields of agents and providers that are run: what is made up must not be (as in test/support/contract-cases.ts).
RUN = re.compile(
    r"(?:command|acp_command|start_command|resume_command|pre_start|session_setup|session_setup_script|session_live"
    r"|scale_check|work_query|sling_query|on_boot|on_death)(?:_append)?"
)

# Lines are text to OpenAPI; whatever stands in them, the request is a good one.
LINE = st.one_of(
    st.just('{"id": "al-f1", "title": "fuzzed"}'),
    st.just('{"id": "al-f2", "title": "fuzzed", "status": "closed", "labels": ["a"]}'),
    st.just("not JSON"),
)
schemathesis.openapi.media_type(
    "application/x-ndjson",
    st.lists(LINE, max_size=4).map(lambda lines: "\n".join(lines).encode()),
)


# So are files of formulas and orders, most of which are refused for what stands in them.
FILE = st.one_of(
    st.just('formula = "fuzzed"\n[[steps]]\nid = "a"\ntitle = "A"\n'),
    st.just('[order]\nexec = "true"\ntrigger = "manual"\n'),
    st.just('formula = "fuzzed"\nextends = ["fuzzed"]\n'),
    st.text(max_size=200),
)
schemathesis.openapi.media_type("application/toml", FILE.map(lambda text: text.encode("utf-8", "replace")))


@schemathesis.hook
def before_call(context, case, **kwargs):
    # What follows from an earlier answer has its names from there.
    if case.meta is None or case.meta.phase.name != "stateful":
        name_what_is_there(case)
    shorten_wait(case.query)
    shorten_given_wait(case)
    keep_inside(case.body)


seen = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    seen[f"{case.operation.definition.raw.get('operationId')} {response.status_code}"] += 1


@atexit.register
def tell_seen():
    with open(SEEN, "w", encoding="utf-8") as file:
        json.dump(seen, file)


class World:
    def __init__(self):
        self.read_at = None
        self.held = {}

    def now(self):
        changed = os.stat(WORLD).st_mtime_ns
        if changed != self.read_at:
            with open(WORLD, encoding="utf-8") as file:
                self.held = json.load(file)
            self.read_at = changed
        return self.held


world = World()


def name_what_is_there(case):
    """Only in parts that are right, where another name is as right."""
    held = world.now()
    broken = (lambda place: False) if case.meta is None else case.meta.is_negative_at
    if isinstance(case.path_parameters, dict) and not broken(ParameterLocation.PATH):
        number = number_of(case.path_parameters)
        places = held["paths"].get(case.operation.path, [])
        if places and number % 8 != 0:
            for name, value in places[number // 8 % len(places)].items():
                if name in case.path_parameters:
                    case.path_parameters[name] = quote(value, safe="")
    # Else nearly everything that takes the header is refused for it.
    if case.headers is not None and "If-Match" in case.headers and not broken(ParameterLocation.HEADER):
        if number_of([case.headers["If-Match"], case.body]) % 4 != 0:
            case.headers["If-Match"] = "*"
    if isinstance(case.query, dict) and not broken(ParameterLocation.QUERY):
        name_fields(held["fields"], case.query)
    if isinstance(case.body, dict) and not broken(ParameterLocation.BODY):
        right = held["bodies"].get(case.operation.definition.raw.get("operationId"), [])
        number = number_of(case.body)
        if right and number % 3 == 0:
            case.body.update(right[number // 3 % len(right)])
        else:
            name_fields(held["fields"], case.body)


def name_fields(fields, parts):
    for field, value in parts.items():
        names = fields.get(field)
        number = number_of(value)
        if not names or number % 2 == 0:
            continue
        name = names[number // 2 % len(names)]
        if isinstance(value, str):
            parts[field] = name
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            parts[field] = [names[(number // 2 + at) % len(names)] for at in range(len(value))]


def number_of(value):
    """The same for the same request, so that a seed repeats a run as far as the city does."""
    return zlib.crc32(repr(value).encode("utf-8", "backslashreplace"))


def shorten_wait(query):
    if not isinstance(query, dict) or "index" not in query:
        return
    wait = query.get("wait", "30s")
    # One that breaks its schema stays: it is what the case is about.
    if isinstance(wait, str) and len(wait) <= 64 and DURATION.fullmatch(wait):
        query["wait"] = SHORT_WAIT


# Operations that wait without an index, and where they are told how long.
WAITING = {"publish-transcript-entry": "query", "claim-deliveries": "body"}


def shorten_given_wait(case):
    place = WAITING.get(case.operation.definition.raw.get("operationId"))
    parts = None if place is None else getattr(case, place)
    if not isinstance(parts, dict):
        return
    wait = parts.get("wait")
    if isinstance(wait, str) and len(wait) <= 64 and DURATION.fullmatch(wait):
        parts["wait"] = SHORT_WAIT


def keep_inside(body):
    if isinstance(body, list):
        for item in body:
            keep_inside(item)
    if not isinstance(body, dict):
        return
    for field in ("dir", "path", "work_dir", "overlay_dir"):
        path = body.get(field)
        if isinstance(path, str) and path.startswith("/") and not path.startswith(WORK):
            body[field] = WORK + path
    for field, value in body.items():
        if RUN.fullmatch(field):
            body[field] = not_run(value)
        elif field == "min_active_sessions" and isinstance(value, int):
            body[field] = min(value, 1)
        elif isinstance(value, str):
            if ELSEWHERE.match(value):
                body[field] = "https://127.0.0.1/fuzzed.git"
        else:
            keep_inside(value)


def not_run(value):
    if isinstance(value, list):
        return ["true" if isinstance(item, str) else item for item in value]
    return "true" if isinstance(value, str) and value else value
