"""Trains the tokenizer of `tiny`: a byte-level BPE over the tasks' own text, kept as one JSON file.

A word with its leading space is one piece and digits are split from words, so that " cabinet 4" is two tokens.

    python -m lmgym.policy.tokenizer_train texts/*.txt --vocab 1024
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.trainers import BpeTrainer

PATH = Path(__file__).with_name("tiny_tokenizer.json")
PIECES = r" ?\p{L}+| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PAD, END, SYSTEM, USER, ASSISTANT = SPECIALS = ("<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


def train(texts: Iterable[str], *, vocab: int = 1024) -> Tokenizer:
    """A byte-level BPE of at most `vocab` tokens, the specials and 256 bytes included."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains on text files, a line a text, and writes the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--vocab", type=int, default=1024)
    parser.add_argument("--out", type=Path, default=PATH)
    args = parser.parse_args(arguments)
    texts = (line for file in args.files for line in file.read_text(encoding="utf-8").splitlines(keepends=True))
    train(texts, vocab=args.vocab).save(str(args.out))


if __name__ == "__main__":
    main()
