#!/usr/bin/env python3
"""The API as the asynchronous client of OpenAI's package uses it: many requests at once, and requests that are left."""
import asyncio
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import Skip, main
from scripted_server import HANG_SECONDS, ScriptedServer, check

try:
    import openai
except ImportError:
    openai = None

AT_ONCE = 16
SOON_SECONDS = 0.2  # a client gives up


def run(use, *server_words, key=None):
    """Runs use(server, client) over a server of its own, which serves afterwards as before."""
    if openai is None:
        raise Skip("the package openai is missing (scripts/setup --test)")

    async def with_client(server):
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key=key or "none", max_retries=0,
                                      timeout=HANG_SECONDS) as client:
            await use(server, client)

    with ScriptedServer(*server_words) as server:
        asyncio.run(with_client(server))
        if key is None:
            server.serves()


async def raises(kind, awaitable):
    try:
        await awaitable
    except kind as error:
        return error
    check(False, f"{kind.__name__} was not raised")


async def read(stream):
    """The text of a stream's one answer, its chunks with a choice, and its usage."""
    text, chunks, usage = "", 0, None
    async for chunk in stream:
        for choice in chunk.choices:
            text += choice.text if hasattr(choice, "text") else choice.delta.content or ""
            chunks += 1
        usage = chunk.usage or usage
    return text, chunks, usage


def chat(text):
    return [{"role": "user", "content": text}]


def test_many_at_once():
    """Streams and whole answers of both routes, all of which are open before any goes on."""
    async def stream(client, number):
        text, chunks, usage = await read(await client.completions.create(
            model="scripted", prompt=f"after:1;say:stream {number};", stream=True, max_tokens=40,
            stream_options={"include_usage": True}))
        check(text == f"stream {number}", f"stream {number} says {text!r}")
        check(chunks == usage.completion_tokens == len(text) + 1, f"{chunks} chunks, {usage}")

    async def whole(client, number):
        answer = await client.chat.completions.create(model="scripted", messages=chat(f"after:1;say:whole {number};"))
        text = answer.choices[0].message.content
        check(text == f"whole {number}", f"answer {number} is {text!r}")
        check(answer.usage.completion_tokens == len(text) + 1, str(answer.usage))
        check(answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens, str(answer.usage))

    async def use(server, client):
        asked = [asyncio.ensure_future(kind(client, number)) for number in range(AT_ONCE) for kind in (stream, whole)]
        await asyncio.to_thread(lambda: [server.expect("submitted") for _ in asked])
        check(not any(request.done() for request in asked), "an answer came before the model went on")
        await asyncio.to_thread(server.tell, "release")
        await asyncio.gather(*asked)
    run(use)


def test_fields():
    async def use(_, client):
        ask = client.completions.create
        several = await ask(model="scripted", prompt="x", n=3, seed=5)
        check(len({choice.text for choice in several.choices}) == 3, str(several))
        again = await ask(model="scripted", prompt="x", n=3, seed=5)
        check([choice.text for choice in again.choices] == [choice.text for choice in several.choices], str(again))
        other = await ask(model="scripted", prompt="x", n=3, seed=99)
        check([choice.text for choice in other.choices] != [choice.text for choice in several.choices], str(other))
        stopped = await ask(model="scripted", prompt="say:one two;", stop=" two")
        check((stopped.choices[0].text, stopped.choices[0].finish_reason) == ("one", "stop"), str(stopped))
        short = await ask(model="scripted", prompt="say:hello;", max_tokens=2)
        check((short.choices[0].text, short.choices[0].finish_reason) == ("he", "length"), str(short))
        check(short.usage.completion_tokens == 2, str(short.usage))
        told = await client.chat.completions.create(model="scripted", messages=chat("say:ab;"), logprobs=True, top_logprobs=3)
        content = told.choices[0].logprobs.content
        check([token.token for token in content] == ["a", "b", ""], str(content))
        check(all(len(token.top_logprobs) == 3 for token in content), str(content))
    run(use)


def test_streams_that_are_left():
    """A task that is cancelled, and a stream that is closed, end their requests in the generator."""
    async def leave(client, number, closes):
        stream = await client.completions.create(model="scripted", prompt="after:3;", stream=True, max_tokens=9)
        async for _ in stream:
            if closes:
                return await stream.close()
        check(False, f"stream {number} ended")

    async def use(server, client):
        for closes in (False, True):
            asked = [asyncio.ensure_future(leave(client, number, closes)) for number in range(AT_ONCE)]
            await asyncio.to_thread(lambda: [server.expect("submitted") for _ in asked])
            if not closes:
                for request in asked:
                    request.cancel()
            results = await asyncio.gather(*asked, return_exceptions=True)
            check(all(result is None if closes else isinstance(result, asyncio.CancelledError) for result in results), str(results))
            ended = await asyncio.to_thread(lambda: {server.expect("cancelled") for _ in asked})
            check(len(ended) == AT_ONCE, f"ended are {ended}")
    run(use)


def test_exceptions():
    async def use(server, client):
        ask = client.completions.create
        error = await raises(openai.BadRequestError, ask(model="scripted", prompt="x", top_p=2))
        check((error.param, error.code) == ("top_p", "invalid_value"), str(error))
        error = await raises(openai.NotFoundError, ask(model="other", prompt="x"))
        check(error.code == "model_not_found", str(error))
        error = await raises(openai.RateLimitError, ask(model="scripted", prompt="reject;"))
        check(error.response.headers["retry-after"] == "7", str(error.response.headers))
        error = await raises(openai.InternalServerError, ask(model="scripted", prompt="fault;"))
        check((error.status_code, error.code) == (500, "engine_fault"), str(error))
        error = await raises(openai.InternalServerError, ask(model="scripted", prompt="expire:1;"))
        check((error.status_code, error.code) == (504, "deadline_exceeded"), str(error))
        error = await raises(openai.APIError, read(await ask(model="scripted", prompt="expire:1;", stream=True)))
        check(error.code == "deadline_exceeded", f"the stream's error: {error}")
        for state in ("loading", "draining"):
            await asyncio.to_thread(server.tell, state)
            error = await raises(openai.APIStatusError, ask(model="scripted", prompt="x"))
            check((error.status_code, error.code) == (503, state), str(error))
            check("retry-after" in error.response.headers, str(error.response.headers))
        await asyncio.to_thread(server.tell, "ready")
    run(use)


def test_a_client_that_gives_up():
    """Its timeout ends the request in the generator, before and after the first token."""
    async def use(server, client):
        hasty = client.with_options(timeout=SOON_SECONDS)
        await raises(openai.APITimeoutError, hasty.completions.create(model="scripted", prompt="queued;"))
        await asyncio.to_thread(server.expect, "cancelled 1")
        stream = await hasty.completions.create(model="scripted", prompt="after:1;", stream=True)
        error = await raises(Exception, read(stream))  # the HTTP client's own, since the answer had begun
        check("Timeout" in type(error).__name__, repr(error))
        await asyncio.to_thread(server.expect, "cancelled 2")
    run(use)


def test_keys():
    async def refused(_, client):
        await raises(openai.AuthenticationError, client.models.list())
        await raises(openai.AuthenticationError, client.completions.create(model="scripted", prompt="x"))

    async def admitted(_, client):
        check((await client.models.list()).data[0].id == "scripted", "another model")
        check((await client.completions.create(model="scripted", prompt="say:a;")).choices[0].text == "a", "another answer")

    with tempfile.NamedTemporaryFile("w") as keys:  # mode 0600
        keys.write("sk-right\n")
        keys.flush()
        for key, use in (("sk-wrong", refused), ("sk-right", admitted)):
            run(use, "--keys", keys.name, key=key)


if __name__ == "__main__":
    main()
