"""`laneway load` against a server that does what each test says, and notes when it did so."""
import http.server
import json
import pathlib
import signal
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from harness import HANG_SECONDS, Laneway, check, wait_for  # noqa: E402
from harness.laneway import Program  # noqa: E402

FIRST_SECONDS = 0.4
NEXT_SECONDS = 0.1
AGREEMENT = 0.03  # of times that both sides measure


class Scripted(http.server.ThreadingHTTPServer):
    """Answers request number N with script(handler, N, body); `times` holds when tokens were written."""
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.lock = threading.Lock()
        self.bodies, self.arrivals, self.times = [], [], []
        self.running = self.most = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # clients leave


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, json.dumps({"data": [{"id": "scripted"}]}).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.answer(200, json.dumps({"tokens": list(range(5, 25))}).encode())
        server = self.server
        with server.lock:
            number = len(server.bodies)
            server.bodies.append(body)
            server.arrivals.append(time.monotonic())
            server.running += 1
            server.most = max(server.most, server.running)
        try:
            server.script(self, number, body)
        finally:
            with server.lock:
                server.running -= 1

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, text):
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def event(self, value):
        self.write("data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n")

    def finish_stream(self, body):
        self.event({"choices": [], "usage": {"prompt_tokens": len(body["prompt"]),
                                             "completion_tokens": body["max_tokens"]}})
        self.event("[DONE]")
        self.write("")


def paced(handler, _, body):
    """Tokens at even times; notes the times as a client at no distance would see them."""
    begin = time.monotonic()
    handler.begin()
    written = []
    for token in range(body["max_tokens"]):
        due = begin + FIRST_SECONDS + token * NEXT_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        handler.event({"choices": [{"index": 0, "text": "t"}]})
        written.append(time.monotonic())
    handler.finish_stream(body)
    with handler.server.lock:
        handler.server.times.append((begin, written))


def quick(handler, _, body):
    handler.begin()
    for _ in range(body["max_tokens"]):
        handler.event({"choices": [{"index": 0, "text": "t"}]})
    handler.finish_stream(body)


def figures(laneway, server, *words, code=0):
    result = laneway.command("load", server.url(), "--json", *words, seconds=HANG_SECONDS)
    check(result.code == code, f"laneway load ended with {result.code}:\n{result}")
    return json.loads(result.out)


def test_times_are_those_that_the_server_notes(seed):
    server = Scripted(paced)
    with Laneway(start=False) as laneway:
        found = figures(laneway, server, "--requests=40", "--rate=20", "--prompt-max=64", "--answer-min=2",
                        "--answer-max=12", "--goodput=ttft:10000")
    check(found["answered"] == found["good"] == 40 and found["failed"] == 0, found)
    check(found["answer_tokens"] == sum(body["max_tokens"] for body in server.bodies), found)
    check(found["prompt_tokens"] == sum(len(body["prompt"]) for body in server.bodies), found)
    first = statistics.mean(written[0] - begin for begin, written in server.times) * 1e3
    gap = statistics.mean((written[-1] - written[0]) / (len(written) - 1) for _, written in server.times) * 1e3
    for name, noted in (("ttft_ms", first), ("tpot_ms", gap)):
        measured = found[name]["mean"]
        check(abs(measured - noted) <= AGREEMENT * noted + 0.5, f"{name} is {measured} ms, the server's is {noted} ms")


def test_refusals_and_failures_are_told_apart(seed):
    def script(handler, number, body):
        kind = number % 6
        if kind == 0:
            return quick(handler, number, body)
        if kind == 1:
            return handler.answer(429, b'{"error": {"code": "queue_full", "message": "1 waits"}}')
        if kind == 2:
            return handler.answer(500, b"<html>oh\x1b[2J</html>")
        handler.begin()
        if kind == 3:
            handler.event({"choices": [{"text": "a"}]})
            handler.write("")
        elif kind == 4:
            handler.event("{]")
        else:
            handler.event({"error": {"message": "the engine was lost"}})
        handler.close_connection = True
        return None

    server = Scripted(script)
    with Laneway(start=False) as laneway:
        found = figures(laneway, server, "--requests=24", "--concurrency=1", code=1)
    check((found["answered"], found["refused"], found["failed"]) == (4, 4, 16), found)
    check(found["failures"] == {"429 queue_full: 1 waits": 4, "500: <html>oh?[2J</html>": 4,
                                "the stream ended before [DONE]": 4, "the server sent no JSON: {]": 4,
                                "the engine was lost": 4}, found)


def test_so_many_at_once_and_no_more(seed):
    server = Scripted(paced)
    with Laneway(start=False) as laneway:
        found = figures(laneway, server, "--requests=30", "--concurrency=7", "--answer-max=3")
    check(found["answered"] == 30 and server.most == 7, f"{server.most} at once: {found}")
    check(found["late_ms"] > 0, found)


def test_a_trace_is_sent_when_it_says(seed):
    rows = [{"timestamp": 0, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]},
            {"timestamp": 400, "input_length": 520, "output_length": 3, "hash_ids": [1, 3]},
            {"timestamp": 900, "input_length": 30, "output_length": 1, "hash_ids": [4]}]
    server = Scripted(quick)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace, Laneway(start=False) as laneway:
        trace.write("".join(json.dumps(row) + "\n" for row in rows))
        trace.flush()
        found = figures(laneway, server, f"--trace={trace.name}")
    check(found["answered"] == 3, found)
    check([len(body["prompt"]) for body in server.bodies] == [600, 520, 30], "other lengths than the trace's")
    check(server.bodies[0]["prompt"][:512] == server.bodies[1]["prompt"][:512], "equal hashes, other tokens")
    gaps = [later - server.arrivals[0] for later in server.arrivals[1:]]
    check(gaps[0] >= 0.39 and gaps[1] >= 0.89, f"sent too early: {gaps}")


def test_ctrl_c_tells_what_there_is(seed):
    def script(handler, number, body):
        if number < 5:
            return quick(handler, number, body)
        handler.begin()
        handler.event({"choices": [{"text": "a"}]})
        wait_for(lambda: done.is_set(), "the test's end")
        return None

    done = threading.Event()
    server = Scripted(script)
    with Laneway(start=False) as laneway:
        program = Program([laneway.binary("laneway"), "load", server.url(), "--requests=20", "--rate=50", "--json"],
                          laneway.environment)
        laneway.programs.append(program)
        wait_for(lambda: len(server.bodies) >= 8, "requests come")
        program.kill(signal.SIGINT)
        result = program.wait(HANG_SECONDS)
    done.set()
    check(result.code == 130, f"{result}")
    found = json.loads(result.out)
    check(found["answered"] == 5 and found["failed"] >= 3 and set(found["failures"]) == {"interrupted"}, found)


def test_wrong_words_get_a_sentence(seed):
    server = Scripted(quick)
    with Laneway(start=False) as laneway:
        for words, sentence in [
                (["127.0.0.1:8000"], "is no URL of a server"),
                (["http://127.0.0.1:1"], "no server answers at http://127.0.0.1:1"),
                ([server.url(), "--goodput=speed:1"], "'speed:1' is no goal"),
                ([server.url(), "--burstiness=2"], "--burstiness requires --rate"),
                ([server.url(), "--rate=1", "--trace=x"], "excludes"),
                ([server.url(), "--trace=/nowhere"], "/nowhere"),
                ([server.url(), "--answer-min=9", "--answer-max=3"], "a shortest length is above the longest"),
                ([server.url(), "--api-key-file=/nowhere"], "/nowhere")]:
            result = laneway.command("load", *words)
            check(result.code in (1, 2) and sentence in result.err and result.err.count("\n") == 1,
                  f"{words} must be refused with '{sentence}':\n{result}")


if __name__ == "__main__":
    harness.main()
