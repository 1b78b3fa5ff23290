#!/usr/bin/env python3
"""Clients that send what they should not, read nothing, or leave."""
import json
import pathlib
import resource
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import main
from scripted_server import ScriptedServer, check, wait_for


def refuses(server, path, body, param=None, code=None, status=400):
    found, _, answer = server.ask("POST", path, body)
    check(found == status, f"{body!r:.80}: {found} {answer}")
    error = answer["error"]
    check(error["message"] and set(error) == {"message", "type", "param", "code"}, str(answer))
    check(param is None or error["param"] == param, f"{body!r:.80}: {error}")
    check(code is None or error["code"] == code, f"{body!r:.80}: {error}")


def test_bodies():
    with ScriptedServer() as server:
        for body in (b"", b"{", b"[]", b"7", b'{"prompt":"\xff"}', b'{"prompt":"\xed\xa0\x80"}', b'{"prompt":"x","temperature":NaN}',
                     b'{"prompt":"x","temperature":1e999}', b'{"prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}"):
            refuses(server, "/v1/completions", body, code="invalid_json")
            refuses(server, "/v1/chat/completions", body, code="invalid_json")
        refuses(server, "/v1/completions", b" " * (5 << 20), status=413)
        server.serves()


def test_fields():
    wrong = {
        "temperature": ["1", -0.1, 2.1, True, []], "top_p": [0, 1.1], "n": [0, 129, 1.5, "2"], "max_tokens": [-1, 1 << 40, 2.5],
        "prompt": ["", [], 7, [[]], [1, "a"], [-1], [258], [[1], [1 << 40]], {"a": 1}, [1.5], [None]],
        "stop": [7, [""], ["a"] * 17, [[]]], "stop_token_ids": [7, [-1], [258], ["a"]], "logprobs": [21, -1, True],
        "logit_bias": [[], {"a": 1}, {"1": 101}, {"258": 1}, {"-1": 1}], "min_p": [-1, 2], "stream": ["yes", 1], "echo": [1],
        "stream_options": [7, {"include_usage": 1}, {"include_usage": True}], "priority": [-1, 16], "deadline_ms": [0, "1"],
        "seed": [1.5, "a", 1e30], "cache_salt": [7, "x" * 300], "model": [7], "repetition_penalty": [0], "presence_penalty": [3],
        "best_of": [2], "suffix": ["x"], "tools": [[{}]], "response_format": [{"type": "json_object"}, 7],
    }
    with ScriptedServer() as server:
        for name, values in wrong.items():
            for value in values:
                refuses(server, "/v1/completions", {"prompt": "x", name: value}, param=name)
        for messages in (None, [], "x", [7], [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": 7}],
                         [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]):
            refuses(server, "/v1/chat/completions", {"messages": messages}, param="messages")
        refuses(server, "/v1/completions", {}, param="prompt")
        refuses(server, "/v1/completions", {"prompt": "x", "tools": [{}]}, code="unsupported_parameter")
        refuses(server, "/v1/completions", {"prompt": "x", "model": "other"}, code="model_not_found", status=404)
        refuses(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2},
                param="top_logprobs")
        everything = {name: None for name in wrong if name != "prompt"}
        check(server.complete(**everything)[0] == 200, "null is not as absent")
        for _ in range(3):
            check(server.complete(prompt="say:a;", strange=1)[0] == 200, "an unknown field is refused")
        server.serves()
        check(sum(line.startswith("log ") for line in server.lines) == 1, f"logged: {server.lines}")


def test_paths():
    with ScriptedServer() as server:
        check(server.ask("GET", "/v2/none")[0] == 404, "an unknown path")
        status, headers, _ = server.ask("GET", "/v1/completions")
        check(status == 405 and headers["allow"] == "POST", str(headers))
        check(server.ask("GET", "/health", headers={"x-request-id": "mine"})[1]["x-request-id"] == "mine", "the id")
        check(server.ask("GET", "/health", headers={"Host": "evil.example"})[0] == 403, "another host's name")
        check(server.ask("GET", "/health", headers={"Origin": "https://evil.example"})[0] == 403, "another site's page")
        check(server.ask("GET", "/health", headers={"Origin": "http://localhost:80"})[0] == 200, "this machine's page")
        check(server.ask("GET", "/health", headers={"x": "y" * 40_000})[0] in (413, 431), "large headers")
        server.serves()


def ends(connection):
    """True once the server has closed the connection."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def test_half_requests_time_out():
    with ScriptedServer("--request-ms", 500) as server:
        halves = [b"", b"POST /v1/comp", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
                  b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"]
        connections = [server.connect() for _ in halves]
        for connection, half in zip(connections, halves):
            connection.sendall(half)
        for connection in connections:
            check(ends(connection), "it stays")
        server.serves()


def test_idle_connections():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with ScriptedServer("--request-ms", 30_000) as server:
        idle = [server.connect() for _ in range(1000)]
        server.serves()
        for connection in idle:
            connection.close()
        server.serves()


def test_many_streams():
    """1,000 streams at once, all of which are open before any goes on."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with ScriptedServer() as server:
        streams = [server.send(prompt=f"after:1;say:text {i};", stream=True, max_tokens=40) for i in range(1000)]
        for stream in streams:
            check(stream.recv(1, socket.MSG_PEEK), "no token came")
        server.tell("release")
        for i, stream in enumerate(streams):
            text = b""
            while b"[DONE]" not in text:
                part = stream.recv(65536)
                check(part, f"stream {i} ended early")
                text += part
            pieces = [json.loads(line[6:])["choices"][0]["text"] for line in text.decode().split("\n")
                      if line.startswith("data: {")]
            check("".join(pieces) == f"text {i}", f"stream {i} says {pieces}")
            stream.close()
        server.serves()


def test_too_many_connections():
    with ScriptedServer("--connections", 50, "--request-ms", 2_000) as server:
        idle = [server.connect() for _ in range(50)]
        extra = server.connect()
        answer = extra.makefile("rb").read()
        check(answer.startswith(b"HTTP/1.1 503 ") and b"retry-after" in answer, repr(answer))
        for connection in idle:
            check(ends(connection), "it stays")
        server.serves()


def test_client_that_stops_reading():
    """It loses its own stream; others go on."""
    with ScriptedServer("--unread", 20_000) as server:
        long = {"prompt": [*b"queued;"], "max_tokens": 1000, "stream": True, "n": 128}
        stuck = server.connect()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps(long).encode()
        stuck.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        server.expect("submitted")
        other = server.send(prompt="queued;", max_tokens=500, stream=True)
        server.expect("submitted")
        server.tell("release")
        server.expect("cancelled 1")
        text = b""
        while b"[DONE]" not in text:
            part = other.recv(65536)
            check(part, "the other stream ended")
            text += part
        stuck.close()
        server.serves()


def test_clients_that_leave():
    """While queued, before the first token, in the middle, with and without a stream, politely or not."""
    with ScriptedServer() as server:
        number = 0
        for prompt in ("queued;", "after:0;", "after:3;"):
            for stream in (False, True):
                for reset in (False, True):
                    connection = server.send(prompt=prompt, stream=stream, max_tokens=9)
                    number += 1
                    server.expect(f"submitted {number}")
                    if stream and prompt == "after:3;":
                        check(connection.recv(1), "no token came")
                    if reset:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    connection.close()
                    server.expect(f"cancelled {number}")
        server.serves()


def test_pipelined_requests():
    with ScriptedServer() as server:
        connection = server.connect()
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        text = b""
        while text.count(b'{"version"') < 3:
            part = connection.recv(65536)
            check(part, f"it ended: {text!r}")
            text += part
        connection.close()
        wait_for(lambda: server.ask("GET", "/version")[0] == 200, "no answer")


if __name__ == "__main__":
    main()
