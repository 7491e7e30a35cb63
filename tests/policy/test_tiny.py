from hypothesis import given
from hypothesis import strategies as st

from lmgym.policy.tiny import tiny_tokenizer
from lmgym.policy.tokenizer_train import SPECIALS, train

TOKENIZER = tiny_tokenizer()


def test_the_vocabulary_is_small():
    assert len(TOKENIZER) <= 2048
    assert [TOKENIZER.convert_tokens_to_ids(name) for name in SPECIALS] == [0, 1, 2, 3, 4]
    assert (TOKENIZER.pad_token_id, TOKENIZER.eos_token_id) == (0, 1)


def test_names_of_things_are_few_tokens():
    for name in (" cabinet 4", " mug 1", " countertop 2"):
        assert len(TOKENIZER.encode(name, add_special_tokens=False)) == 2


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    ids = TOKENIZER.encode(text, add_special_tokens=False, split_special_tokens=True)
    assert TOKENIZER.decode(ids) == text


def test_training_keeps_to_its_size():
    made = train(["go to cabinet 4", "take mug 1 from cabinet 4"] * 9, vocab=300)
    assert made.get_vocab_size() <= 300
    assert made.decode(made.encode("go to the fridge 19, ünder it").ids) == "go to the fridge 19, ünder it"
