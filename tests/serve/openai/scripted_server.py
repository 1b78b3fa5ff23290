"""The program openai_test_server, as a client and a test see it."""
import http.client
import json
import pathlib
import queue
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness import HANG_SECONDS, Laneway, check, wait_for  # noqa: E402


class ScriptedServer:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([Laneway.build / "tests/openai_test_server", *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.arrived = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.port = int(self.expect("port ").split()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        code = self.process.wait(HANG_SECONDS)
        check(code == 0, f"the server ended with {code}")

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            self.arrived.put(line.strip())

    def expect(self, beginning):
        """The next line that begins so; lines before it are passed over."""
        while True:
            line = self.arrived.get(timeout=HANG_SECONDS)
            if line.startswith(beginning):
                return line

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.expect("done " + command)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers in lower case, and the body: as JSON where it is that."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return answer.status, found, json.loads(text) if "json" in found.get("content-type", "") else text.decode()

    def complete(self, **fields):
        return self.ask("POST", "/v1/completions", {"prompt": "x", **fields})

    def send(self, **fields):
        """A connection over which a completion was asked for, whose answer was not read."""
        body = json.dumps(fields).encode()
        connection = self.connect()
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
                           + body)
        return connection

    def serves(self):
        status, _, answer = self.complete(prompt="say:yes;")
        check(status == 200 and answer["choices"][0]["text"] == "yes", f"it does not serve any more: {answer}")


def events_of(text):
    return [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]


__all__ = ["HANG_SECONDS", "ScriptedServer", "check", "events_of", "wait_for"]
