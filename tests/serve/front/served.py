"""`laneway serve` for tests: a server on a port of its own, and what its model answers where a stage is run directly."""
import http.client
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import harness  # noqa: E402
from harness import HANG_SECONDS, check, wait_for  # noqa: E402
from harness.jobs import free_port  # noqa: E402
from harness.laneway import Program  # noqa: E402

SECONDS = 120  # for an answer


class Server:
    """`laneway serve` with these words, on a port of its own; bare: the same on a bare device."""

    def __init__(self, laneway, *words, key=None, bare=False):
        self.port = free_port()
        self.key = key
        command = [laneway.binary("laneway-serve")] if bare else [laneway.binary("laneway"), "serve"]
        self.program = Program([*command, *map(str, words), f"--port={self.port}"],
                               laneway.bare_environment() if bare else laneway.environment)
        laneway.programs.append(self.program)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def wait_until_ready(self):
        def ready():
            check(self.program.running(), f"the server ended:\n{self.program.errors()}")
            try:
                return self.ask("GET", "/health")[0] == 200
            except ConnectionError:
                return False
        wait_for(ready, "the server is not ready", SECONDS)
        return self

    def complete(self, prompt, tokens, **more):
        status, answer = self.ask("POST", "/v1/completions",
                                  {"prompt": prompt, "max_tokens": tokens, "temperature": 0, **more})
        check(status == 200, f"{status}: {answer}")
        return answer["choices"][0]["text"]

    def chunks(self, prompt, tokens, **more):
        """The chunks of a stream as they come; its connection ends with the generator."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("POST", "/v1/completions", json.dumps(
                {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, **more}))
            answer = connection.getresponse()
            check(answer.status == 200, f"a stream was answered with {answer.status}")
            for line in answer:
                if line.startswith(b"data: ") and line != b"data: [DONE]\n":
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def stream(self, prompt, tokens, on_chunk=lambda number: None):
        text = ""
        for number, chunk in enumerate(self.chunks(prompt, tokens)):
            check("choices" in chunk, f"an error chunk: {chunk}")
            text += chunk["choices"][0]["text"]
            on_chunk(number)
        return text

    def engines(self):
        """The numbers of the engine's processes, one for each stage, if they are there."""
        return harness.children_of(self.program.pid)

    def engine(self):
        """The first of these, or None."""
        return next(iter(self.engines()), None)

    def end(self):
        self.program.kill(signal.SIGTERM)
        result = self.program.wait(HANG_SECONDS)
        check(result.code == 0, f"the server ended so:\n{result}")
        return result


def answers_of_stage(laneway, gguf, prompts, new):
    """What the model says after each prompt, as text."""
    words = [",".join(str(byte) for byte in prompt.encode()) for prompt in prompts]
    result = laneway.bare([laneway.binary("run_model"), str(gguf), "--new", str(new), "--batch", "alone", *words])
    check(result.code == 0, f"run_model:\n{result}")
    lines = [line for line in result.out.splitlines() if not line.startswith("logits")]
    texts = []
    for line in lines:
        tokens = [int(token) for token in line.replace(",", " ").split() if token.isdigit()]
        if byte_model.END in tokens:
            tokens = tokens[:tokens.index(byte_model.END)]
        texts.append(bytes(tokens).decode(errors="replace"))
    return texts


def random_text(choice):
    return "".join(choice.choice("abcdefghij klm\n") for _ in range(choice.randint(1, 120)))
