"""Load generators of others. What `vllm bench serve` sends to `laneway serve`, and what it reads: both routes, at a rate, in
bursts, and with bounded concurrency. The fields, the headers and the way in which chunks are cut and counted are those
of vLLM 0.33. And a client of Python's that counts what `laneway load` counts.

The seed is printed; --seed repeats a run.
"""
import asyncio
import codecs
import contextlib
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import gguf_model  # noqa: E402
import harness  # noqa: E402
from harness import Laneway, Skip, check, chosen  # noqa: E402
from served import SECONDS, Server  # noqa: E402

try:
    import aiohttp
    from tokenizers import Tokenizer
except ImportError:
    aiohttp = None

NEW = 8  # tokens of an answer
REQUESTS = 12
RATE = 50.0  # a second; so short are the answers of a tiny model


class Cutter:
    """Cuts a body that comes in pieces into messages, as the load generator does."""

    def __init__(self):
        self.text, self.decoder = "", codecs.getincrementaldecoder("utf-8")()

    def add(self, data):
        *whole, self.text = (self.text + self.decoder.decode(data)).split("\n\n")
        return [message.strip() for message in whole if message.strip()]


class Generator:
    def __init__(self, server, choice, chat):
        self.url, self.choice, self.chat = f"http://127.0.0.1:{server.port}", choice, chat

    async def first_model(self, session):
        async with session.get(self.url + "/v1/models") as answer:
            model = (await answer.json())["data"][0]
        return model["id"], pathlib.Path(model["root"])

    def body(self, name, prompt):
        common = {"model": name, "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True,
                  "temperature": 0.0}
        if self.chat:
            content = [{"type": "text", "text": prompt}]
            return {"messages": [{"role": "user", "content": content}], "max_completion_tokens": NEW} | common
        return {"prompt": prompt, "repetition_penalty": 1.0, "max_tokens": NEW, "logprobs": None} | common

    async def ask(self, session, name, prompt, number):
        """Chunks with a token, and the usage of the last chunk."""
        path = "/v1/chat/completions" if self.chat else "/v1/completions"
        headers = {"x-request-id": f"bench-{number}", "Authorization": "Bearer none"}
        if self.chat:
            headers["Content-Type"] = "application/json"
        tokens, usage, cutter = 0, None, Cutter()
        async with session.post(self.url + path, json=self.body(name, prompt), headers=headers) as answer:
            check(answer.status == 200, f"{answer.status}: {await answer.text() if answer.status != 200 else ''}")
            check(answer.headers["x-request-id"] == f"bench-{number}", str(answer.headers))
            messages = [message async for piece in answer.content.iter_any() for message in cutter.add(piece)]
        check(messages[-1] == "data: [DONE]" and not cutter.text, f"the stream ends with {messages[-1:]}, {cutter.text!r}")
        for message in messages[:-1]:
            chunk = json.loads(message.removeprefix("data: "))
            if chunk["choices"]:
                tokens += self.has_token(chunk["choices"][0])
            else:
                usage = chunk["usage"]
        return tokens, usage

    def has_token(self, choice):
        if not self.chat:
            return "text" in choice
        delta = choice["delta"]
        return bool(delta.get("content")) or (delta.get("content") == "" and "role" not in delta)

    async def prompts(self, session, root):
        """Random tokens' texts, each with how many tokens the server is to count."""
        tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))
        special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
        allowed = sorted(set(tokenizer.get_vocab().values()) - special)
        texts = [tokenizer.decode(self.choice.choices(allowed, k=16)) for _ in range(REQUESTS)]
        counts = [len(tokenizer.encode(text, add_special_tokens=not self.chat).ids) for text in texts]
        # Where its own count is another, it asks the server again; it names the model by its root.
        body = {"model": str(root), "prompt": texts[0], "add_special_tokens": False}
        async with session.post(self.url + "/tokenize", json=body) as answer:
            found = (await answer.json())["tokens"]
        check(found == tokenizer.encode(texts[0], add_special_tokens=False).ids, f"{texts[0]!r} is {found}")
        return list(zip(texts, counts))

    async def run(self, rate=None, burstiness=1.0, at_once=None):
        gate = asyncio.Semaphore(at_once) if at_once else contextlib.nullcontext()
        connector = aiohttp.TCPConnector(limit=at_once or 0, limit_per_host=at_once or 0, keepalive_timeout=60)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=SECONDS)) as session:
            name, root = await self.first_model(session)
            prompts = await self.prompts(session, root)

            async def ask(number, after):
                await asyncio.sleep(after)  # the plan of arrivals
                async with gate:
                    return await self.ask(session, name, prompts[number][0], number)

            at, asked = 0.0, []
            for number in range(REQUESTS):
                asked.append(ask(number, at))
                at += self.choice.gammavariate(burstiness, 1 / (rate * burstiness)) if rate else 0.0
            answers = await asyncio.gather(*asked)
        for (text, count), (tokens, usage) in zip(prompts, answers):
            check(usage is not None and usage["completion_tokens"] == tokens == NEW, f"{tokens} tokens, {usage}")
            marks = usage["prompt_tokens"] - count
            check(marks > 0 if self.chat else marks == 0, f"{text!r} has {count} tokens, and {usage}")


def check_loads(seed, chat):
    if aiohttp is None:
        raise Skip("the packages aiohttp and tokenizers are missing (scripts/setup --test)")
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        path = laneway.root / "model.gguf"
        gguf_model.make(path, choice.randrange(1 << 32), choice.choice(gguf_model.KINDS))
        server = Server(laneway, path).wait_until_ready()
        for terms in ({"rate": RATE}, {"rate": RATE, "burstiness": 0.5}, {"at_once": 2}, {}):
            asyncio.run(Generator(server, choice, chat).run(**terms))
        server.end()


def write_trace(path, choice, context):
    """Arrivals within a second; of some requests the prompt is longer than the context, which is a failure."""
    lines, at = ["TIMESTAMP,ContextTokens,GeneratedTokens"], 0
    for number in range(REQUESTS):
        prompt = context + 10 if number % 4 == 3 else choice.randint(1, 100)
        lines.append(f"2026-01-01 00:00:00.{at:07d},{prompt},{choice.randint(1, 30)}")
        at += choice.randrange(500_000)  # of 100 ns
    path.write_text("\n".join(lines) + "\n")
    return sum(int(line.split(",")[1]) for line in lines[1:] if int(line.split(",")[1]) < context)


def test_another_client_counts_alike(seed):
    """`laneway load` and a client of another kind, with the same requests at the same times."""
    if aiohttp is None:
        raise Skip("the package aiohttp is missing (scripts/setup --test)")
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        path, trace = laneway.root / "model.gguf", laneway.root / "trace.csv"
        gguf_model.make(path, choice.randrange(1 << 32), choice.choice(gguf_model.KINDS))
        prompt_tokens = write_trace(trace, choice, 256)
        server = Server(laneway, path, "--context=256").wait_until_ready()
        url, load_seed = f"http://127.0.0.1:{server.port}", str(choice.randrange(1 << 31))
        words = ["--trace", str(trace), "--seed", load_seed, "--json"]
        ours = laneway.command("load", url, *words, seconds=SECONDS)
        check(ours.code == 1, f"requests that fail are not told by the exit status:\n{ours}")
        client = pathlib.Path(__file__).resolve().parent / "load_client.py"
        theirs = subprocess.run([sys.executable, client, laneway.binary("laneway"), url, trace, "--seed", load_seed],
                                env=laneway.environment, check=True, timeout=SECONDS, text=True, stdout=subprocess.PIPE).stdout
        ours, theirs = json.loads(ours.out), json.loads(theirs)
        counts = ("requests", "answered", "refused", "failed", "prompt_tokens", "answer_tokens")
        check([ours[name] for name in counts] == [theirs[name] for name in counts], f"{ours}\ndiffers from\n{theirs}")
        check((ours["requests"], ours["failed"], ours["prompt_tokens"]) == (REQUESTS, REQUESTS // 4, prompt_tokens), str(ours))
        server.end()


def test_completions(seed):
    check_loads(seed, chat=False)


def test_chats(seed):
    check_loads(seed, chat=True)


if __name__ == "__main__":
    harness.main()
