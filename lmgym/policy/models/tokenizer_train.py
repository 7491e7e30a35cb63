"""Training of the tokenizers of `tiny`: byte-level BPE over the text of tasks, stored as one JSON file.

A word with its leading space is one piece and digits are split from words: " cabinet 4", a name that a policy copies,
is two tokens. Games repeat the words between names, so the opening of a sentence and the comma and article of a list
may become one token each.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.trainers import BpeTrainer

FOLDER = Path(__file__).with_name("tokenizers")  # NAME.json: "tiny", and one for each task with its own vocabulary
LISTED = r"[,.:] (?:and )?a(?= [a-z]+ \d)"  # ", a" before "mug 2"
OPENING = r" ?[A-Z][a-z]+(?: [a-z]+\b(?! \d))*"  # "You pick up the" before " mug 2"
WORDS = r" ?\p{L}+| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PIECES = "|".join((LISTED, OPENING, WORDS))
PAD, END, SYSTEM, USER, ASSISTANT = SPECIALS = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


def train(texts: Iterable[str], *, vocab: int = 2048) -> Tokenizer:
    """Train a byte-level BPE of at most `vocab` tokens, including the special tokens and 256 bytes."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = PreTokenizers(
        [Split(Regex(PIECES), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=vocab,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
