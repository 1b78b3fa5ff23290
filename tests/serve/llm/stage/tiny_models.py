"""Tiny models of each architecture that is served, with random weights, as GGUF files and as directories of safetensors."""
import numpy as np

import gguf_file
import model_directory

SIZES = dict(block_count=3, embedding_length=48, feed_forward_length=112, context_length=512)
BASE = 10000.0  # of rotation
SCALING = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)


def make(path, kind, seed, heads=6, kv_heads=2, head_width=8, vocabulary=131, tied=True, factors=False,
         directory=None, stored="F32", files=1):
    """Writes a model, and returns its keys and its tensors as the file has them.

    `directory`: writes the same model there, too, in so many files of safetensors, its elements stored as this type.
    """
    random = np.random.default_rng(seed)
    width, inner = SIZES["embedding_length"], SIZES["feed_forward_length"]
    queries, values = heads * head_width, kv_heads * head_width
    keys = {"general.architecture": kind, "general.name": "tiny", f"{kind}.vocab_size": vocabulary}
    keys |= {f"{kind}.{name}": value for name, value in SIZES.items()}
    keys |= {f"{kind}.attention.head_count": heads, f"{kind}.attention.head_count_kv": kv_heads,
             f"{kind}.attention.key_length": head_width}
    tensors = {}

    def matrix(name, rows, columns, scale=None):
        tensors[name] = random.normal(0, scale or columns ** -0.5, (rows, columns)).astype("f4")

    def vector(name, size, around):
        tensors[name] = random.normal(around, 0.2, size).astype("f4")

    def norm(name, size=width):
        vector(name + ".weight", size, 1)
        if kind == "gpt2":
            vector(name + ".bias", size, 0)

    matrix("token_embd.weight", vocabulary, width, 1)
    if not tied:
        matrix("output.weight", vocabulary, width)
    if kind == "gpt2":
        matrix("position_embd.weight", SIZES["context_length"], width, 0.3)
    if factors:
        tensors["rope_freqs.weight"] = model_directory.llama3_factors(SCALING, BASE, head_width)
    norm("output_norm")
    for layer in range(SIZES["block_count"]):
        block = f"blk.{layer}."
        norm(block + "attn_norm")
        norm(block + "ffn_norm")
        parts = [("attn_qkv", queries + 2 * values)] if kind == "gpt2" else [
            ("attn_q", queries), ("attn_k", values), ("attn_v", values)]
        for name, rows in parts:
            matrix(block + name + ".weight", rows, width)
            if kind in ("gpt2", "qwen2"):
                vector(block + name + ".bias", rows, 0)
        if kind == "qwen3":
            vector(block + "attn_q_norm.weight", head_width, 1)
            vector(block + "attn_k_norm.weight", head_width, 1)
        for name, rows, columns in [("attn_output", width, queries), ("ffn_up", inner, width), ("ffn_down", width, inner)] + (
                [] if kind == "gpt2" else [("ffn_gate", inner, width)]):
            matrix(block + name + ".weight", rows, columns)
            if kind == "gpt2":
                vector(block + name + ".bias", rows, 0)
    if stored != "F32":
        tensors = {name: model_directory.rounded(array, stored) for name, array in tensors.items()}
    gguf_file.write(path, keys, tensors)
    if directory is not None:
        more = {"rope_scaling": SCALING} if factors else {}
        model_directory.write(directory, keys, tensors, stored, files, more)
    return keys, {name: array.astype("f8") for name, array in tensors.items()}
