"""Models' directories for tests: config.json and tensors as the package transformers names and lays them out, of what a
GGUF file has."""
import json
import struct

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2"}
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "gpt2": "GPT2LMHeadModel"}
NAMES = {  # GGUF's, then those of models that rotate and of GPT-2
    "token_embd": ("model.embed_tokens", "wte"), "position_embd": (None, "wpe"), "output_norm": ("model.norm", "ln_f"),
    "output": ("lm_head", "lm_head"), "attn_norm": ("input_layernorm", "ln_1"), "attn_q": ("self_attn.q_proj", None),
    "attn_k": ("self_attn.k_proj", None), "attn_v": ("self_attn.v_proj", None), "attn_q_norm": ("self_attn.q_norm", None),
    "attn_k_norm": ("self_attn.k_norm", None), "attn_qkv": (None, "attn.c_attn"),
    "attn_output": ("self_attn.o_proj", "attn.c_proj"), "ffn_norm": ("post_attention_layernorm", "ln_2"),
    "ffn_gate": ("mlp.gate_proj", None), "ffn_up": ("mlp.up_proj", "mlp.c_fc"), "ffn_down": ("mlp.down_proj", "mlp.c_proj")}
TRANSPOSED = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")  # of GPT-2


def bytes_of(array, kind):
    if kind == "BF16":  # the upper halves of floats
        return (np.ascontiguousarray(array, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return np.ascontiguousarray(array, TYPES[kind]).tobytes()


def rounded(array, kind):
    """The array with values that the type has."""
    if kind == "BF16":
        return (np.ascontiguousarray(array, "<f4").view("<u4") & 0xffff0000).view("<f4")
    return array.astype(TYPES[kind]).astype("f4")


def write_tensors(path, tensors, kind):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        encoded = bytes_of(array, kind)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(encoded)]}
        data += encoded
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def halves(array, head_width):
    """Rows of each head: pairs that are neighbours become ones that are half a head apart."""
    heads = array.reshape(-1, head_width // 2, 2, array.shape[1])
    return heads.swapaxes(1, 2).reshape(array.shape)


def converted(kind, tensors, head_width):
    result = {}
    for name, array in tensors.items():
        *block, base, end = name.split(".")
        new = NAMES[base][kind == "gpt2"]
        if kind == "gpt2" and end == "weight" and base in TRANSPOSED:
            array = array.T
        if kind == "llama" and base in ("attn_q", "attn_k"):
            array = halves(array, head_width)
        layer = "" if not block else f"h.{block[1]}." if kind == "gpt2" else f"model.layers.{block[1]}."
        result[f"{layer}{new}.{end}"] = array
    return result


def config_of(keys, tied):
    kind = keys["general.architecture"]
    size = {name.removeprefix(kind + "."): value for name, value in keys.items()}
    shared = {"architectures": [CLASSES[kind]], "vocab_size": size["vocab_size"], "tie_word_embeddings": tied}
    if kind == "gpt2":
        return shared | {"n_layer": size["block_count"], "n_embd": size["embedding_length"], "n_head": size["attention.head_count"],
                         "n_inner": size["feed_forward_length"], "n_positions": size["context_length"],
                         "activation_function": "gelu_new"}
    return shared | {"num_hidden_layers": size["block_count"], "hidden_size": size["embedding_length"],
                     "intermediate_size": size["feed_forward_length"], "num_attention_heads": size["attention.head_count"],
                     "num_key_value_heads": size["attention.head_count_kv"], "head_dim": size["attention.key_length"],
                     "max_position_embeddings": size["context_length"], "rms_norm_eps": 1e-5, "hidden_act": "silu"}


def write(path, keys, tensors, kind="F32", parts=1, more=None):
    """`keys` and `tensors` as gguf_file.write takes them; with several parts there is an index. `more`: of config.json."""
    path.mkdir()
    architecture = keys["general.architecture"]
    tensors = converted(architecture, {n: a for n, a in tensors.items() if n != "rope_freqs.weight"},
                        keys[f"{architecture}.attention.key_length"])
    tied = "lm_head.weight" not in tensors
    (path / "config.json").write_text(json.dumps(config_of(keys, tied) | (more or {})))
    if parts == 1:
        write_tensors(path / "model.safetensors", tensors, kind)
        return
    index = {}
    for part in range(parts):
        name = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        names = list(tensors)[part::parts]
        write_tensors(path / name, {one: tensors[one] for one in names}, kind)
        index |= {one: name for one in names}
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def llama3_factors(scaling, base, width):
    """How much slower each pair turns, in the way of Llama 3.1."""
    factors = []
    for i in range(width // 2):
        turns = scaling["original_max_position_embeddings"] / (2 * np.pi * base ** (2 * i / width))
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = np.clip((turns - low) / (high - low), 0, 1)
        factors.append(1 / ((1 - kept) / scaling["factor"] + kept))
    return np.array(factors, "f4")
