#!/usr/bin/env python3
"""The API as OpenAI's own package and a load generator use it."""
import asyncio
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import Skip, main
from scripted_server import ScriptedServer, check, events_of

try:
    import aiohttp
    import openai
except ImportError:
    openai = None

USER = [{"role": "user", "content": "say:hello;"}]


def client_of(server, key="none", kind="OpenAI"):
    if openai is None:
        raise Skip("the packages openai and aiohttp are missing (scripts/setup --test)")
    return getattr(openai, kind)(base_url=server.url + "/v1", api_key=key, max_retries=0)


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    check(False, f"{kind.__name__} was not raised")


def test_models():
    with ScriptedServer() as server:
        client = client_of(server)
        model, = client.models.list().data
        check((model.id, model.object, model.root) == ("scripted", "model", "/nonexistent/scripted"), str(model))
        check(client.models.retrieve("scripted").id == "scripted", "the model is not found by its name")
        raises(openai.NotFoundError, lambda: client.models.retrieve("other"))


def test_completions():
    with ScriptedServer() as server:
        ask = client_of(server).completions.create
        answer = ask(model="scripted", prompt="say:hello;")
        check(answer.choices[0].text == "hello" and answer.choices[0].finish_reason == "stop", str(answer))
        check((answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 6), str(answer.usage))
        short = ask(model="scripted", prompt="say:hello;", max_tokens=3)
        check((short.choices[0].text, short.choices[0].finish_reason) == ("hel", "length"), str(short))
        batch = ask(model="scripted", prompt=["say:a;", "say:b;"], n=2)
        check([choice.text for choice in batch.choices] == ["a", "a", "b", "b"], str(batch))
        check([choice.index for choice in batch.choices] == [0, 1, 2, 3], str(batch))
        ids = ask(model="scripted", prompt=[[*b"say:ids;"], [*b"say:two;"]])
        check([choice.text for choice in ids.choices] == ["ids", "two"], str(ids))
        echoed = ask(model="scripted", prompt="say:x;", echo=True)
        check(echoed.choices[0].text == "say:x;x", str(echoed))
        none = ask(model="scripted", prompt="abc", echo=True, max_tokens=0)
        check(none.choices[0].text == "abc" and none.usage.completion_tokens == 0, str(none))


def test_stop_strings():
    with ScriptedServer() as server:
        ask = client_of(server).completions.create
        text = "say:one two three;"
        cut = ask(model="scripted", prompt=text, stop=["two", "zzz"], max_tokens=50)
        check((cut.choices[0].text, cut.choices[0].finish_reason) == ("one ", "stop"), str(cut))
        kept = ask(model="scripted", prompt=text, stop="two", max_tokens=50, extra_body={"include_stop_str_in_output": True})
        check(kept.choices[0].text == "one two", str(kept))
        held = "".join(chunk.choices[0].text for chunk in ask(model="scripted", prompt="say:ab tw;", stop="two",
                                                               stream=True))
        check(held == "ab tw", f"what was held back is lost: {held}")


def test_seeds():
    with ScriptedServer() as server:
        ask = client_of(server).completions.create
        texts = [[choice.text for choice in ask(model="scripted", prompt="x", seed=seed, n=3).choices] for seed in (1, 1, 9)]
        check(texts[0] == texts[1] and texts[0] != texts[2], str(texts))
        check(len(set(texts[0])) == 3, f"answers of one prompt are alike: {texts[0]}")
        check(ask(model="scripted", prompt="x", temperature=0, seed=1).choices[0].text ==
              ask(model="scripted", prompt="x", temperature=0, seed=9).choices[0].text, "a greedy answer has a seed")


def test_streams():
    with ScriptedServer() as server:
        client = client_of(server)
        chunks = list(client.chat.completions.create(model="scripted", messages=USER, stream=True, n=2,
                                                     stream_options={"include_usage": True}))
        texts, reasons = ["", ""], [None, None]
        for chunk in chunks[:-1]:
            choice, = chunk.choices
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] = choice.finish_reason
        check(texts == ["hello", "hello"] and reasons == ["stop", "stop"], f"{texts} {reasons}")
        check(not chunks[-1].choices and chunks[-1].usage.completion_tokens == 12, str(chunks[-1]))
        check(len(chunks) == 1 + 2 * (1 + 6), f"{len(chunks)} chunks")  # usage, roles, and a chunk a token
        check(chunks[0].choices[0].delta.role == "assistant", str(chunks[0]))


def test_logprobs():
    with ScriptedServer() as server:
        client = client_of(server)
        chat = client.chat.completions.create(model="scripted", messages=USER, logprobs=True, top_logprobs=2)
        first = chat.choices[0].logprobs.content[0]
        check(first.token == "h" and first.bytes == [104] and len(first.top_logprobs) == 2, str(first))
        plain = client.completions.create(model="scripted", prompt="say:hi;", logprobs=1).choices[0].logprobs
        check(plain.tokens == ["h", "i", ""] and plain.text_offset == [0, 1, 2], str(plain))
        check(plain.top_logprobs[0] == {"A": -1.0, "h": -0.5}, str(plain))
        none = client.chat.completions.create(model="scripted", messages=USER)
        check(none.choices[0].logprobs is None, str(none))


def test_exceptions():
    with ScriptedServer() as server:
        ask = client_of(server).completions.create
        error = raises(openai.BadRequestError, lambda: ask(model="scripted", prompt="x", temperature=9))
        check((error.param, error.code) == ("temperature", "invalid_value"), str(error))
        error = raises(openai.BadRequestError, lambda: ask(model="scripted", prompt="x" * 2000))
        check(error.code == "context_length_exceeded", str(error))
        error = raises(openai.NotFoundError, lambda: ask(model="other", prompt="x"))
        check((error.param, error.code) == ("model", "model_not_found"), str(error))
        for prompt in ("reject;", "late;"):
            for stream in (False, True):
                error = raises(openai.RateLimitError, lambda: ask(model="scripted", prompt=prompt, stream=stream))
                check(error.code == "queue_full" and error.response.headers["retry-after"] == "7", str(error))
        error = raises(openai.InternalServerError, lambda: ask(model="scripted", prompt="expire:2;"))
        check(error.status_code == 504 and error.code == "deadline_exceeded", str(error))
        error = raises(openai.InternalServerError, lambda: ask(model="scripted", prompt="fault;"))
        check(error.status_code == 500 and error.code == "engine_fault", str(error))
        error = raises(openai.APIError, lambda: list(ask(model="scripted", prompt="expire:2;", stream=True)))
        check(error.code == "deadline_exceeded", f"the stream's error: {error}")
        error = raises(openai.BadRequestError, lambda: client_of(server).chat.completions.create(
            model="scripted", messages=[{"role": "pirate", "content": "x"}]))
        check("pirate" in error.message and error.param == "messages", str(error))
        server.serves()


def test_siblings_of_a_failure():
    """When one of several prompts is refused or fails, the generator is told to end the others."""
    with ScriptedServer() as server:
        ask = client_of(server).completions.create
        number = 0
        for failing, code in (("reject;", "queue_full"), ("late;", "queue_full"), ("fault;", "engine_fault")):
            for stream in (False, True):
                error = raises(openai.APIError, lambda: list(ask(
                    model="scripted", prompt=["after:0;", "queued;", failing], stream=stream)))
                check(error.code == code, str(error))
                for other in (1, 2):
                    server.expect(f"cancelled {number + other}")
                number += 3
        server.serves()


def test_states():
    with ScriptedServer() as server:
        for state in ("loading", "draining"):
            server.tell(state)
            check(server.ask("GET", "/health")[0] == 503, f"healthy while {state}")
            status, headers, answer = server.complete()
            check(status == 503 and answer["error"]["code"] == state and "retry-after" in headers, str(answer))
        server.tell("ready")
        check(server.ask("GET", "/health")[0] == 200, "not healthy")
        server.serves()


def test_keys():
    with tempfile.NamedTemporaryFile("w") as keys:  # mode 0600
        keys.write("# a key\nsk-right\n")
        keys.flush()
        with ScriptedServer("--keys", keys.name) as server:
            raises(openai.AuthenticationError, lambda: client_of(server, "sk-wrong").models.list())
            check(client_of(server, "sk-right").models.list().data, "the key is refused")
            check(server.ask("GET", "/metrics")[0] == 401, "metrics need no key")
            check(server.ask("GET", "/health")[0] == 200, "health needs a key")


def test_load_generator():
    """What `vllm bench serve` sends, and what it reads of the answers."""
    async def ask(server):
        async with aiohttp.ClientSession() as session:
            async with session.get(server.url + "/v1/models") as answer:
                model = (await answer.json())["data"][0]
            body = {"model": model["id"], "messages": [{"role": "user", "content": [{"type": "text", "text": "say:abc;"}]}],
                    "max_completion_tokens": 8, "stream": True, "stream_options": {"include_usage": True},
                    "repetition_penalty": 1.0, "logprobs": None, "ignore_eos": True, "temperature": 0.0}
            headers = {"x-request-id": "bench-7", "Authorization": "Bearer none"}
            async with session.post(server.url + "/v1/chat/completions", json=body, headers=headers) as answer:
                return model, answer.headers, (await answer.read()).decode()

    with ScriptedServer() as server:
        client_of(server)
        model, headers, text = asyncio.run(ask(server))
        check(model["root"] == "/nonexistent/scripted", str(model))
        check(headers["x-request-id"] == "bench-7" and headers["content-type"].startswith("text/event-stream"), str(headers))
        *chunks, last, end = events_of(text)
        check(end == "[DONE]" and all(json.loads(chunk)["choices"] for chunk in chunks), text)
        last = json.loads(last)
        check(last["choices"] == [] and last["usage"]["completion_tokens"] == 8, str(last))
        check(len(chunks) == 9, f"{len(chunks)} chunks for a role and 8 tokens")


def test_tokens():
    with ScriptedServer() as server:
        _, _, answer = server.ask("POST", "/tokenize", {"prompt": "ab", "return_token_strs": True})
        check(answer == {"count": 3, "max_model_len": 1024, "tokens": [257, 97, 98], "token_strs": ["", "a", "b"]}, str(answer))
        _, _, answer = server.ask("POST", "/tokenize", {"messages": [{"role": "user", "content": "a"}]})
        check(answer["count"] == len("<user>a\n<assistant>"), str(answer))
        _, _, answer = server.ask("POST", "/detokenize", {"tokens": [104, 105]})
        check(answer == {"prompt": "hi"}, str(answer))
        # A load generator knows the model's root alone where it asks for tokens.
        status, _, answer = server.ask("POST", "/tokenize", {"model": "/nonexistent/scripted", "prompt": "ab"})
        check(status == 200 and answer["tokens"] == [257, 97, 98], f"{status}: {answer}")
        check(server.ask("POST", "/tokenize", {"model": "/nonexistent", "prompt": "ab"})[0] == 404, "another root is taken")
        check(server.ask("GET", "/version")[2] == {"version": "0.1.0"}, "the version")
        server.serves()
        page = server.ask("GET", "/metrics")[2]
        check('laneway_serve_generation_tokens{model_name="scripted"} 4\n' in page, page)
        check('laneway_serve_request_success{model_name="scripted",finished_reason="stop"} 1\n' in page, page)


if __name__ == "__main__":
    main()
