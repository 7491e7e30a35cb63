import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgym.cli.tokenizer import texts, tokenizer
from lmgym.env.registry import find
from lmgym.errors import PolicyError
from lmgym.policy.models.tiny import tiny_tokenizer
from lmgym.policy.models.tokenizer_train import SPECIALS, train

TOKENIZER = tiny_tokenizer()
WEBSHOP = tiny_tokenizer("webshop")
VOCABULARIES = pytest.mark.parametrize("tokenizer", [TOKENIZER, WEBSHOP], ids=["tiny", "webshop"])


@VOCABULARIES
def test_the_vocabulary_is_small(tokenizer):
    assert len(tokenizer) <= 2048
    assert [tokenizer.convert_tokens_to_ids(name) for name in SPECIALS] == [0, 1, 2, 3, 4]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)


def test_names_of_things_are_few_tokens_and_a_task_has_words_of_its_own():
    for name in (" cabinet 4", " mug 1", " countertop 2"):
        assert len(TOKENIZER.encode(name, add_special_tokens=False)) == 2
    for name in (" search", " dollars", " candle", " chosen"):
        assert len(WEBSHOP.encode(name, add_special_tokens=False)) == 1
    letters = tiny_tokenizer("wordle")
    for text in ("z e b r a", "y b b g b"):
        assert len(letters.encode(text, add_special_tokens=False)) == 5
    assert len(tiny_tokenizer("chess").encode("8 / 3 k 4 / 2 K Q 4", add_special_tokens=False)) == 10
    observations = [text for id in ("webshop", "WebShopHuman-v0") for text in texts([find(id)], 20)]
    theirs, ours = (sum(len(each.encode(text)) for text in observations) for each in (TOKENIZER, WEBSHOP))
    assert ours < 0.6 * theirs


@VOCABULARIES
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(("task", "words"), [(None, "shop"), (["webshop"], "tiny")])
def test_a_tokenizer_of_some_tasks_has_a_name(task, words):
    with pytest.raises(PolicyError, match="--words"):
        tokenizer(task=task, words=words)


def test_training_keeps_to_its_size():
    made = train(["go to cabinet 4", "take mug 1 from cabinet 4"] * 9, vocab=300)
    assert made.get_vocab_size() <= 300
    assert made.decode(made.encode("go to the fridge 19, ünder it").ids) == "go to the fridge 19, ünder it"
