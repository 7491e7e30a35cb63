"""`python -m tests.bench.gpu`: tokens/s of sampling and of training on a GPU, beside what its matrix products reach.

The models have random weights: `tiny`, `tiny:10m` and the shapes of SmolLM2-135M and Qwen2.5-1.5B. Sampling plays
conversations of several turns in lockstep; training is a forward and backward pass in bfloat16 with AdamW on float32
weights. The share of the peak counts 6 operations for each weight and token, without attention.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from rich.console import Console
from torch.profiler import ProfilerActivity, profile
from transformers import LlamaConfig, LlamaForCausalLM, PretrainedConfig, PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import tiny_model, tiny_tokenizer
from lmgym.train.update import fitting_tokens

from .sampler import Load, in_lockstep, measure

CONSOLE = Console(width=150, highlight=False)
SMOLLM2 = {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30}
SMOLLM2 |= {"num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192}
QWEN = {"vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28}
QWEN |= {"num_attention_heads": 12, "num_key_value_heads": 2, "max_position_embeddings": 8192}


def models() -> dict[str, Callable[[], PreTrainedModel]]:
    """Return functions that make the models, by name."""
    words = len(tiny_tokenizer())
    return {
        "tiny": lambda: tiny_model(vocab=words),
        "tiny:10m": lambda: tiny_model("10m", vocab=words),
        "135m": lambda: _made(LlamaForCausalLM, LlamaConfig(**SMOLLM2, tie_word_embeddings=True)),
        "1.5b": lambda: _made(Qwen2ForCausalLM, Qwen2Config(**QWEN, tie_word_embeddings=True)),
    }


def _made(kind: type[PreTrainedModel], config: PretrainedConfig) -> PreTrainedModel:
    with torch.device("cuda"):  # a billion random numbers take long on a CPU
        return kind(config)


def peak(size: int = 8192) -> float:
    """Return the operations per second of a large bfloat16 matrix product."""
    one, other = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / _seconds(lambda: one @ other, 10)


def sampled(policy: LocalPolicy, rows: int, turns: int) -> float:
    """Return sampled tokens per second of `rows` conversations in one session; the median of three rounds."""
    session = policy.session()
    loads = [Load(rows=rows, turns=turns, seed=seed) for seed in range(4)]
    for load in loads:  # made before they are timed
        for row in range(rows):
            [load.observation(row, turn) for turn in range(turns)]
    in_lockstep(session, loads[0])
    return statistics.median(measure(session, load, in_lockstep)["tokens_per_second"] for load in loads[1:])


def updater(policy: LocalPolicy, rows: int, width: int) -> Callable[[], None]:
    """Return a function that takes one optimiser step on `rows` rows of `width` tokens, all of them scored."""
    torch.set_float32_matmul_precision("high")  # as a stage of training does
    micro = max(1, fitting_tokens(policy.model, policy.device) // width)
    ids = torch.randint(5, len(policy.tokenizer), (rows, width), device=policy.device)
    optimiser = torch.optim.AdamW(policy.model.parameters(), lr=1e-5)

    def update() -> None:
        for part in ids.split(micro):
            with torch.autocast("cuda", torch.bfloat16):
                logprobs, _ = policy.score(part, torch.ones_like(part))
            (-logprobs.sum() / ids.numel()).backward()
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return update


def rows_of(name: str, make: Callable[[], PreTrainedModel], most: float, args: argparse.Namespace) -> None:
    """Print the rows of a model."""
    torch.manual_seed(0)
    policy = LocalPolicy(
        make(),
        tiny_tokenizer(),
        name=name,
        sampling=Sampling(max_tokens=48),
        device="cuda",
        dtype=torch.bfloat16,
    )
    size = sum(weight.numel() for weight in policy.model.parameters())
    for rows in args.rows:
        torch.cuda.reset_peak_memory_stats()
        rate = sampled(policy, rows, args.turns)
        CONSOLE.print(f"{name} ({size / 1e6:,.1f} M) sample {rows} rows: {rate:,.0f} tokens/s, {_memory():.1f} GB")
    if args.profile:
        load, session = Load(rows=args.rows[-1], turns=1), policy.session()
        in_lockstep(session, load)
        CONSOLE.print(_profiled(lambda: in_lockstep(session, load)))
    for rows, width in ((64, 512), (16, 2048)):
        torch.cuda.reset_peak_memory_stats()
        update = updater(policy, rows, width)
        update()
        seconds = _seconds(update, 3)
        rate = rows * width / seconds
        share = 6 * size * rate / most
        CONSOLE.print(
            f"{name} train {rows} x {width}: {rate:,.0f} tokens/s, {share:.1%} of the peak, {_memory():.1f} GB"
        )
        if args.profile and width == 512:
            CONSOLE.print(_profiled(update))


def _seconds(run: Callable[[], object], times: int) -> float:
    """Return the median seconds of a run on the GPU."""
    run()
    durations = []
    for _ in range(times):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        durations.append(time.perf_counter() - began)
    return statistics.median(durations)


def _memory() -> float:
    return torch.cuda.max_memory_allocated() / 1e9


def _profiled(run: Callable[[], object]) -> str:
    """Return the costliest operations of a run."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    return seen.key_averages().table(sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=60)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=list(models()), default=list(models()))
    parser.add_argument("--rows", nargs="+", type=int, default=[16, 64, 256], help="conversations at once")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--profile", action="store_true", help="print the costliest operations too")
    args = parser.parse_args(argv)
    if not torch.cuda.is_available():
        raise SystemExit("no GPU: torch.cuda.is_available() is False")
    most = peak()
    CONSOLE.print(
        f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}: {most / 1e12:,.0f} TFLOP/s in bfloat16 products"
    )
    for name in args.models:
        rows_of(name, models()[name], most, args)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
