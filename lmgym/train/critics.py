"""Building blocks of critics: a trunk that computes states, heads, target networks and an optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lmgym.errors import RecipeError
from lmgym.policy.local.forward import head_of, is_supported
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.prefixes import families
from lmgym.policy.local.score import states
from lmgym.policy.models.tiny import tiny_model
from lmgym.policy.models.vision import Media
from lmgym.train.batch import micro_batches
from lmgym.train.ranges import Range
from lmgym.train.ranks import ALONE, Ranks
from lmgym.train.update import check_finite, halves, recompute_activations

if TYPE_CHECKING:
    from transformers import PreTrainedModel

RATES, CLIPS = Range(0, 1e6), Range(0)
Net = TypeVar("Net", bound=nn.Module)
Base = Literal["small", "own", "policy"]
SMALL: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "intermediate_size": 256,
}


class Trunk(nn.Module):
    """A network that computes hidden states of rows of ids.

    small: a new transformer of one layer, trained. own: a copy of the policy's network, of which the same weights are
    trained as in the policy (all, or the adapters). policy: the policy itself, without gradient.
    """

    def __init__(
        self,
        policy: LocalPolicy,
        base: Base,
        *,
        seed: int,
        autocast: bool | None = False,
        checkpointing: bool = False,
    ) -> None:
        """Make the trunk; its weights are drawn from `seed`.

        `autocast` computes products of a trained network in bfloat16; None: if the device has hardware for it. With
        `checkpointing` a trained network recomputes its activations in the backward pass.
        """
        super().__init__()
        self.autocast = halves(policy.device) if autocast is None else autocast
        self.model: PreTrainedModel | None = None
        self.blind = base == "small"
        if base == "own":
            self.model = twin(policy.model)
        elif base == "small":
            positions = {"max_position_embeddings": policy.context}
            made: Any = tiny_model(vocab=len(head_of(policy.model)), seed=seed, changes=SMALL | positions)
            self.model = made.eval().to(policy.device)
        if self.model is not None and checkpointing:
            recompute_activations(self.model)
        self.shares = is_supported(self.model or policy.model)  # True: it computes what rows begin with once
        self.width = int((self.model or policy.model).config.get_text_config().hidden_size)
        self.device = policy.device
        # a function, so that a deep copy of the trunk (a target) shares the policy
        self._frozen: Callable[..., Tensor] = lambda ids, attention, media: policy.states(ids, attention, media=media)

    def forward(self, ids: Tensor, attention: Tensor, media: Media | None = None) -> Tensor:
        """Return the states (B, T, H) of `ids` (B, T) in fp32; those of the policy have no gradient.

        Raise RecipeError for pictures if the network reads ids alone.
        """
        ids, attention = ids.to(self.device), attention.to(self.device)
        if media and self.blind:
            raise RecipeError("a critic of base small sees no pictures: use base own or policy")
        if self.model is not None:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
                return states(self.model, ids, attention, media=media).float()
        with torch.no_grad():
            return self._frozen(ids, attention, media).float()


def twin(net: Net) -> Net:
    """Return a copy with its own trainable weights; frozen weights, as below adapters, are shared."""
    return deepcopy(net, {id(weight): weight for weight in net.parameters() if not weight.requires_grad})


def mlp(sizes: Sequence[int], *, seed: Sequence[int], bias: float | None = None, norm: bool = False) -> nn.Sequential:
    """Return linear layers of these widths with ReLU in between; with `bias` the output starts at that constant.

    With `norm` the inputs of every ReLU are normalised (layer normalisation), which bounds what a head extrapolates.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.default_rng(list(seed)).integers(1 << 31)))
        layers = [nn.Linear(first, second) for first, second in zip(sizes[:-1], sizes[1:], strict=True)]
    if bias is not None:
        nn.init.zeros_(layers[-1].weight)
        nn.init.constant_(layers[-1].bias, bias)
    normed = [[nn.LayerNorm(layer.out_features)] if norm else [] for layer in layers]
    between = [part for layer, one in zip(layers[:-1], normed, strict=False) for part in (layer, *one, nn.ReLU())]
    return nn.Sequential(*between, layers[-1])


def polyak(target: nn.Module, online: nn.Module, share: float) -> None:
    """Move the weights of `target` by `share` of the way towards those of `online`."""
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            if slow is not fast:
                slow.lerp_(fast, share)


class Estimator(Generic[Net]):
    """A value network with its optimiser and, if `share` is set, a target network."""

    def __init__(self, online: Net, *, lr: float, clip: float = 1.0, share: float | None = None) -> None:
        """`clip` limits the gradient norm, 0 is no limit; `share` is the rate at which the target follows."""
        if lr not in RATES or clip not in CLIPS:
            raise RecipeError(f"a critic needs lr {RATES} and clip {CLIPS}; got {lr} and {clip}")
        self.online, self.lr, self.clip, self.share = online, lr, clip, share
        self.slow = twin(online).requires_grad_(False) if share is not None else online  # target network
        self.weights = [weight for weight in online.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.AdamW(self.weights, lr=lr, weight_decay=0.0)

    def scale_lr(self, share: float) -> None:
        """Set the learning rate to this share of `lr`."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.lr * share

    def step(self, ranks: Ranks = ALONE) -> float:
        """Take an optimiser step with the gradients of all processes; return their norm before clipping."""
        ranks.add_gradients(self.online)
        norm = float(nn.utils.clip_grad_norm_(self.weights, self.clip or math.inf))
        if not math.isfinite(norm):
            raise RecipeError(f"the gradient of the critic is {norm}; try a smaller learning rate of the critic")
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        check_finite(self.weights, of=" of the critic")
        if self.share is not None:
            polyak(self.slow, self.online, self.share)
        return norm

    def state_dict(self) -> dict[str, Any]:
        """Return weights, target and optimiser."""
        target = None if self.share is None else self.slow.state_dict()
        return {"online": self.online.state_dict(), "target": target, "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.online.load_state_dict(state["online"])
        if self.share is not None:
            self.slow.load_state_dict(state["target"])
        self.optimiser.load_state_dict(state["optimiser"])


Point = tuple[tuple[int, ...], range]  # a row of ids, and the positions whose mean state is read


def states_at(
    trunk: Callable[[Tensor, Tensor], Tensor], points: Sequence[Point], *, tokens: int, shares: bool = False
) -> Tensor:
    """Return the state (N, H) of each point, in passes of `tokens` padded tokens.

    A row that begins another is read in it: the trunk is causal. With a trunk that `shares`, rows that begin alike are
    in one pass, whatever their number.
    """
    rows: list[tuple[int, ...]] = []
    row_index: dict[tuple[int, ...], int] = {}
    for row in sorted({ids for ids, _ in points}, reverse=True):
        # in this order the rows that go on from `row` come just before it
        if not rows or rows[-1][: len(row)] != row:
            rows.append(row)
        row_index[row] = len(rows) - 1
    point = torch.tensor([n for n, (_, places) in enumerate(points) for _ in places])
    row_of = torch.tensor([row_index[ids] for ids, places in points for _ in places])
    column = torch.tensor([at for _, places in points for at in places])
    ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    parts, order = [], []
    for run in micro_batches(lengths, tokens, families(rows) if shares else None):
        longest = int(lengths[run].max())
        row_in_run = torch.full((len(rows),), -1).index_put((run,), torch.arange(len(run)))[row_of]
        members = (row_in_run >= 0).nonzero()[:, 0]
        attention = torch.arange(longest) < lengths[run][:, None]
        hidden = trunk(ids[run, :longest], attention)
        flat = row_in_run[members] * longest + column[members]
        parts.append(hidden.flatten(0, 1).index_select(0, flat.to(hidden.device)))  # sums of its gradient have an order
        order.append(members)
    read = torch.cat(parts)
    owner = point[torch.cat(order)].to(read.device)
    count = torch.bincount(owner, minlength=len(points))[:, None]
    return read.new_zeros(len(points), read.shape[1]).index_add(0, owner, read) / count
