"""OpenAI's asynchronous client at the whole server: many requests at once, fields, and requests that are left.

The seed is printed; --seed repeats a run.
"""
import asyncio
import math
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import harness  # noqa: E402
from harness import Laneway, Skip, check, chosen, wait_for  # noqa: E402
from served import SECONDS, Server, answers_of_stage, random_text  # noqa: E402

try:
    import openai
except ImportError:
    openai = None

AT_ONCE = 16
NEW = 24  # tokens of an answer
LONG = {"max_tokens": 400, "extra_body": {"ignore_eos": True}}
SOON_SECONDS = 0.05  # a client gives up


def check_client(seed, use):
    """Runs use(client, server, expected) over a served model. `expected`: what a stage answers to prompts."""
    if openai is None:
        raise Skip("the package openai is missing (scripts/setup --test)")
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        gguf = byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32))
        prompts = sorted({random_text(choice) for _ in range(AT_ONCE)})
        expected = dict(zip(prompts, answers_of_stage(laneway, gguf, prompts, NEW)))
        server = Server(laneway, laneway.root / "bytes").wait_until_ready()

        async def with_client():
            async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0,
                                          timeout=SECONDS) as client:
                await use(client, server, expected)
        asyncio.run(with_client())
        wait_for(lambda: is_free(server), "requests are left in the engine")
        server.end()


def gauge(server, name):
    page = server.ask("GET", "/metrics")[1]
    return float(re.search(rf"^laneway_serve_{name}{{[^}}]*}} (\S+)$", page, re.MULTILINE)[1])


def is_free(server):
    return all(gauge(server, name) == 0 for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"))


def tokens_of(server, prompt):
    return server.ask("POST", "/tokenize", {"prompt": prompt})[1]["count"]


def test_many_at_once(seed):
    async def stream(client, prompt):
        text, chunks, usage = "", 0, None
        async for chunk in await client.completions.create(model="bytes", prompt=prompt, max_tokens=NEW, temperature=0,
                                                           stream=True, stream_options={"include_usage": True}):
            text += "".join(choice.text for choice in chunk.choices)
            chunks += len(chunk.choices)
            usage = chunk.usage or usage
        check(usage.completion_tokens == chunks, f"{chunks} chunks with a token, {usage}")
        return text, usage

    async def whole(client, prompt):
        answer = await client.completions.create(model="bytes", prompt=prompt, max_tokens=NEW, temperature=0)
        return answer.choices[0].text, answer.usage

    async def use(client, server, expected):
        before = gauge(server, "generation_tokens")
        asked = [(prompt, ask(client, prompt)) for prompt in expected for ask in (stream, whole)]
        answers = await asyncio.gather(*(answer for _, answer in asked))
        for (prompt, _), (text, usage) in zip(asked, answers):
            check(text == expected[prompt], f"{text!r} differs from a stage's {expected[prompt]!r}")
            check(usage.prompt_tokens == tokens_of(server, prompt), f"{prompt!r}: {usage}")
            check(usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, str(usage))
        told = gauge(server, "generation_tokens") - before
        check(sum(usage.completion_tokens for _, usage in answers) == told, f"the server counts {told} tokens")
    check_client(seed, use)


def test_fields(seed):
    async def use(client, _, expected):
        ask = client.completions.create
        prompt, text = max(expected.items(), key=lambda item: len(item[1]))

        async def drawn(of_seed, n=1):
            # By itself a tied model of random weights repeats its last token.
            answer = await ask(model="bytes", prompt=prompt, max_tokens=NEW, seed=of_seed, n=n, temperature=2,
                               extra_body={"repetition_penalty": 100, "ignore_eos": True})
            return [choice.text for choice in answer.choices]
        first = await drawn(7, n=4)
        check(await drawn(7, n=4) == first, "the same seed gives other answers")
        check(len(set(first)) > 1 and await drawn(8, n=4) != first, f"seeds and numbers of answers change nothing: {first}")
        greedy = await ask(model="bytes", prompt=prompt, max_tokens=NEW, temperature=0, n=3)
        check([choice.text for choice in greedy.choices] == [text] * 3, f"greedy answers differ: {greedy}")
        short = await ask(model="bytes", prompt=prompt, max_tokens=3, temperature=0, extra_body={"ignore_eos": True})
        check((short.usage.completion_tokens, short.choices[0].finish_reason) == (3, "length"), str(short))
        stop = text[len(text) // 2:][:2]
        if stop and "\ufffd" not in text:
            cut = (await ask(model="bytes", prompt=prompt, max_tokens=NEW, temperature=0, stop=stop)).choices[0]
            check((cut.text, cut.finish_reason) == (text[:text.index(stop)], "stop"), f"{cut} is not cut at {stop!r}")
    check_client(seed, use)


def test_logprobs(seed):
    async def use(client, _, expected):
        answer = await client.chat.completions.create(
            model="bytes", messages=[{"role": "user", "content": next(iter(expected))}], max_tokens=NEW, temperature=0,
            logprobs=True, top_logprobs=5, extra_body={"ignore_eos": True})
        content = answer.choices[0].logprobs.content
        check(len(content) == answer.usage.completion_tokens == NEW, f"{len(content)} tokens, {answer.usage}")
        for token in content:
            top = [other.logprob for other in token.top_logprobs]
            check(len(top) == 5 and top == sorted(top, reverse=True) and token.logprob == top[0] <= 0, str(token))
            check(sum(math.exp(logprob) for logprob in top) <= 1.0001, f"likelier than certain: {top}")
    check_client(seed, use)


def test_requests_that_are_left(seed):
    """By a task that is cancelled, a stream that is closed, and a client that gives up: their memory is free again."""
    async def begin(client, prompt):
        stream = await client.completions.create(model="bytes", prompt=prompt, stream=True, **LONG)
        await anext(aiter(stream))
        return stream

    async def cancelled(client, prompt):
        async for _ in await begin(client, prompt):
            pass

    async def use(client, server, expected):
        prompts = list(expected)
        asked = [asyncio.ensure_future(cancelled(client, prompt)) for prompt in prompts]
        await asyncio.to_thread(wait_for, lambda: gauge(server, "num_requests_running") > 0, "nothing runs")
        for request in asked:
            request.cancel()
        results = await asyncio.gather(*asked, return_exceptions=True)
        check(all(isinstance(result, asyncio.CancelledError) for result in results), str(results))
        await asyncio.to_thread(wait_for, lambda: is_free(server), "a cancelled task's request is computed")
        for stream in [await begin(client, prompt) for prompt in prompts[:4]]:
            await stream.close()
        await asyncio.to_thread(wait_for, lambda: is_free(server), "a closed stream's request is computed")
        try:
            await client.with_options(timeout=SOON_SECONDS).completions.create(model="bytes", prompt=prompts[0], **LONG)
            check(False, "400 tokens came within its timeout")
        except openai.APITimeoutError:
            pass
        await asyncio.to_thread(wait_for, lambda: is_free(server), "the request of a client that gave up is computed")
        tokens = gauge(server, "generation_tokens")
        check(tokens < (len(prompts) + 5) * LONG["max_tokens"], f"all {tokens} tokens were computed")
    check_client(seed, use)


if __name__ == "__main__":
    harness.main()
