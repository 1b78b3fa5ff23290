#!/usr/bin/env python3
"""Trains a small GPT-2 on bytes of text with tinygrad, and writes it as a model directory that `laneway serve` takes.

    DEV=CUDA python train_gpt2.py [--output DIR] [--text FILE...] [--steps N] [--seed N]

A token is a byte, so the vocabulary is 256 bytes and the mark of a text's end. Without --text it reads the documents
that come with Laneway. Standard output is the same in every run on the same kind of device; lines with times start with
"time:".
"""
import argparse
import json
import math
import pathlib
import random
import time

from tinygrad import Context, Tensor, TinyJit, dtypes, nn

END_OF_TEXT = 256
VOCABULARY = 257
LAYERS = 2
HEADS = 4
WIDTH = 128
CONTEXT = 128
BATCH = 8
SAMPLE = "Laneway "


def find_texts():
    """The documents lie in docs/, in the source tree as in an installation."""
    here = pathlib.Path(__file__).resolve().parent
    for directory in (here.parents[1] / "docs", here.parents[1] / "doc"):
        texts = sorted(directory.glob("*.md"))
        if texts:
            return texts
    raise SystemExit("no documents found: name a text with --text")


def read_tokens(paths):
    tokens = []
    for path in paths:
        tokens += [*path.read_bytes(), END_OF_TEXT]
    if len(tokens) <= CONTEXT:
        raise SystemExit(f"the text has {len(tokens)} bytes; it needs more than {CONTEXT}")
    return tokens


class Layer:
    def __init__(self):
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.attn_proj = nn.Linear(WIDTH, WIDTH)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.mlp_proj = nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x):
        batch, length = x.shape[:2]
        parts = self.c_attn(self.ln_1(x)).reshape(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = (parts[:, :, part].transpose(1, 2) for part in range(3))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        past = Tensor.ones(length, length, dtype=dtypes.bool).tril()
        attended = past.where(scores, -1e9).softmax() @ v
        x = x + self.attn_proj(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp_proj(self.c_fc(self.ln_2(x)).gelu())


class Gpt2:
    def __init__(self):
        self.wte = Tensor.normal(VOCABULARY, WIDTH, std=0.02)
        self.wpe = Tensor.normal(CONTEXT, WIDTH, std=0.01)
        self.layers = [Layer() for _ in range(LAYERS)]
        self.ln_f = nn.LayerNorm(WIDTH)

    def __call__(self, tokens):
        x = tokens.one_hot(VOCABULARY).float() @ self.wte + self.wpe[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.ln_f(x) @ self.wte.transpose(0, 1)

    def tensors(self):
        """By the names of a GPT-2 of transformers, whose matrices are [in, out]."""
        named = {"wte.weight": self.wte, "wpe.weight": self.wpe, "ln_f.weight": self.ln_f.weight,
                 "ln_f.bias": self.ln_f.bias}
        for number, layer in enumerate(self.layers):
            for name, norm in (("ln_1", layer.ln_1), ("ln_2", layer.ln_2)):
                named[f"h.{number}.{name}.weight"] = norm.weight
                named[f"h.{number}.{name}.bias"] = norm.bias
            for name, linear in (("attn.c_attn", layer.c_attn), ("attn.c_proj", layer.attn_proj),
                                 ("mlp.c_fc", layer.c_fc), ("mlp.c_proj", layer.mlp_proj)):
                named[f"h.{number}.{name}.weight"] = linear.weight.transpose(0, 1)
                named[f"h.{number}.{name}.bias"] = linear.bias
        return {f"transformer.{name}": tensor.contiguous().realize() for name, tensor in named.items()}


def train(model, tokens, steps, seed):
    optimizer = nn.optim.AdamW([*nn.state.get_parameters(model)], lr=0.003, weight_decay=0.01)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    shuffle = random.Random(seed)
    losses, begin = [], time.perf_counter()
    with Context(TRAINING=1):
        for number in range(1, steps + 1):
            starts = [shuffle.randrange(len(tokens) - CONTEXT) for _ in range(BATCH)]
            rows = Tensor([tokens[start:start + CONTEXT + 1] for start in starts], dtype=dtypes.int32).realize()
            losses.append(step(rows[:, :-1].contiguous().realize(), rows[:, 1:].contiguous().realize()).item())
            if number % 20 == 0 or number == steps:
                print(f"step {number}: loss {sum(losses) / len(losses):.6f}", flush=True)
                print(f"time: step {number} {time.perf_counter() - begin:.1f} s", flush=True)
                losses = []


def byte_letters():
    """The letter by which a tokenizer.json writes each byte: itself where it can be seen, else one from U+0100 on."""
    seen = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = (byte for byte in range(256) if byte not in seen)
    letters = {byte: chr(byte) for byte in seen} | {byte: chr(0x100 + number) for number, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]


def write_model(model, directory):
    directory.mkdir(parents=True, exist_ok=True)
    nn.state.safe_save(model.tensors(), str(directory / "model.safetensors"))
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCABULARY, "n_layer": LAYERS,
              "n_head": HEADS, "n_embd": WIDTH, "n_inner": 4 * WIDTH, "n_positions": CONTEXT, "n_ctx": CONTEXT,
              "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": True,
              "bos_token_id": END_OF_TEXT, "eos_token_id": END_OF_TEXT, "torch_dtype": "float32"}
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    end = "<|endoftext|>"
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": END_OF_TEXT, "content": end, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                  "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                  "vocab": vocabulary | {end: END_OF_TEXT}, "merges": []}}
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer) + "\n")
    (directory / "tokenizer_config.json").write_text(json.dumps({"bos_token": end, "eos_token": end}) + "\n")


def continue_text(model, text, count):
    """The most likely bytes after the text."""
    forward = TinyJit(lambda x: model(x).argmax(axis=2).realize())
    tokens = [*text.encode()]
    for _ in range(count):
        window = tokens[-CONTEXT:]
        row = forward(Tensor([window + [0] * (CONTEXT - len(window))], dtype=dtypes.int32).realize()).tolist()[0]
        tokens.append(row[len(window) - 1])
    return bytes(token for token in tokens if token != END_OF_TEXT).decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpt2-bytes"))
    parser.add_argument("--text", type=pathlib.Path, nargs="+")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    tokens = read_tokens(arguments.text or find_texts())
    print(f"{len(tokens)} tokens of text")
    Tensor.manual_seed(arguments.seed)
    model = Gpt2()
    begin = time.perf_counter()
    train(model, tokens, arguments.steps, arguments.seed)
    print(f"time: training {time.perf_counter() - begin:.1f} s")
    write_model(model, arguments.output)
    print(json.dumps(continue_text(model, SAMPLE, 60)))
    print(f"time: {arguments.output}/ is written; laneway serve {arguments.output} answers for it")


if __name__ == "__main__":
    main()
