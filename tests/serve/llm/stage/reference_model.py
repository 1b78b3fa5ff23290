"""The layers of each architecture in NumPy, in float64: a whole text at a time, without a cache."""
import numpy as np


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt((away * away).mean(-1, keepdims=True) + epsilon) * weight + bias


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Model:
    """`keys` and `tensors` of a GGUF file."""

    def __init__(self, keys, tensors):
        self.kind, self.tensors = keys["general.architecture"], tensors
        size = lambda name, otherwise=None: keys.get(f"{self.kind}.{name}", otherwise)
        self.layers, self.heads = size("block_count"), size("attention.head_count")
        self.kv_heads = size("attention.head_count_kv", self.heads)
        self.head_width = size("attention.key_length", size("embedding_length") // self.heads)
        self.rotated = size("rope.dimension_count", self.head_width)
        self.base = size("rope.freq_base", 10000.0)
        norm = "layer_norm_epsilon" if self.kind == "gpt2" else "layer_norm_rms_epsilon"
        self.epsilon = size(f"attention.{norm}", 1e-5)

    def get(self, layer, name):
        return self.tensors.get(f"blk.{layer}.{name}")

    def linear(self, x, layer, name):
        bias = self.get(layer, name + ".bias")
        return x @ self.get(layer, name + ".weight").T + (0 if bias is None else bias)

    def norm(self, x, name):
        weight = self.tensors[name + ".weight"]
        if self.kind == "gpt2":
            return layer_norm(x, weight, self.tensors[name + ".bias"], self.epsilon)
        return rms_norm(x, weight, self.epsilon)

    def rotate(self, x):
        """Of [tokens, heads, width]."""
        if self.kind == "gpt2":
            return x
        half = self.rotated // 2
        angles = np.arange(len(x))[:, None] / self.base ** (np.arange(half) * 2 / self.rotated)
        if "rope_freqs.weight" in self.tensors:
            angles = angles / self.tensors["rope_freqs.weight"]
        turns = np.exp(1j * angles)[:, None, :]
        first, second = (slice(0, self.rotated, 2), slice(1, self.rotated, 2)) if self.kind == "llama" else (
            slice(0, half), slice(half, self.rotated))
        turned = (x[..., first] + 1j * x[..., second]) * turns
        x = x.copy()
        x[..., first], x[..., second] = turned.real, turned.imag
        return x

    def queries_keys_values(self, h, layer):
        widths = [self.heads * self.head_width, self.kv_heads * self.head_width, self.kv_heads * self.head_width]
        if self.kind == "gpt2":
            joined = self.linear(h, layer, "attn_qkv")
            parts = np.split(joined, np.cumsum(widths)[:2], axis=-1)
        else:
            parts = [self.linear(h, layer, name) for name in ("attn_q", "attn_k", "attn_v")]
        return [part.reshape(len(h), -1, self.head_width) for part in parts]

    def attend(self, h, layer):
        q, k, v = self.queries_keys_values(h, layer)
        if self.get(layer, "attn_q_norm.weight") is not None:
            q = rms_norm(q, self.get(layer, "attn_q_norm.weight"), self.epsilon)
            k = rms_norm(k, self.get(layer, "attn_k_norm.weight"), self.epsilon)
        q, k = self.rotate(q), self.rotate(k)
        k, v = (np.repeat(part, self.heads // self.kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(self.head_width)
        scores = np.where(np.tri(len(h), dtype=bool), scores, -np.inf)
        out = np.einsum("hij,jhd->ihd", softmax(scores), v).reshape(len(h), -1)
        return self.linear(out, layer, "attn_output")

    def feed_forward(self, h, layer):
        up = self.linear(h, layer, "ffn_up")
        if self.kind == "gpt2":
            inner = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up ** 3)))
        else:
            gate = self.linear(h, layer, "ffn_gate")
            inner = gate / (1 + np.exp(-gate)) * up
        return self.linear(inner, layer, "ffn_down")

    def logits(self, tokens):
        """[tokens, vocabulary]: what each token is followed by."""
        x = self.tensors["token_embd.weight"][tokens]
        if self.kind == "gpt2":
            x = x + self.tensors["position_embd.weight"][:len(tokens)]
        for layer in range(self.layers):
            x = x + self.attend(self.norm(x, f"blk.{layer}.attn_norm"), layer)
            x = x + self.feed_forward(self.norm(x, f"blk.{layer}.ffn_norm"), layer)
        head = self.tensors.get("output.weight", self.tensors["token_embd.weight"])
        return self.norm(x, "output_norm") @ head.T
