"""Guesses for files of unknown format: a supported format with a change, or a product without a reader.

`resemblance` and `resemblance_of_columns` are called only for refused files. The first searches the first bytes for the
keys that a format needs, at any depth, so that a renamed key or a wrapper does not hide them.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

__all__ = ["PARQUET", "is_archive", "resemblance", "resemblance_of_columns"]

_KEY = re.compile(rb'"([A-Za-z_][\w.\- ]{0,60})"[ \t\r\n]{0,8}:')
_LISTED = re.compile(rb'"events"\s*:\s*\[\s*\{')
_BY_AGENT = re.compile(
    rb'"(events|steps|turns|actions|messages|trajector(?:y|ies))"\s*:\s*\{\s*"[^"]{1,60}"\s*:\s*\[\s*\{'
)
"""A list for each agent, which states no order between the agents."""
_LEAST = 0.5  # share of a format's columns that must be there
_CLOSE = 0.4  # share of the best format's weight at which another one is as likely

PARQUET: dict[str, frozenset[str]] = {
    "rollouts": frozenset({"step", "prompt", "completion", "advantage"}),
    "art": frozenset({"group_index", "group_metadata", "reward", "metrics", "messages"}),
    "spans": frozenset({"context.trace_id", "context.span_id", "parent_id", "name"}),
}
"""Columns that identify a Parquet file of a format other than the table."""


class Product(NamedTuple):
    """A kind of log that no reader reads."""

    name: str
    keys: frozenset[str]
    advice: str


_CHATS = "rollouts with rewards; a table with a row an action and --columns, or the native format"
_ACTIONS = "a table with a row an action and --columns, or the native format (`credit schema`)"
_SPANS = "the same spans as OTLP JSON, as the OpenTelemetry Collector's file exporter writes them"
_SCORES = "logs of the agents; scores alone are a table of trace and reward for --rewards"

PRODUCTS = (
    Product("an ATOF event stream (NVIDIA NeMo Relay)", frozenset({"atof_version", "scope_category"}),
            "the run exported as ATIF, which NeMo Relay writes from the same events"),
    Product("chats for fine-tuning (OpenAI, ShareGPT)", frozenset({"messages"}), _CHATS),
    Product("chats for fine-tuning (ShareGPT)", frozenset({"conversations"}), _CHATS),
    Product("pairs of preferred and rejected answers", frozenset({"chosen", "rejected"}), _CHATS),
    Product("the stream that `claude --output-format stream-json` prints",
            frozenset({"type", "session_id", "parent_tool_use_id", "message"}),
            "the file that Claude Code keeps of the session, `~/.claude/projects/PROJECT/SESSION.jsonl`"),
    Product("the events that `codex exec --json` prints", frozenset({"type", "thread_id", "item"}),
            "the file that Codex keeps of the session, `~/.codex/sessions/YEAR/MONTH/DAY/rollout-*.jsonl`"),
    Product("a Jaeger export", frozenset({"data", "traceID", "spanID", "operationName"}), _SPANS),
    Product("a Zipkin export", frozenset({"traceId", "localEndpoint", "annotations"}), _SPANS),
    Product("traces of a Datadog agent", frozenset({"trace_id", "span_id", "parent_id", "service", "resource", "meta"}),
            _SPANS),
    Product("a trace of Chrome or Perfetto", frozenset({"traceEvents", "ph", "ts"}), _SPANS),
    Product("a history of DSPy", frozenset({"messages", "kwargs", "outputs", "model_type"}), _ACTIONS),
    Product("results of OpenAI's batch API", frozenset({"custom_id", "response", "status_code", "body"}), _ACTIONS),
    Product("a record of OpenAI Evals", frozenset({"run_id", "event_id", "sample_id", "data"}), _SCORES),
    Product("samples of lm-evaluation-harness", frozenset({"doc_id", "target", "resps", "filtered_resps"}), _SCORES),
    Product("a scenario state of HELM", frozenset({"adapter_spec", "request_states"}), _SCORES),
    Product("a notebook", frozenset({"cells", "nbformat"}), "logs of agents"),
)  # fmt: skip
"""Products by name, the keys that show them, and what would be read instead."""

_OF_ANY_CHAT = frozenset(
    {
        "timestamp",
        "type",
        "role",
        "content",
        "message",
        "messages",
        "id",
        "uuid",
        "sessionId",
        "session_id",
        "model",
        "text",
    }
)
"""Keys of most logs of chats, which say nothing of a format, however many of its records name them."""

_NO_PICKLE = "JSON; pickles run code when they are loaded, and are never read"
_UNPACKED = "the content unpacked, or packed by gzip or Zstandard (.gz, .zst)"
_MAGIC = (
    (b"PAR1", "a Parquet file", "a cache, or a table of a trainer, with its columns named by --columns"),
    (b"ARROW1", "an Arrow file", "Parquet, CSV or JSON lines with a column map, --columns"),
    (b"version https://git-lfs", "a pointer of Git LFS", "the file itself, as `git lfs pull` brings it"),
    (b"PK\x03\x04", "a zip archive", "its members unpacked; of archives only Inspect's .eval is read"),
    (b"SQLite format 3", "an SQLite database", "an export of it as JSON"),
    *((b"\x80" + bytes([protocol]), "a Python pickle", _NO_PICKLE) for protocol in range(2, 6)),
    (b"Obj\x01", "an Avro file", "JSON lines"),
    (b"ORC", "an ORC file", "Parquet, CSV or JSON lines with a column map, --columns"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "Parquet, CSV or JSON lines with a column map, --columns"),
    (b"\x93NUMPY", "a NumPy array", "Parquet, CSV or JSON lines with a column map, --columns"),
    (b"BZh", "bzip2", _UNPACKED),
    (b"\xfd7zXZ\x00", "xz", _UNPACKED),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACKED),
    (b"\x04\x22\x4d\x18", "LZ4", _UNPACKED),
    (b"%PDF-", "a PDF", "logs of agents"),
    (b"<?xml", "XML", "JSON or JSON lines"),
    (b"<!DOCTYPE html", "a page of HTML", "JSON or JSON lines"),
)


def is_archive(head: bytes) -> bool:
    """Whether a file that begins with `head` is a zip or tar archive."""
    return head.startswith(b"PK\x03\x04") or (head[257:262] == b"ustar" and b"\0" in head[:257])


def resemblance(
    head: bytes,
    records: Mapping[str, Iterable[type[msgspec.Struct]]],
    least: float = 1.0,
    of_any: Collection[str] = (),
) -> tuple[str, str] | None:
    """The format or product that the content after `head` resembles, and the expected input; None if unknown.

    A key weighs 1 over the number of formats that have it: a key of many formats, such as `type`, tells little.

    Args:
      head: the first bytes of a file.
      records: the structs of each format's records.
      least: the weight from which a format is named. A key that no other format has weighs 1.
      of_any: keys that tell nothing alone, since what the content may be as well has them.
    """
    for magic, name, advice in _MAGIC:
        if head.startswith(magic):
            return name, advice
    if is_archive(head):
        return "a tar archive", "its members unpacked"
    keys = {key.decode() for key in _KEY.findall(head)}
    if not keys:
        return None
    products = [product for product in PRODUCTS if product.keys <= keys]
    structs = {name: [_keys_of(struct) for struct in listed] for name, listed in records.items() if listed}
    holders = Counter(
        key for listed in structs.values() for key in frozenset().union(*(struct.all for struct in listed))
    )
    telling = keys - _OF_ANY_CHAT
    shared = {name: telling & frozenset().union(*(struct.all for struct in listed)) for name, listed in structs.items()}
    weight = {name: math.fsum(1 / holders[key] for key in found) for name, found in shared.items()}
    best = max(weight, key=lambda name: weight[name])
    likely = max(structs[best], key=lambda struct: (len(struct.all & keys), -len(struct.needed - keys)))
    unique_keys = {key for key in shared[best] if holders[key] == 1 and key not in of_any}
    resembles = weight[best] >= least and bool(unique_keys) and len(likely.all & keys) >= 2
    resembles &= not likely.needed or not likely.needed.isdisjoint(keys)  # else no record of it is there
    by_agent = None if resembles else _BY_AGENT.search(head)
    if by_agent is not None:
        what = "in the format native (docs/formats/native.md) one list of the events of all agents, in their order"
        return f"{by_agent[1].decode()} by agent", f"{what}, each with the keys id, type and agent; or {_ACTIONS}"
    if products:
        product = max(products, key=lambda product: len(product.keys))
        if len(product.keys) > 1 or not resembles:
            return product.name, product.advice
    if not resembles:
        return _own_events(head, keys, structs.get("native", ()))
    close = [name for name in sorted(weight, key=lambda name: -weight[name]) if weight[name] >= _CLOSE * weight[best]]
    if len(close) > 1:
        return f"like {' or '.join(close)}", f"the records of one format: {', '.join(close)}; or {_ACTIONS}"
    missing = sorted(likely.needed - keys)
    if missing:
        return f"like {best}", f"in the format {best} the keys {', '.join(missing)}"
    advice = f"; --format {best} reads it as such" if unique_keys & likely.needed else f"; or {_ACTIONS}"
    return f"like {best}", f"in the format {best} its records at the top of the file, or one a line{advice}"


def _own_events(head: bytes, keys: Collection[str], native: Sequence[_Keys]) -> tuple[str, str] | None:
    """What rollouts of one's own lack, a record with a list of events that name an agent or a type, to be native."""
    missing = [", ".join(sorted(struct.needed - set(keys))) for struct in native]
    if not (_LISTED.search(head) and {"agent", "type"} & set(keys) and any(missing)):
        return None
    whose = zip(missing, ("each trace", "each event"), strict=False)
    lacks = " and ".join(f"{names} of {of}" for names, of in whose if names)
    outcome = "" if "rewards" in keys else ', and the outcome as "rewards": {"team": NUMBER}'
    return "like native", f"in the format native (docs/formats/native.md) the keys {lacks}{outcome}; or {_ACTIONS}"


class _Keys(NamedTuple):
    """The keys of a record, and those without which it is none."""

    all: frozenset[str]
    needed: frozenset[str]


@functools.cache
def _keys_of(struct: type[msgspec.Struct]) -> _Keys:
    fields = msgspec.structs.fields(struct)
    return _Keys(
        frozenset(field.encode_name for field in fields),
        frozenset(field.encode_name for field in fields if field.required),
    )


def resemblance_of_columns(names: Collection[str]) -> str:
    """What the columns of a Parquet file lack to be of a format; "" where they resemble none."""
    share = {name: len(wanted.intersection(names)) / len(wanted) for name, wanted in PARQUET.items()}
    best = max(share, key=lambda name: share[name])
    if share[best] < _LEAST:
        return ""
    missing = sorted(PARQUET[best].difference(names))
    lacks = ", ".join(missing) if missing else f"{', '.join(sorted(PARQUET[best]))} outside any other column"
    return f"in the format {best} the columns {lacks}"
