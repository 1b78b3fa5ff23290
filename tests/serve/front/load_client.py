#!/usr/bin/env python3
"""A load generator of another kind: sends by aiohttp what `laneway load` sends, when it sends it, and counts by itself.

    load_client.py LANEWAY URL TRACE [--seed S]     prints the figures of a load as `laneway load --json` names them

TRACE is a file for `laneway load --trace`, as Azure has them (CSV). The bodies of the requests are those that
`laneway load` sends to a server that keeps them; of its figures none is used.
"""
import argparse
import asyncio
import datetime
import http.server
import json
import math
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.request

import aiohttp

SECONDS = 600  # without a byte
REFUSALS = (429, 503)
STUB = b'data: {"choices": [{"text": "x"}]}\n\ndata: [DONE]\n\n'


class Recorder(http.server.ThreadingHTTPServer):
    """Keeps the bodies of completions; what else is asked the real server answers, so that tokens are its own."""

    def __init__(self, url):
        super().__init__(("127.0.0.1", 0), RecordingHandler)
        self.real, self.bodies = url, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class RecordingHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def ask_real_server(self, body=None):
        request = urllib.request.Request(self.server.real + self.path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            self.reply(answer.read(), "application/json")

    def do_GET(self):
        self.ask_real_server()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/v1/"):
            self.server.bodies.append((self.path, body))
            self.reply(STUB, "text/event-stream")
        else:
            self.ask_real_server(body)


def times_of(trace):
    """Seconds from the first request's."""
    stamps = [line.split(",")[0] for line in trace.read_text().splitlines()[1:]]
    # Python knows microseconds, and the trace tenths of these.
    times = [datetime.datetime.fromisoformat(stamp[:26]).timestamp() for stamp in stamps]
    return [at - times[0] for at in times]


def requests_of(laneway, url, trace, seed):
    """Paths and bodies, in the order of the trace: of a trace without pauses, one request at a time."""
    head, *lines = trace.read_text().splitlines()
    at_once = [",".join([lines[0].split(",")[0], *line.split(",")[1:]]) for line in lines]
    with Recorder(url) as recorder, tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "at_once.csv"
        copy.write_text("\n".join([head, *at_once]) + "\n")
        subprocess.run([laneway, "load", recorder.url, "--trace", copy, "--seed", str(seed), "--concurrency", "1", "--json"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        recorder.shutdown()
        return recorder.bodies


class Answer:
    """What came of a request, and when, in seconds of the monotonic clock."""

    def __init__(self):
        self.status, self.sent, self.stamps, self.usage, self.is_whole = 0, 0.0, [], {}, False

    def on_message(self, message, now):
        if message == "data: [DONE]":
            self.is_whole = True
            return
        chunk = json.loads(message.removeprefix("data: "))
        if chunk.get("choices") and chunk["choices"][0].get("text") is not None:
            self.stamps.append(now)
        self.usage = chunk.get("usage") or self.usage


async def ask(session, url, path, body, at):
    await asyncio.sleep(max(0.0, at - time.monotonic()))
    answer, rest = Answer(), b""
    answer.sent = time.monotonic()
    async with session.post(url + path, data=body, headers={"Content-Type": "application/json"}) as response:
        answer.status = response.status
        async for piece in response.content.iter_any():
            now = time.monotonic()
            if answer.status == 200:
                *messages, rest = (rest + piece).split(b"\n\n")
                for message in messages:
                    answer.on_message(message.decode(), now)
    return answer


async def send_all(url, requests, times):
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(sock_read=SECONDS)) as session:
        begin = time.monotonic()
        return await asyncio.gather(*(ask(session, url, path, body, begin + at)
                                      for (path, body), at in zip(requests, times)))


def median(values):
    return sorted(values)[math.ceil(len(values) / 2) - 1] if values else 0.0  # by nearest rank


def figures_of(answers):
    whole = [answer for answer in answers if answer.is_whole]
    refused = sum(answer.status in REFUSALS for answer in answers)
    first = [answer.stamps[0] - answer.sent for answer in whole]
    # Of tokens that the server counts: some have no chunk of their own.
    counts = [max(answer.usage["completion_tokens"], len(answer.stamps)) for answer in whole]
    each = [(answer.stamps[-1] - answer.stamps[0]) / (count - 1) for answer, count in zip(whole, counts) if count > 1]
    return {"requests": len(answers), "answered": len(whole), "refused": refused,
            "failed": len(answers) - len(whole) - refused,
            "prompt_tokens": sum(answer.usage["prompt_tokens"] for answer in whole),
            "answer_tokens": sum(answer.usage["completion_tokens"] for answer in whole),
            "ttft_ms": {"p50": 1e3 * median(first)}, "tpot_ms": {"p50": 1e3 * median(each)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laneway")
    parser.add_argument("url")
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    requests = requests_of(words.laneway, words.url, words.trace, words.seed)
    print(json.dumps(figures_of(asyncio.run(send_all(words.url, requests, times_of(words.trace))))))


if __name__ == "__main__":
    main()
