"""An OpenAI-compatible chat endpoint on the loopback address, whose answers are a function of the request."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Policy = Callable[[str, list[dict[str, Any]], Callable[[str], float]], dict[str, Any]]
"""(system prompt, messages, uniform number for a name) to an assistant message."""


def uniform(seed: int, name: str) -> float:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@contextlib.contextmanager
def served(policy: Policy) -> Iterator[str]:
    """The base URL of the endpoint while the block runs."""

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages, seed = body["messages"], int(body.get("seed") or 0)
            system = next((m["content"] for m in messages if m["role"] == "system"), "")
            message = policy(system, messages, lambda name: uniform(seed, name))
            answer = {
                "id": "c", "object": "chat.completion", "created": 0, "model": "stub",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant"} | message}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            }  # fmt: skip
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def lottery(*parts: tuple[float, dict[float, float]]) -> dict[float, float]:
    """A mixture of lotteries, each the chances of its rewards."""
    mixed: dict[float, float] = {}
    for weight, part in parts:
        for reward, chance in part.items():
            mixed[reward] = mixed.get(reward, 0.0) + weight * chance
    return mixed


def votes(chance: float, voters: int, given: float = 0.0) -> dict[float, float]:
    """Half a unit of reward for each yes of independent voters, on top of what is given."""
    rewards = {given: 1.0}
    for _ in range(voters):
        rewards = lottery((1 - chance, rewards), (chance, {r + 0.5: p for r, p in rewards.items()}))
    return rewards


def mean_and_spread(rewards: dict[float, float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = sum(r * p for r, p in rewards.items())
    return mean, float(np.sqrt(sum((r - mean) ** 2 * p for r, p in rewards.items())))


def check_means(found: Any, stated: Any, runs: int, truth: list[dict[float, float]]) -> None:
    """Means within their exact standard errors of the truth, and stated standard errors near the exact ones."""
    mean, spread = np.array([mean_and_spread(rewards) for rewards in truth]).T
    exact = spread / np.sqrt(runs)
    z = (np.asarray(found) - mean) / exact
    assert np.abs(z).max() < 3.7, z
    assert np.sqrt(np.mean(z**2)) < 1 + 2.5 / np.sqrt(len(z)), z
    ratio = np.asarray(stated) / exact
    assert ratio.min() > 0.5 and ratio.max() < 1.7 and abs(ratio.mean() - 1) < 0.2, ratio
